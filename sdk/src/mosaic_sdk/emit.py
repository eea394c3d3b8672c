"""Telemetry: one JSON object per line on stdout, which is the run's spool file.

    from mosaic_sdk import emit
    emit.step(step_index=12, reward=0.5)
    emit.metric("losses/policy", 0.02, step=12)

Promises of an Emitter:

1. A line is in the file when the call returns: one write(2), nothing kept in a buffer.
2. Lines of threads and of forked children stay whole (the spool is opened O_APPEND).
3. It never raises because of the file. Lines that cannot be written (disk full) are counted, and the first line after
   them is preceded by a `telemetry_gap` line that reports how many were lost, when and why.
4. A line that a full disk truncated is ended before anything else is written, so that it damages no other line.

Values may have any type: numpy and torch scalars and arrays are written as numbers, NaN and Infinity as themselves, and
what JSON cannot hold as its repr. Importing this module makes `sys.stdout` line-buffered if it is the same descriptor:
then print() and emit stay in order and neither needs a flush.
"""

import atexit
import json
import os
import select
import stat
import sys
import threading
import time
from typing import Any, Dict, Mapping, Optional, Union

from mosaic_sdk import names

_STDOUT = 1
# Names of this module are looked up faster, and these two are used for every line.
_time_ns = time.time_ns
_write = os.write
# How the line of each kind begins.
_STEP, _EPISODE, _METRIC = (f'{{"{names.EVENT_TYPE_KEY}":"{kind}"' for kind in names.KINDS)


