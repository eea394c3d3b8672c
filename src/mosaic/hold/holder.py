"""The holder of one run: starts the worker's process tree, keeps its deadlines, ends it, and durably records its end.

It runs outside the tree, needs no other process, and imports only the standard library, because a week of training
depends on it. Its promises (tests/unit/hold/test_hold.py):
1. one holder per run, and started.json on disk before the worker's first instruction;
2. exit.json on disk after the last process of the tree is gone, or marked unkillable;
3. when the holder is killed, the tree is killed with it;
4. an idle run costs no CPU: the holder sleeps in poll() without a timeout.
"""

import errno
import gc
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from mosaic.hold import init, kernel, owner
from mosaic.hold.ending import Ending, Step
from mosaic.hold.launch import BadLaunch, Launch
from mosaic.hold.outcome import Outcome
from mosaic.hold.spawn import Command
from mosaic.hold.spool import Drain, Reserve, SpoolFile
from mosaic.hold.tailer_child import TailerChild
from mosaic.hold.tree import CannotHold, Tree, start_tree, strongest_first
from mosaic.model import durable, procfs
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.rundir import RunDir
from mosaic.model.shortage import EXIT_CODE, is_shortage

if TYPE_CHECKING:
    from mosaic.hold.commands import CommandFeed

# The last one is sent by the tailer of a run on another machine.
_CAUSES = {int(signal.SIGTERM): "cancel", int(signal.SIGUSR1): "hang", int(signal.SIGUSR2): "lost contact"}
_REQUESTS = {Step.AUTOPSY: init.AUTOPSY, Step.TERMINATE: init.TERMINATE, Step.KILL: init.KILL}
_CHECK_STRAYS_S = 0.05
_RETRY_WRITE_S = 1.0  # then twice as long each time, up to …
_LONGEST_RETRY_S = 15.0


def main(arguments: "list[str]") -> int:
    # First of all: a cancel that arrives during the start must wait in the pipe, not kill a holder that owns a lock.
    signals = _open_signals()
    try:
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))  # argparse would cost a tenth of the start
        run_dir, attempt = RunDir(os.path.abspath(options["--run-dir"])), int(options["--attempt"])
        if "--nofile" in options:
            _limit_open_files(int(options["--nofile"]))
    except (KeyError, ValueError):
        say("usage: hold/__main__.py --run-dir DIR --attempt N [--nofile N] [--node NAME] [--job ID]")
        return 2
    try:
        place = {name: options[f"--{name}"] for name in ("node", "job") if options.get(f"--{name}")}
        Holder(run_dir, owner.take(run_dir, attempt), signals, place).run()
    except owner.NotOwner as why:
        say(f"Exiting: {why}.")
    except NotNow as error:
        say(f"Exiting, nothing was started: {error}.")
        return EXIT_CODE
    except BadLaunch as error:
        say(str(error))
        return 3
    except Exception:  # noqa: BLE001 - the edge of the process: the traceback goes to the log, and the tree ends
        import traceback  # only here, because it imports much

        say(f"The holder of {run_dir.run_id} failed; its tree ends with it.\n{traceback.format_exc()}")
        return 1
    return 0


class NotNow(MosaicError):
    """There are no descriptors, processes or memory left for the worker; the daemon tries again later."""


