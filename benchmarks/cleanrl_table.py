"""Tries every algorithm of the CleanRL worker: whether it runs, saves, resumes, evaluates and shows frames.

python benchmarks/cleanrl_table.py --python ENV/bin/python [--jax-python ENV/bin/python] [--only dqn ppo] [--write]

Each is trained for a few hundred steps with a viewer, resumed from the checkpoint halfway, and evaluated; then trained
again without a viewer to measure steps per second of CPU time (`--speed`: only this). `--write` updates each row of the
table in docs/howto/cleanrl.md as soon as it is known and keeps the others, so the work can be split.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane import FastLaneReader
from mosaic_sdk.fastlane.control import FastLaneError
from mosaic_sdk.lab import processes
from mosaic_sdk.lab.trial import Trial
from rig import ticked_cpu_s

DOCS = Path(__file__).parents[1] / "docs" / "howto" / "cleanrl.md"
BEGIN, END = "<!-- table: benchmarks/cleanrl_table.py -->\n", "<!-- end of table -->\n"
LIMIT_S = 1800
YES, NO = "yes", "no"
COLUMNS = ("runs", "steps_s", "checkpoint", "resume", "eval", "frames")
FRAMES = 3
# A speed is measured over this much CPU time, from the first speed that the script reports.
SPEED_CPU_S = 4.0
FOREVER = 10_000_000
REPORTED = re.compile(rb'"charts/SPS","value":[^,]+,"step":(\d+)')

# Runs in the worker's own Python: every algorithm, and a short training that suits it.
QUESTION = """
import dataclasses, json
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.short import short_config, teacher_of
found = [{**dataclasses.asdict(a), "reason": a.reason, "config": short_config(a)} for a in ALGORITHMS.values()]
for a in found:
    teacher = teacher_of(ALGORITHMS[a["name"]])
    a["teacher"] = short_config(ALGORITHMS[teacher]) if teacher else None
print(json.dumps(found))
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
    # Absolute: a worker's working folder is its run folder.
    parser.add_argument("--python", required=True, type=os.path.abspath, help="the Python of the worker's environment")
    parser.add_argument("--jax-python", type=os.path.abspath, help="the Python of the environment of its variant jax")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument(
        "--speed",
        action="store_true",
        help="measure only the steps per second, of the algorithms that are known to run",
    )
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    results = read_table(DOCS.read_text())
    algorithms = json.loads(ask(args.python, QUESTION))
    for algorithm in algorithms:
        name = algorithm["name"]
        python = args.jax_python if algorithm["variant"] == "jax" else args.python
        if algorithm["reason"] or not python or (args.only and name not in args.only):
            continue
        with taught(algorithm, python):
            if not args.speed:
                results[name] = try_out(algorithm, python)
            if results.get(name, {}).get("runs") == YES:
                results[name]["steps_s"] = try_speed(algorithm, python)
        print(name, results.get(name), flush=True)
        if args.write:
            write_into_docs(make_table(algorithms, results))
    print(make_table(algorithms, results))


@contextmanager
def taught(algorithm: dict[str, Any], python: str) -> Iterator[None]:
    """Inside the block the config names a teacher's run, if the algorithm needs one."""
    if not algorithm["teacher"]:
        yield
        return
    with Trial("cleanrl_worker.cli", algorithm["teacher"], python) as teacher:
        teacher.run(LIMIT_S)
        algorithm["config"]["extras"]["algo_params"]["teacher_path"] = teacher.ground.run
        yield


def try_out(algorithm: dict[str, Any], python: str) -> dict[str, str]:
    with Trial("cleanrl_worker.cli", algorithm["config"], python) as whole:
        frames = run_watched(whole)
        if whole.code != 0:
            return {"runs": f"{NO}: {failure(whole)}"}
        saved = sorted(Path(whole.ground.run, "checkpoints").glob("*.pt"))
        found = {"runs": YES, "frames": YES if frames else NO}
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
    """Run it with a viewer until a few frames were shown (some take longer to render than a hundred steps)."""
    seen = [0]
    stop = threading.Event()

    def look() -> None:
        reader = None
        while not stop.wait(0.05) and seen[0] < FRAMES:
            try:
                reader = reader or FastLaneReader.attach(trial.run_id)
                seen[0] += reader.latest_frame() is not None
            except (OSError, FastLaneError):  # not created yet, or already removed
                reader = None
        if reader:
            reader.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        trial.run(LIMIT_S)
    finally:
        stop.set()
        thread.join()
    return seen[0]


def failure(trial: Trial) -> str:
    errors = [line["payload"].get("error", "") for line in trial.events("run_failed")]
    words = (errors[-1] if errors else trial.last_words or f"exit code {trial.code}").splitlines()[0]
    return words[:120].replace("|", "/")


def try_speed(algorithm: dict[str, Any], python: str) -> str:
    """Steps per second of CPU time, without a viewer: this does not depend on the load of the machine."""
    points: list[tuple[int, float]] = []

    def is_enough() -> bool:
        step = last_step(trial)
        if step > (points[-1][0] if points else 0):
            points.append((step, cpu_s(trial)))
        return len(points) > 1 and points[-1][1] - points[0][1] >= SPEED_CPU_S

    with Trial("cleanrl_worker.cli", speed_config(algorithm), python) as trial:
        trial.start()
        if not trial.wait_for(is_enough, LIMIT_S):
            return "-"
    (first, before), (last, after) = points[0], points[-1]
    return f"{(last - first) / (after - before):.0f}"


def cpu_s(trial: Trial) -> float:
    total = 0.0
    for pid in processes.naming(trial.run_id):
        with suppress(OSError):  # it has just exited
            total += ticked_cpu_s(pid)
    return total


def speed_config(algorithm: dict[str, Any]) -> dict[str, Any]:
    """The config of the row, but endless, and with the script's own batch size and number of epochs."""
    config = algorithm["config"]
    params = {
        key: value
        for key, value in config["extras"]["algo_params"].items()
        if key not in ("batch_size", "update_epochs")
    }
    if algorithm["name"].startswith(("dqn", "c51")):
        params["start_e"] = 0.05  # as they act for most of a training
    return {**config, "total_timesteps": FOREVER, "extras": {"checkpoint_every": FOREVER, "algo_params": params}}


def last_step(trial: Trial) -> int:
    """The step at which the script last reported its speed; 0 before the first."""
    with open(trial.stdout_file, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - (1 << 16)))
        steps = REPORTED.findall(file.read())
    return int(steps[-1]) if steps else 0


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
            cells = [found.get(key, "") for key in COLUMNS]
            lines.append(f"| {name} | {algorithm['env_id']} | " + " | ".join(cells) + " |")
    day = time.strftime("%Y-%m-%d")
    return "\n".join([*lines, "", f"Generated on {day} by `benchmarks/cleanrl_table.py`."]) + "\n"


def read_table(page: str) -> dict[str, dict[str, str]]:
    """The table for the documentation."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {
        name.split()[0]: dict(zip(COLUMNS, cells, strict=True))
        for name, env_id, *cells in rows[2:]
        if env_id and cells[0].startswith((YES, NO + ":"))
    }


def write_into_docs(text: str) -> None:
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
