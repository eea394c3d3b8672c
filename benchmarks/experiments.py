"""Everything that is measured of experiments: the parts one after the other, then one table of what has a target.

python benchmarks/experiments.py [--only ask,exp] [--tensorboard PYTHON]

The parts are experiments_ask.py (questions), experiments_exp.py (submits and a sweep), experiments_imports.py and
experiments_stats.py; each can be run alone, with options of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rig import COPY, table

PARTS = ("ask", "exp", "imports", "stats")
VERDICTS = ("ok", "MISSED")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--tensorboard", default=".venv-observe/bin/python", help="a Python that has TensorBoard")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    rows = [("", "measured", "")]
    for part in chosen:
        rows += run(part, ["--tensorboard", args.tensorboard] if part == "imports" else [])
    table(f"Experiments, load {os.getloadavg()[0]:.1f} at the end on {os.cpu_count()} cores", rows)


def run(part: str, options: list[str]) -> list[tuple[str, str, str]]:
    """What the part's tables say of each target."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tables.jsonl")
        command = [sys.executable, str(Path(__file__).with_name(f"experiments_{part}.py")), *options]
        done = subprocess.run(command, env={**os.environ, COPY: str(copy)}, check=False)
        tables = [json.loads(line) for line in copy.read_text().splitlines()] if copy.exists() else []
    rows = [row for title, cells in tables for row in with_target(title, cells)]
    return (
        rows if not done.returncode else [*rows, (f"experiments_{part}.py", f"exit code {done.returncode}", "FAILED")]
    )


def with_target(title: str, cells: list[list[str]]) -> list[tuple[str, str, str]]:
    headings, *rows = cells
    found = []
    for name, *values, verdict in rows:
        if verdict in VERDICTS:
            said = [f"{value} {heading}".strip() for heading, value in zip(headings[1:], values, strict=False) if value]
            found.append((f"{title}: {name}", ", ".join(said), verdict))
    return found


if __name__ == "__main__":
    main()