class Holder:
    def __init__(self, run_dir: RunDir, launch: Launch, signals: int, place: "dict[str, str] | None" = None) -> None:
        self._run_dir = run_dir
        self._place = place or {}  # the node and the job, of a run on a cluster
        self._launch = launch
        self._signals = signals
        self._ending = Ending(launch.grace_s, launch.unkillable_s)
        self._outcome = Outcome()
        self._files: list[SpoolFile] = []
        self._drains: list[Drain] = []
        self._commands: CommandFeed | None = None
        self._tree: Tree | None = None
        self._is_over = False  # no process of the tree is left, or it cannot be killed
        self._is_written = False  # exit.json
        self._check_again_at: float | None = None
        self._write_at = 0.0  # not before this time: the last try has failed
        self._write_pause_s = _RETRY_WRITE_S

    def run(self) -> None:
        self._start_worker()
        # The worker runs, so what follows may take its time.
        gc.enable()
        self._tailer = TailerChild(self._tailer_command(), say)
        self._reserve = Reserve(self._files)
        self._turn(time.monotonic())
        while not (self._is_written and self._tailer.is_done):
            self._sleep(time.monotonic())
            self._turn(time.monotonic())

    # The start

    def _start_worker(self) -> None:
        try:
            failpoint("hold.owned")
            self._open_spool()
            self._open_commands()
            self._tree = self._start_tree()
            failpoint("hold.tree")
            self._write_started(self._tree)
            failpoint("hold.started")
        except (OSError, CannotHold) as error:
            if self._tree is None and isinstance(error, OSError) and is_shortage(error.errno):
                raise NotNow(str(error)) from error
            self._fail(f"The run cannot be started: {error}")
            return
        now = time.monotonic()
        self._read_signals(now)
        if self._ending.cause is None:
            self._tree.request(init.GO)
            self._ending.limit(now, self._launch.time_limit_s)
        failpoint("hold.going")

    def _open_spool(self) -> None:
        self._files = [SpoolFile(self._run_dir.stdout), SpoolFile(self._run_dir.stderr)]
        if self._launch.pipe or not all(file.is_protected for file in self._files):
            self._drains = [Drain(file) for file in self._files]

    def _open_commands(self) -> None:
        if self._launch.commands:
            from mosaic.hold.commands import CommandFeed  # only here: most workers take no commands

            # Another machine than the daemon's is not told of what the daemon appends.
            self._commands = CommandFeed(self._run_dir.commands, say, is_watched=not self._place)

    def _start_tree(self) -> Tree:
        launch = self._launch
        stdout, stderr = [drain.sink for drain in self._drains] or [file.fd for file in self._files]
        stdin = self._commands.source if self._commands else None
        env = {**launch.env, **{name: os.environ[name] for name in launch.inherit if name in os.environ}}
        worker = Command(launch.argv, env, launch.cwd, stdout, stderr, stdin=stdin)
        try:
            means = strongest_first(launch.hold, os.geteuid())
            return start_tree(means, self._run_dir, worker, self._ending.sweep_s, say)
        finally:
            # Only the tree may keep the worker's ends: the other ends then tell when it is gone.
            for fd in [drain.sink for drain in self._drains] + ([] if stdin is None else [stdin]):
                os.close(fd)

    def _write_started(self, tree: Tree) -> None:
        started = {
            "version": 1,
            "attempt": self._launch.attempt,
            "secret": self._launch.secret,
            "holder_pid": os.getpid(),
            "root_pid": tree.root_pid,
            "root_start_ticks": procfs.start_ticks(tree.root_pid),
            "boot_id": procfs.boot_id(),
            "started_at": time.time(),
            "held_by": tree.held_by,
            **self._place,
        }
        durable.write_json(self._run_dir.started, started)

    def _fail(self, error: str) -> None:
        say(error)
        self._outcome.error = error
        if self._tree is None:
            self._is_over = True
        else:
            self._tree.request(init.KILL)
            self._ending.worker_ended(time.monotonic())

    def _tailer_command(self) -> "Command | None":
        if not self._launch.tailer_argv or not self._files:
            return None
        log = self._open_tailer_log()
        stdout, stderr = (file.fd for file in self._files)
        argv = [*self._launch.tailer_argv, "--stdout-fd", str(stdout), "--stderr-fd", str(stderr)]
        # In "/": the worker may have made its folder unreadable.
        return Command(argv, self._launch.tailer_env, "/", log, log, keep=(stdout, stderr))

    def _open_tailer_log(self) -> int:
        return durable.open_log(self._run_dir.tailer_log)  # a full disk is no reason to end a running worker

    # The loop

    def _sleep(self, now: float) -> None:
        """Sleep until a descriptor is readable or a deadline is reached."""
        poll = select.poll()
        for fd in self._descriptors(now):
            poll.register(fd, select.POLLIN)
        if self._commands and (wait := self._commands.waits_for()):
            poll.register(*wait)
        deadlines = [at for at in self._deadlines(now) if at is not None]
        ready = poll.poll(init.poll_ms(min(deadlines) - now if deadlines else None))
        if any(fd == self._reserve.waits_for(now) for fd, _ in ready):
            self._reserve.note_writes(now)

    def _descriptors(self, now: float) -> "list[int]":
        fds = [self._signals, *(drain.source for drain in self._drains if drain.wants_more)]
        if self._tree is not None and not self._tree.is_silent:
            fds.append(self._tree.reports)
        growth = self._reserve.waits_for(now)
        return fds if growth is None or self._is_over else [*fds, growth]

    def _deadlines(self, now: float) -> "list[float | None]":
        deadlines = [self._tailer.next_at, self._check_again_at, *(drain.retry_at for drain in self._drains)]
        if self._commands:
            deadlines.append(self._commands.next_at(now))
        return deadlines if self._is_over else [*deadlines, self._ending.next_at, self._reserve.next_at(now)]

    def _turn(self, now: float) -> None:
        self._check_again_at = None
        self._read_signals(now)
        if not self._is_over:
            self._take_steps(now)
            self._read_reports(now)
        for drain in self._drains:
            drain.pump(now)
        if self._commands:
            self._commands.pump()
        if self._is_over and not self._is_written:
            self._finish(now)
        self._tailer.supervise(now)

    def _read_signals(self, now: float) -> None:
        try:
            numbers = os.read(self._signals, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number in _CAUSES:
                say(f"Received {procfs.signal_name(number)}: ending the run ({_CAUSES[number]}).")
                self._ending.begin(_CAUSES[number], now)

    def _take_steps(self, now: float) -> None:
        assert self._tree is not None
        for step in self._ending.due(now):
            say(f"Ending the tree: {step.value}.")
            if step is Step.FORCE:
                self._tree.force()
            elif step is Step.GIVE_UP:
                self._outcome.is_unkillable = self._is_over = True
            else:
                self._tree.request(_REQUESTS[step])

    def _read_reports(self, now: float) -> None:
        """Read how the worker ended, and check whether any process is left."""
        assert self._tree is not None
        root_is_gone = self._tree.reap_root()  # before reading its reports, so that its last one is included
        for report in self._tree.read_reports():
            if "failure" in report:
                say(f"The root process failed.\n{report['failure']}")
                continue
            self._outcome.note(report)
            self._ending.worker_ended(now)
        if root_is_gone and not self._is_over:
            spared = {os.getpid(), *self._tailer.family()}
            self._is_over = not self._tree.kill_strays(self._launch.env, spared)
            self._check_again_at = None if self._is_over else now + _CHECK_STRAYS_S

    # The end

    def _finish(self, now: float) -> None:
        """Write exit.json once all output is in the spool; retried until it succeeds, because the run ends with it."""
        if not (self._outcome.is_unkillable or all(drain.is_empty for drain in self._drains)):
            return
        if now < self._write_at:
            self._check_again_at = self._write_at
            return
        if not self._run_dir.has_control:
            # A link in its place leads elsewhere, and trying again would not help: the daemon sees the same.
            say("The run's control folder is gone; exit.json is not written.")
            self._is_written = True
            return
        if self._commands:
            self._commands.close()
            self._outcome.commands_unread = self._commands.count_unread()
        try:
            self._release_reserves()
            record = self._outcome.record(self._launch, self._tree, self._files, self._ending.cause)
            failpoint("exit.proven")
            durable.insist_on_json(self._run_dir.exit, record)
            self._is_written = True
        except FileNotFoundError:
            say("The run's folder is gone; exit.json is not written.")
            self._is_written = True
        except OSError as error:
            self._write_later(error, now)
            return
        failpoint("exit.written")

    def _write_later(self, error: OSError, now: float) -> None:
        """Try again after a pause that grows: a disk may be full for days, with many holders waiting for it."""
        say(f"exit.json cannot be written ({error.strerror}); trying again in {self._write_pause_s:g} s.")
        self._write_at = self._check_again_at = now + self._write_pause_s
        # Three times, not more: another program may take what is freed, and the daemon needs some of it.
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and self._write_pause_s < 8 * _RETRY_WRITE_S:
            from mosaic.model.reserve import Reserve as DiskReserve  # only here, because it imports much

            DiskReserve(self._run_dir.control.parent.parent / "reserve").spend()
        self._write_pause_s = min(2 * self._write_pause_s, _LONGEST_RETRY_S)

    def _release_reserves(self) -> None:
        if not self._outcome.is_unkillable:
            for file in self._files:
                file.release()


def _limit_open_files(soft: int) -> None:
    """The user's own soft limit, not the one that the daemon raised for itself."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _open_signals() -> int:
    """A descriptor from which the number of every relevant signal can be read, from now on."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (*_CAUSES, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    # Ctrl-C and a hang-up of the daemon's terminal must not reach a run.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the daemon's thread may have blocked some
    kernel.set_name("mosaic-holder")
    return read


def say(sentence: str) -> None:
    """Write one sentence to the holder's log. Importing logging would cost a fifth of the start."""
    try:
        os.write(2, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {sentence}\n".encode(errors="replace"))
    except OSError:
        pass  # a full disk must not end a run
