"""The end of an evaluation: what is written into the run's folder."""

import os
import subprocess
import sys
import traceback
from typing import Any

from mosaic_sdk.operators.script import EvalScript
from mosaic_sdk.results.summary import EvalResults

from eval_worker.analytics import write_manifest
from eval_worker.clips import Clips
from eval_worker.config import EvalConfig
from eval_worker.launch import DEMONSTRATIONS

_EXPORT_S = 600.0
STOPPED = "The evaluation was stopped before its end; these are the episodes that were finished."


def write_partial(results: EvalResults, run_dir: str) -> None:
    """What is finished, of an evaluation that was stopped: quickly, because the process is about to be killed."""
    results.warn(STOPPED)
    results.write(run_dir)


def write_all(
    config: EvalConfig, script: EvalScript, results: EvalResults, clips: Clips, run_dir: str
) -> dict[str, Any]:
    """Summary, report, demonstrations and manifest; returns the payload of run_completed."""
    for problem in dict.fromkeys(clips.problems):
        results.warn(problem)
    if script.record:
        _export_demonstrations(results, run_dir)
    results.write(run_dir)
    summary = results.summary(run_dir)
    _write_report(run_dir, summary, clips)
    episodes = sum(entry["episodes"] for entry in summary["operators"].values())
    write_manifest(config.run_id, {"env_id": script.env["id"], "operators": list(script.operators)})
    means = {name: entry["mean_return"] for name, entry in summary["operators"].items()}
    return {"episodes": episodes, "mean_return": means}


def _write_report(run_dir: str, summary: dict[str, Any], clips: Clips) -> None:
    try:
        from eval_worker.report import write_report

        write_report(run_dir, summary, clips.written)
    except Exception:  # noqa: BLE001  # the results are on disk; a page that cannot be drawn must not fail the run
        traceback.print_exc()


def _export_demonstrations(results: EvalResults, run_dir: str) -> None:
    """In a process of its own: the libraries for it are the environments', which the conductor does not import."""
    if not os.path.isdir(os.path.join(run_dir, DEMONSTRATIONS)):
        return
    argv = [sys.executable, "-m", "eval_worker", "--export-demonstrations", run_dir]
    try:
        done = subprocess.run(
            argv,
            cwd=run_dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_EXPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        results.warn(f"The demonstrations were not exported: no end in {_EXPORT_S:g} s.")
        return
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        results.warn(f"The demonstrations were not exported: {lines[-1]}")
