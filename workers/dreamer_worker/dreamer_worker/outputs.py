"""Where the logger's numbers go: a JSONL file, TensorBoard, MOSAIC's telemetry, a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mosaic_sdk.names import EVAL_AGENT

from dreamer_worker.telemetry import Telemetry

Scalars = dict[str, float]


class Output(Protocol):
    def scalars(self, step: int, values: Scalars) -> None: ...
    def episode(self, step: int, number: int, episode: dict[str, Any]) -> None: ...
    def close(self) -> None: ...


def make_outputs(names: list[str], logdir: str, run_id: str) -> list[Output]:
    makers: dict[str, Callable[[], Output]] = {
        "jsonl": lambda: Jsonl(Path(logdir) / "metrics.jsonl"),
        "tensorboard": lambda: TensorBoard(Path(logdir) / "tensorboard"),
        "mosaic": lambda: Mosaic(Telemetry(run_id=run_id)),
        "terminal": Terminal,
    }
    return [makers[name]() for name in names]


class Jsonl:
    """One line per write: {"step": …, "time": …, name: value}. A restarted logger appends to the same file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a", buffering=1)  # noqa: SIM115

    def scalars(self, step: int, values: Scalars) -> None:
        self._write({"step": step, "time": round(time.time(), 3), **values})

    def episode(self, step: int, number: int, episode: dict[str, Any]) -> None:
        self._write({"step": step, "time": round(time.time(), 3), "episode": number, **episode})

    def close(self) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps({key: _finite(value) for key, value in line.items()}) + "\n")


class TensorBoard:
    """Event files, written with tensorboardX's EventsWriter: its SummaryWriter would start another process."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX.event_file_writer import EventsWriter

        folder.mkdir(parents=True, exist_ok=True)
        # A logger that is restarted within the same second must not write into the file of the previous one.
        self._writer = EventsWriter(str(folder / "events"), f".{os.getpid()}")

    def scalars(self, step: int, values: Scalars) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        written = [Summary.Value(tag=name, simple_value=float(value)) for name, value in values.items()]
        self._writer.write_event(Event(step=step, wall_time=time.time(), summary=Summary(value=written)))
        self._writer.flush()

    def episode(self, step: int, number: int, episode: dict[str, Any]) -> None:
        prefix = "eval_episode" if episode["eval"] else "episode"
        self.scalars(step, {f"{prefix}/score": episode["score"], f"{prefix}/length": episode["length"]})

    def close(self) -> None:
        self._writer.close()


class Mosaic:
    """MOSAIC's telemetry lines on stdout. Evaluation episodes have the agent_id `eval`."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def scalars(self, step: int, values: Scalars) -> None:
        self._telemetry.metrics(values, step)

    def episode(self, step: int, number: int, episode: dict[str, Any]) -> None:
        more: dict[str, Any] = {"agent_id": EVAL_AGENT} if episode["eval"] else {}
        if "seed" in episode:
            more["episode_seed"] = episode["seed"]
        self._telemetry.episode(
            number,
            episode["score"],
            episode["length"],
            env_index=episode.get("env"),
            terminated=episode["terminated"],
            truncated=not episode["terminated"],
            global_step=step,
            **more,
        )

    def close(self) -> None:
        pass


class Terminal:
    def scalars(self, step: int, values: Scalars) -> None:
        shown = [
            f"{name} {value:.4g}" for name, value in sorted(values.items()) if "timer" not in name and "rpc" not in name
        ]
        print(f"step {step}: " + " / ".join(shown), file=sys.stderr)

    def episode(self, step: int, number: int, episode: dict[str, Any]) -> None:
        kind = "evaluation episode" if episode["eval"] else "episode"
        where = f" of env {episode['env']}" if "env" in episode else ""
        print(f"step {step}: {kind} {number}{where}: {episode['score']:.4g}", file=sys.stderr)

    def close(self) -> None:
        pass


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity, and other readers may not accept Python's notation: write them as text."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