class Emitter:
    """Writes telemetry lines to one descriptor. Every method returns whether its line was written."""

    def __init__(self, fd: int = _STDOUT, run_id: Optional[str] = None) -> None:
        self.run_id = os.environ.get(names.WorkerEnv.RUN_ID, "") if run_id is None else run_id
        self._fd = fd
        # Reentrant, because a signal handler may emit while its own thread is in write_line.
        self._lock = threading.RLock()
        self._is_file = _is_file(fd)
        self._missing = 0  # bytes of the line at the end of the file that did not fit
        self._gap: Optional[_Gap] = None  # lines lost since the last one that was written
        if fd == _STDOUT:
            _line_buffer_stdout()
        os.register_at_fork(after_in_child=self._reset_in_child)
        atexit.register(self._report_gap)  # in case no line follows it

    def step(
        self,
        step_index: int,
        reward: Optional[float] = None,
        *,
        env_index: Optional[int] = None,
        agent_id: Optional[str] = None,
        episode_index: Optional[int] = None,
        terminated: Optional[bool] = None,
        truncated: Optional[bool] = None,
        **more: Any,
    ) -> bool:
        """One environment step. `more`: action, observation, info, episode_seed and any other field."""
        line = f'{_STEP},"step_index":{_number(step_index)}'
        if reward is not None:
            line += f',"reward":{_number(reward)}'
        if env_index is not None:
            line += f',"env_index":{_number(env_index)}'
        if agent_id is not None:
            line += f',"agent_id":{_quoted(agent_id)}'
        if episode_index is not None:
            line += f',"episode_index":{_number(episode_index)}'
        if terminated is not None:
            line += ',"terminated":true' if terminated else ',"terminated":false'
        if truncated is not None:
            line += ',"truncated":true' if truncated else ',"truncated":false'
        return self._finish(line, more) if more else self.write_line(f'{line},"ts_unix_ns":{_time_ns()}}}\n')

    def episode(
        self,
        episode_index: int,
        total_reward: float,
        steps: int,
        *,
        env_index: Optional[int] = None,
        agent_id: Optional[str] = None,
        terminated: Optional[bool] = None,
        truncated: Optional[bool] = None,
        global_step: Optional[int] = None,
        **more: Any,
    ) -> bool:
        """The end of an episode. `global_step`: environment steps of all training envs so far, so that episodes can
        be drawn over steps. `more`: metadata and any other field."""
        line = (
            f'{_EPISODE},"episode_index":{_number(episode_index)}'
            f',"total_reward":{_number(total_reward)},"steps":{_number(steps)}'
        )
        # Field by field, because to_json takes longer for one of them than all of this.
        if env_index is not None:
            line += f',"env_index":{_number(env_index)}'
        if agent_id is not None:
            line += f',"agent_id":{_quoted(agent_id)}'
        if terminated is not None:
            line += ',"terminated":true' if terminated else ',"terminated":false'
        if truncated is not None:
            line += ',"truncated":true' if truncated else ',"truncated":false'
        if global_step is not None:
            line += f',"global_step":{_number(global_step)}'
        return self._finish(line, more)

    def metric(self, name: str, value: float, step: int, **more: Any) -> bool:
        """One value of a curve: a loss, `charts/SPS`, any number."""
        line = f'{_METRIC},"name":{_quoted(name)},"value":{_number(value)},"step":{_number(step)}'
        return self._finish(line, more) if more else self.write_line(f'{line},"ts_unix_ns":{_time_ns()}}}\n')

    def metrics(self, values: Mapping[str, float], step: int, **more: Any) -> bool:
        """Several scalars of the same step in one line."""
        pairs = ",".join([f"{_quoted(name)}:{_number(value)}" for name, value in values.items()])
        return self._finish(f'{_METRIC},"values":{{{pairs}}},"step":{_number(step)}', more)

    def lifecycle(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> bool:
        """An event of the run itself."""
        return self.write_line(self._lifecycle_line(event, payload or {}))

    def run_started(self, payload: Optional[Mapping[str, Any]] = None) -> bool:
        return self.lifecycle(names.RUN_STARTED, payload)

    def run_completed(self, payload: Optional[Mapping[str, Any]] = None) -> bool:
        return self.lifecycle(names.RUN_COMPLETED, payload)

    def run_failed(self, error: Union[str, BaseException], **payload: Any) -> bool:
        """The run failed; followed by exit code 0 it still counts as failed."""
        text = {"error": error} if isinstance(error, str) else {"error": str(error), "error_type": type(error).__name__}
        return self.lifecycle(names.RUN_FAILED, {**text, **payload})

    def run_cancelled(self, reason: str = "", **payload: Any) -> bool:
        return self.lifecycle(names.RUN_CANCELLED, {"reason": reason, **payload})

    def heartbeat(self, progress: Optional[int] = None, **payload: Any) -> bool:
        """`progress`: a counter that grows while work is done. mosaic_sdk.heartbeat sends heartbeats automatically."""
        counter = {} if progress is None else {"progress": progress}
        return self.lifecycle(names.HEARTBEAT, {**counter, **payload})

    def checkpoint_saved(self, path: "Union[str, os.PathLike[str]]", **payload: Any) -> bool:
        return self.lifecycle(names.CHECKPOINT_SAVED, {"path": os.fspath(path), **payload})

    def checkpoint_loaded(self, path: "Union[str, os.PathLike[str]]", **payload: Any) -> bool:
        return self.lifecycle(names.CHECKPOINT_LOADED, {"path": os.fspath(path), **payload})

    def write_line(self, line: str) -> bool:
        """Append `line`, which ends with its newline, in one piece."""
        data = line.encode("utf-8", "backslashreplace")
        done = 0
        if self._is_file and not self._missing and self._gap is None:
            # The usual case is separate and flat, because a training pays for it at every step. The kernel keeps one
            # write to a file whole; taking the lock would cost a third more.
            try:
                done = _write(self._fd, data)
                if done == len(data):
                    return True
            except OSError:
                pass  # handled below
        with self._lock:
            return self._write_carefully(data, done)

    def _finish(self, line: str, more: Dict[str, Any]) -> bool:
        if more:
            line += _fields(more)
            if "ts_unix_ns" in more:
                return self.write_line(line + "}\n")
        return self.write_line(f'{line},"ts_unix_ns":{_time_ns()}}}\n')

    def _lifecycle_line(self, event: str, payload: Mapping[str, Any]) -> str:
        head = f'{{"event":{_quoted(event)},"run_id":{_quoted(self.run_id)},"timestamp":{time.time()!r}'
        return f'{head},"payload":{to_json(payload)}}}\n'

    def _write_carefully(self, data: bytes, done: int) -> bool:
        """Write `data`, of which `done` bytes are in the file, after ending an earlier gap; or count it as lost."""
        try:
            if not done and (self._missing or self._gap):
                self._end_gap()
        except OSError as error:
            return self._lose(error)
        try:
            self._append(data, done)
        except OSError as error:
            # A line that lacks only its newline is read as it is: what is written next, or the end of the run, ends it.
            return self._missing == 1 or self._lose(error)
        return True

    def _lose(self, error: OSError) -> bool:
        self._gap = self._gap or _Gap()
        self._gap.add(error.strerror or str(error))
        return False

    def _append(self, data: bytes, done: int = 0) -> None:
        """Write all of `data`, or raise OSError and remember how much of it is missing if a part is in the file."""
        try:
            while done < len(data):
                try:
                    done += _write(self._fd, data[done:])
                except BlockingIOError:  # a full pipe that was made non-blocking
                    _wait_until_writable(self._fd)
        finally:
            if done:
                self._missing = len(data) - done

    def _end_gap(self) -> None:
        """End a truncated line and report the lost ones, or raise OSError."""
        gap = self._lifecycle_line(names.TELEMETRY_GAP, self._gap.payload()) if self._gap else ""
        self._append((("\n" if self._missing else "") + gap).encode())
        self._gap = None

    def _report_gap(self) -> None:
        with self._lock:
            try:
                if self._missing or self._gap:
                    self._end_gap()
            except OSError:
                pass  # the disk is still full

    def _reset_in_child(self) -> None:
        # In a forked child: another thread may have held the lock, and the parent reports its own gap.
        self._lock = threading.RLock()
        self._gap = None


class _Gap:
    """Lines that could not be written."""

    def __init__(self) -> None:
        self.lines = 0
        self.first_ts = self.last_ts = time.time()
        self.reason = ""

    def add(self, reason: str) -> None:
        self.lines += 1
        self.last_ts = time.time()
        self.reason = reason

    def payload(self) -> Dict[str, Any]:
        return {"lines": self.lines, "first_ts": self.first_ts, "last_ts": self.last_ts, "reason": self.reason}


def _is_file(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:  # closed
        return False


def _wait_until_writable(fd: int) -> None:
    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    poller.poll()


def _line_buffer_stdout() -> None:
    out = sys.stdout
    try:
        # Not a flush before every line: that would write the first part of a line that print(end="") has not finished.
        if out.fileno() == _STDOUT and not out.line_buffering:
            out.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        pass  # closed, or replaced by an object (pytest, notebooks) without a descriptor


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _number(value: Any) -> str:
    """A scalar as JSON; the fast path is for the two types that nearly every value has."""
    kind = type(value)
    if kind is float:
        text = repr(value)
        return text if text[-1] not in "nf" else _NOT_FINITE[text]
    if kind is int:
        return repr(value)
    return _odd_number(value)


def _odd_number(value: Any) -> str:
    """A bool, a numpy scalar, a one-element tensor; anything else unchanged."""
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, int):
        return repr(int(value))
    number = value.tolist() if hasattr(value, "tolist") else value
    return _odd_number(number) if isinstance(number, (float, int)) else to_json(number)


_quoted_texts: Dict[str, str] = {}


def _quoted(text: Any) -> str:
    """A name as JSON, cached: a run has few names and uses them often."""
    found = _quoted_texts.get(text) if type(text) is str else None
    if found is None:
        found = to_json(text)
        # Names that contain a counter must not fill the memory.
        if type(text) is str and len(_quoted_texts) < 4096:
            _quoted_texts[text] = found
    return found


def _fields(more: Mapping[str, Any]) -> str:
    return "".join([f",{_quoted(key)}:{to_json(value)}" for key, value in more.items()])


def to_json(value: Any) -> str:
    """Any value as JSON: arrays and scalars of numpy, torch and jax as numbers, what JSON cannot hold as its repr."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):  # invalid keys, a cycle, too deep
        return _encode(repr(value))


def json_default(value: Any) -> Any:
    """What JSON can hold of an object that it does not know."""
    for method in ("tolist", "item"):  # numpy, torch, jax, without importing them
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    return float(value) if hasattr(value, "__float__") else repr(value)


_encode = json.JSONEncoder(separators=(",", ":"), default=json_default).encode

_stdout = Emitter()


def stdout() -> Emitter:
    """The emitter behind this module's functions."""
    return _stdout


step = _stdout.step
episode = _stdout.episode
metric = _stdout.metric
metrics = _stdout.metrics
lifecycle = _stdout.lifecycle
run_started = _stdout.run_started
run_completed = _stdout.run_completed
run_failed = _stdout.run_failed
run_cancelled = _stdout.run_cancelled
heartbeat = _stdout.heartbeat
checkpoint_saved = _stdout.checkpoint_saved
checkpoint_loaded = _stdout.checkpoint_loaded
