"""The standard command line of a worker: its flags, its lifecycle lines, its exit codes.

    def train(config, args):
        ...
        return {"total_steps": 1000}          # becomes the payload of run_completed

    if __name__ == "__main__":
        sys.exit(run_worker(train))

Exit codes: 0 done, 1 failed, 2 usage or config error, 130 interrupted, 143 stopped by SIGTERM.
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
Interact = Callable[[Config, argparse.Namespace], Optional[int]]


class WorkerStopped(BaseException):
    """SIGTERM was received. Not an Exception, so that a library's `except Exception` does not swallow it."""


class WorkFailed(Exception):
    """The work failed for a reason that the text explains: it is printed alone, without a traceback."""


def standard_parser(prog: Optional[str] = None, description: Optional[str] = None) -> argparse.ArgumentParser:
    """The flags that every worker takes; add your own to it."""
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    parser.add_argument("--config", required=True, metavar="FILE", help="the worker's config file (JSON)")
    parser.add_argument("--grpc", action="store_true", help="the daemon can be called at --grpc-target")
    parser.add_argument("--grpc-target", default="127.0.0.1:50055", metavar="HOST:PORT")
    parser.add_argument("--dry-run", action="store_true", help="check the config, print what would run, and exit")
    parser.add_argument("--interactive", action="store_true", help="read commands from stdin")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more to stderr")
    return parser


def run_worker(
    work: Work,
    *,
    argv: Optional[Sequence[str]] = None,
    parser: Optional[argparse.ArgumentParser] = None,
    check: Optional[Callable[[Config], Any]] = None,
    interactive: Optional[Interact] = None,
) -> int:
    """Parse the command line, load the config, run `work`; returns the exit code.

    `check` raises ConfigError for a config that cannot be used. `interactive` is run instead of `work` for
    --interactive, and may return an exit code.
    """
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
    if args.config != os.environ.get(WorkerEnv.CONFIG_FILE):
        # Started by a script that is observed: a worker reports itself, and everything would be reported twice.
        os.environ[WorkerEnv.OBSERVE] = "0"
    if args.interactive and interactive is not None:
        # stdout belongs to the protocol then: no lifecycle lines.
        return interactive(config, args) or DONE
    return conduct(lambda: work(config, args))


def conduct(work: Callable[[], Optional[Mapping[str, Any]]], emitter: Optional[emit.Emitter] = None) -> int:
    """Run `work` between run_started and run_completed, run_failed or run_cancelled; returns the exit code."""
    telemetry = emitter or emit.stdout()
    try:
        with _sigterm_raises():
            telemetry.run_started()
            result = work()
    except WorkerStopped:
        telemetry.run_cancelled("SIGTERM")
        return STOPPED
    except KeyboardInterrupt:
        telemetry.run_cancelled("SIGINT")
        return INTERRUPTED
    except SystemExit as error:
        return _end_by_exit(error, telemetry)
    except (ConfigError, WorkFailed) as error:
        # The user has to correct the config: a traceback would hide the reason.
        print(error, file=sys.stderr)
        telemetry.run_failed(error)
        return USAGE if isinstance(error, ConfigError) else FAILED
    except Exception as error:  # noqa: BLE001  # the edge of the process: every error is reported as run_failed
        _print_traceback()
        telemetry.run_failed(error)
        return FAILED
    telemetry.run_completed(result)
    return DONE


def refuse(error: ConfigError, emitter: Optional[emit.Emitter] = None) -> int:
    """Report why the config cannot be used; returns the exit code."""
    print(error, file=sys.stderr)
    if WorkerEnv.RUN_ID in os.environ:
        (emitter or emit.stdout()).run_failed(error)
    return USAGE


def print_dry_run(config: Mapping[str, Any]) -> int:
    """Print what would run, as text: a dry run has no telemetry."""
    print("The config is valid. Nothing was run:", json.dumps(config, default=str))
    return DONE


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """SIGTERM raises WorkerStopped in the main thread, once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    handler = _stop_once(os.getpid())
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        # After a stop, SIGTERM stays ignored: a second one must not interrupt the last lines.
        if signal.getsignal(signal.SIGTERM) is handler:
            signal.signal(signal.SIGTERM, before)


def _stop_once(owner_pid: int) -> Callable[[int, Optional[FrameType]], None]:
    def handle(number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != owner_pid:
            # A forked child must die, not unwind into its parent's run_cancelled.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise WorkerStopped

    return handle


def _end_by_exit(error: SystemExit, telemetry: emit.Emitter) -> int:
    """A library called sys.exit(): with 0 or nothing it succeeded, otherwise it failed."""
    if error.code is None or error.code == 0:
        telemetry.run_completed()
        return DONE
    if not isinstance(error.code, int):
        print(error.code, file=sys.stderr)
    telemetry.run_failed(f"exit: {error.code}")
    return error.code if isinstance(error.code, int) else FAILED


def _print_traceback() -> None:
    import traceback  # here, because most runs need none and importing it takes a tenth of the start

    traceback.print_exc()


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
