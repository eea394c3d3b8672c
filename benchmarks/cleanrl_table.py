"""Every algorithm of the CleanRL worker, tried: does it run, save, go on, evaluate, show frames? Writes a table of it.

python benchmarks/cleanrl_table.py --python ENV/bin/python [--jax-python ENV/bin/python] [--only dqn ppo] [--write]

Each is trained for a few hundred steps with somebody watching, resumed from the checkpoint halfway, and evaluated. What
was found is kept in --results, so that it can be done in pieces. `--write` puts the table into docs/howto/cleanrl.md.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane import FastLaneReader
from mosaic_sdk.lab.trial import Trial

DOCS = Path(__file__).parents[1] / "docs" / "howto" / "cleanrl.md"
BEGIN, END = "<!-- table: benchmarks/cleanrl_table.py -->\n", "<!-- end of table -->\n"
LIMIT_S = 1800
YES, NO = "yes", "no"

# Asked in the worker's own Python: every algorithm, and the short training that is known to fit it.
QUESTION = """
import dataclasses, json
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.short import short_config
print(json.dumps([{**dataclasses.asdict(a), "config": short_config(a)} for a in ALGORITHMS.values()]))
"""
# Whether two checkpoints hold the same weights, bit by bit.
COMPARE = """
import sys, torch
from cleanrl_worker.checkpoints import load_checkpoint
from cleanrl_worker.plain import to_plain
def flat(value):
    if isinstance(value, dict): return [x for key in sorted(value, key=str) for x in flat(value[key])]
    if isinstance(value, (list, tuple)): return [x for part in value for x in flat(part)]
    return [value] if isinstance(value, torch.Tensor) else []
one, other = (flat(to_plain(load_checkpoint(path).modules)) for path in sys.argv[1:])
print(0 < len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the Python of the worker's environment")
    parser.add_argument("--jax-python", default="", help="that of its variant jax")
    parser.add_argument("--results", type=Path, default=Path("cleanrl_table.json"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    algorithms = json.loads(ask(args.python, QUESTION))
    for algorithm in algorithms:
        python = args.jax_python if algorithm["variant"] == "jax" else args.python
        if not algorithm["reason"] and python and (not args.only or algorithm["name"] in args.only):
            results[algorithm["name"]] = try_out(algorithm, python)
            args.results.write_text(json.dumps(results, indent=1))
            print(algorithm["name"], results[algorithm["name"]], flush=True)
    text = make_table(algorithms, results)
    print(text)
    if args.write:
        write_into_docs(text)


def try_out(algorithm: dict[str, Any], python: str) -> dict[str, str]:
    with Trial("cleanrl_worker.cli", algorithm["config"], python) as whole:
        frames = run_watched(whole)
        if whole.code != 0:
            return {"runs": f"{NO}: {failure(whole)}"}
        saved = sorted(Path(whole.ground.run, "checkpoints").glob("*.pt"))
        found = {"runs": YES, "steps_s": speed(whole), "frames": YES if frames else NO}
        found["checkpoint"] = YES if len(saved) == 2 else f"{NO}: {len(saved)} files"
        found["resume"] = try_resume(python, saved)
        found["eval"] = try_evaluation(python, saved[-1], algorithm)
    return found


def try_resume(python: str, saved: list[Path]) -> str:
    config = {"extras": {"mode": "resume_training", "policy_path": str(saved[0])}}
    with Trial("cleanrl_worker.cli", config, python) as trial:
        trial.run(LIMIT_S)
        if trial.code != 0:
            return f"{NO}: {failure(trial)}"
        lost = trial.events("checkpoint_loaded")[0]["payload"]["not_carried_on"]
        end = sorted(Path(trial.ground.run, "checkpoints").glob("*.pt"))[-1]
        if ask(python, COMPARE, str(saved[-1]), str(end)).strip() == "True":
            return "bit for bit"
    return "new episode" if lost else "differs"


def try_evaluation(python: str, checkpoint: Path, algorithm: dict[str, Any]) -> str:
    config = {
        "algo": algorithm["name"],
        "env_id": algorithm["env_id"],
        "extras": {
            "mode": "policy_eval",
            "policy_path": str(checkpoint),
            "eval_episodes": 1,
            "eval_max_episode_steps": 50,
        },
    }
    with Trial("cleanrl_worker.cli", config, python) as trial:
        trial.run(LIMIT_S)
        return YES if trial.code == 0 else f"{NO}: {failure(trial)}"


def run_watched(trial: Trial) -> int:
    """Run it with somebody who looks; returns how many frames were seen."""
    seen = [0]
    stop = threading.Event()

    def look() -> None:
        reader = None
        while not stop.wait(0.05):
            try:
                reader = reader or FastLaneReader.attach(trial.run_id)
                seen[0] += reader.latest_frame() is not None
            except Exception:  # not there yet, or no more
                reader = None

    thread = threading.Thread(target=look)
    thread.start()
    try:
        trial.run(LIMIT_S)
    finally:
        stop.set()
        thread.join()
    return seen[0]


def failure(trial: Trial) -> str:
    told = [line["payload"].get("error", "") for line in trial.events("run_failed")]
    return (told[-1] if told else trial.last_words or f"exit code {trial.code}").splitlines()[0][:120]


def speed(trial: Trial) -> str:
    told = [line["value"] for line in trial.measurements() if line.get("name") == "charts/SPS"]
    return f"{told[-1]:.0f}" if told else "-"


def ask(python: str, code: str, *arguments: str) -> str:
    return subprocess.run(
        [python, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True, check=True
    ).stdout


def make_table(algorithms: list[dict[str, Any]], results: dict[str, dict[str, str]]) -> str:
    lines = ["| algorithm | environment | runs | steps/s | checkpoint | resume | evaluation | frames |"]
    lines.append("|" + "---|" * 8)
    for algorithm in algorithms:
        name = algorithm["name"] + (f" (`@{algorithm['variant']}`)" if algorithm["variant"] else "")
        found = results.get(algorithm["name"])
        if algorithm["reason"]:
            lines.append(f"| {name} | | no: {algorithm['reason']} | | | | | |")
        elif found is None:
            lines.append(f"| {name} | {algorithm['env_id']} | not tried yet | | | | | |")
        else:
            cells = [found.get(key, "") for key in ("runs", "steps_s", "checkpoint", "resume", "eval", "frames")]
            lines.append(f"| {name} | {algorithm['env_id']} | " + " | ".join(cells) + " |")
    day = time.strftime("%Y-%m-%d")
    return (
        "\n".join([*lines, "", f"Made on {day} by `benchmarks/cleanrl_table.py`; steps/s as the script tells it."])
        + "\n"
    )


def write_into_docs(text: str) -> None:
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
