"""python -m xuance_worker.cli --config FILE [--dry-run] [--interactive]"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic_sdk.cli import run_worker, standard_parser

from xuance_worker.config import POLICY_EVAL, XuanceConfig


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("xuance_worker", "Trains XuanCe's single- and multi-agent algorithms under MOSAIC.")
    return run_worker(work, argv=argv, parser=parser, check=check, interactive=play)


def check(document: Mapping[str, Any]) -> None:
    """ConfigError for a config that cannot be used."""
    XuanceConfig.from_dict(document)


def work(document: Mapping[str, Any], args: Any) -> Mapping[str, Any]:
    config = XuanceConfig.from_dict(document)
    if config.mode == POLICY_EVAL:
        from xuance_worker.evaluate import evaluate

        return evaluate(config)
    from xuance_worker.runtime import XuanceRuntime

    return XuanceRuntime(config).run()


def play(document: Mapping[str, Any], args: Any) -> int:
    from xuance_worker.interactive import serve

    return serve(XuanceConfig.from_dict(document))


if __name__ == "__main__":
    sys.exit(main())
