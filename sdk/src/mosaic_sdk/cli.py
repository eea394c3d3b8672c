"""The standard command line of a worker: its flags, its lifecycle lines, its exit codes.

    def train(config, args):
        ...
        return {"total_steps": 1000}          # becomes the payload of run_completed

    if __name__ == "__main__":
        sys.exit(run_worker(train))

Exit codes: 0 done, 1 failed, 2 wrong usage or config, 130 interrupted, 143 stopped by SIGTERM.
"""

import argparse
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

from mosaic_sdk import emit
from mosaic_sdk.config import ConfigError, load_config
from mosaic_sdk.names import WorkerEnv

DONE, FAILED, USAGE, INTERRUPTED, STOPPED = 0, 1, 2, 130, 143

Config = Dict[str, Any]
Work = Callable[[Config, argparse.Namespace], Optional[Mapping[str, Any]]]


class WorkerStopped(BaseException):
    """SIGTERM came. Not an Exception, so that a library's `except Exception` does not swallow the wish to stop."""


class WorkFailed(Exception):
    """The work failed and the text says all there is to say: it is printed alone, without a traceback."""


def standard_parser(prog: Optional[str] = None, description: Optional[str] = None) -> argparse.ArgumentParser:
    """The flags every worker understands; add your own to it."""
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    parser.add_argument("--config", required=True, metavar="FILE", help="the worker's config, JSON")
    parser.add_argument("--grpc", action="store_true", help="the daemon listens at --grpc-target")
    parser.add_argument("--grpc-target", default="127.0.0.1:50055", metavar="HOST:PORT")
    parser.add_argument("--dry-run", action="store_true", help="check the config, say what would run, and leave")
    parser.add_argument("--interactive", action="store_true", help="take commands on stdin")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more to stderr")
    return parser


def run_worker(
    work: Work,
    *,
    argv: Optional[Sequence[str]] = None,
    parser: Optional[argparse.ArgumentParser] = None,
    check: Optional[Callable[[Config], None]] = None,
    interactive: Optional[Work] = None,
) -> int:
    """Parse, load the config, `check` it (ConfigError: it cannot be used), do the work; returns the exit code."""
    parser = parser or standard_parser()
    args = parser.parse_args(argv)
    if args.interactive and interactive is None:
        parser.error("this worker has no interactive mode")
    if args.verbose:
        _log_to_stderr()
    try:
        config = load_config(args.config)
        if check is not None:
            check(config)
    except ConfigError as error:
        return refuse(error)
    if args.dry_run:
        return print_dry_run(config)
    emit.stdout().run_id = str(config.get("run_id", ""))
    if args.interactive and interactive is not None:
        # stdout is the operator's channel then: no lifecycle lines.
        interactive(config, args)
        return DONE
    return conduct(lambda: work(config, args))


def conduct(work: Callable[[], Optional[Mapping[str, Any]]], emitter: Optional[emit.Emitter] = None) -> int:
    """Do `work` between run_started and run_completed, run_failed or run_cancelled; returns the exit code."""
    tell = emitter or emit.stdout()
    try:
        with _sigterm_raises():
            tell.run_started()
            result = work()
    except WorkerStopped:
        tell.run_cancelled("SIGTERM")
        return STOPPED
    except KeyboardInterrupt:
        tell.run_cancelled("SIGINT")
        return INTERRUPTED
    except SystemExit as error:
        return _end_by_exit(error, tell)
    except (ConfigError, WorkFailed) as error:
        # A config that proves to be unusable only now is still the user's to mend: frames of ours would bury the words.
        print(error, file=sys.stderr)
        tell.run_failed(error)
        return USAGE if isinstance(error, ConfigError) else FAILED
    except Exception as error:
        _print_traceback()
        tell.run_failed(error)
        return FAILED
    tell.run_completed(result)
    return DONE


def refuse(error: ConfigError, emitter: Optional[emit.Emitter] = None) -> int:
    """Say why the config cannot be used."""
    print(error, file=sys.stderr)
    if WorkerEnv.RUN_ID in os.environ:
        (emitter or emit.stdout()).run_failed(error)
    return USAGE


def print_dry_run(config: Mapping[str, Any]) -> int:
    """Say what would run. Not telemetry, so the run ends without having measured anything."""
    print("The config can be used. Nothing is run:", json.dumps(config, default=str))
    return DONE


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """SIGTERM raises WorkerStopped in the main thread, once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may have handlers
        return
    handler = _stop_once(os.getpid())
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        # Not after a stop: later SIGTERMs must not cut the last words short.
        if signal.getsignal(signal.SIGTERM) is handler:
            signal.signal(signal.SIGTERM, before)


def _stop_once(owner_pid: int) -> Callable[[int, Optional[FrameType]], None]:
    def handle(number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != owner_pid:
            # A forked child must die of it, not unwind into its parent's run_cancelled.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise WorkerStopped

    return handle


def _end_by_exit(error: SystemExit, tell: emit.Emitter) -> int:
    """A library called sys.exit(): with 0 or nothing it is done, else it failed."""
    if error.code is None or error.code == 0:
        tell.run_completed()
        return DONE
    if not isinstance(error.code, int):
        print(error.code, file=sys.stderr)
    tell.run_failed(f"exit: {error.code}")
    return error.code if isinstance(error.code, int) else FAILED


def _print_traceback() -> None:
    import traceback  # here, because most runs need none and it costs a tenth of the start

    traceback.print_exc()


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
