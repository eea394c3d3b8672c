"""python -m mosaic_sdk.operators random|passive [--name NAME]: a built-in operator as a process."""

import argparse
import sys
from typing import Optional, Sequence

from mosaic_sdk.operators.builtin import Passive, Random
from mosaic_sdk.operators.served import serve_operator


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mosaic_sdk.operators", allow_abbrev=False)
    parser.add_argument("kind", choices=("random", "passive"))
    parser.add_argument("--name", default="", help="the operator's name: part of the seed of its random numbers")
    args = parser.parse_args(argv)
    name = args.name or args.kind
    if args.kind == "random":
        return serve_operator(lambda agent: Random(agent, name), about={"policy": "random"})
    return serve_operator(Passive, about={"policy": "passive"})


if __name__ == "__main__":
    sys.exit(main())
