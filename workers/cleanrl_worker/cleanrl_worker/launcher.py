"""python -m cleanrl_worker.launcher --config FILE [--link FD]: runs a script as `__main__` and observes it.

The script's code is not changed, on disk or in memory. The launcher observes the values it passes to its SummaryWriter
(telemetry.py), the counter of its main loop (mainloop.py) and its globals (state.py).
"""

import argparse
import json
import os
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.config import ConfigError
from mosaic_sdk.names import WorkerEnv

from cleanrl_worker import arguments, fastlane, phase, registry, upstream
from cleanrl_worker.config import RESUME, CleanRLWorkerConfig
from cleanrl_worker.ends import Ends
from cleanrl_worker.gyms import choose_gym
from cleanrl_worker.link import Link
from cleanrl_worker.mainloop import MainLoop, Stopped
from cleanrl_worker.telemetry import Diverged

FAILED, REFUSED, STOPPED = 1, 2, 143
# How long a stop waits for a safe point. MOSAIC kills the whole process tree after 10 s.
PATIENCE_S = 4.0
CURRICULUM = "CLEANRL_CURRICULUM"  # our ppo reads the stages from this variable, as JSON
_LONG = 500  # characters of a library's error message that are reported


class Launcher:
    """One training. `run` returns the exit code and reports through the link how the training ended."""

    def __init__(self, config: CleanRLWorkerConfig, link: Link, run_dir: Path) -> None:
        self.config = config
        self.link = link
        self.checkpoints = Path(os.environ.get(WorkerEnv.CHECKPOINT_DIR) or run_dir / "checkpoints")
        self.loop: MainLoop | None = None
        self.keeper: Any = None
        self.saved: list[Path] = []
        self._is_stopping = False
        self._owner_pid = os.getpid()

    def run(self) -> int:
        try:
            with _signals(self):
                self._train()
        except (Stopped, KeyboardInterrupt):
            self._save_between_turns()
            return self._end({"stopped": True}, STOPPED)
        except (ConfigError, Diverged) as error:
            return self._end(_describe(error), REFUSED if isinstance(error, ConfigError) else FAILED)
        except SystemExit as error:
            if error.code not in (None, 0):
                return self._end({"error": f"the script exited with code {error.code}"}, FAILED)
        except BaseException as error:  # noqa: BLE001  # the edge of the process: any failure of a script is reported
            _print_traceback()
            return self._end(_describe(error), FAILED)
        return self._end({}, 0)

    def stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """SIGTERM: stop at the next safe point, or anywhere if none comes soon."""
        if os.getpid() != self._owner_pid:
            # A forked child of the script must die of SIGTERM, not wait for its parent's main loop.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        if self._is_stopping:
            return
        self._is_stopping = True
        if self.loop is None or (self.loop.turn is None and not self.loop.is_over):
            raise Stopped  # the training has not started
        self.loop.stop()
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)

    def _train(self) -> None:
        start = self._find_start()
        config = self.config
        algorithm = registry.find(config.algo, config.upstream_path)
        script = upstream.find_script(algorithm, config.upstream_path)
        values = arguments.resolve(config, script)
        silence_imports()
        choose_gym(algorithm, config.upstream_path)
        # Only now, after every check that does not need torch.
        from cleanrl_worker import seams

        seams.prepare(algorithm, config)
        if config.curriculum_schedule:
            os.environ[CURRICULUM] = json.dumps(config.curriculum_schedule)
        module = types.ModuleType("__main__")
        vars(module).update(__file__=str(script.path), __builtins__=__builtins__)
        ends = Ends(script.counts_steps)
        self._watch(module, algorithm, script, start, ends)
        seams.redirect_logs(config.tensorboard_dir)
        seams.observe_scalars(self.link, config, ends)
        if not phase.is_running():  # the steps of a phase are not those of the run
            self.link.total = arguments.steps_in_all(values)
        sys.argv = [str(script.path), *arguments.command_line(values, script)]
        sys.modules["__main__"] = module
        exec(compile(script.source, str(script.path), "exec"), vars(module))

    def _find_start(self) -> Any:
        """The checkpoint to resume from. Settings that the config leaves out are taken from it."""
        if self.config.mode != RESUME:
            return None
        from cleanrl_worker import keeper

        start = keeper.load_start(self.config.policy_path)
        script = upstream.find_script(registry.find(start.algo, self.config.upstream_path), self.config.upstream_path)
        flags = set(script.flags) - set(arguments.OWN)
        self.config = self.config.filled_from(start.params, start.algo, start.env_id, flags, start.curriculum)
        keeper.check_start(start, self.config)
        return start

    def _watch(
        self, module: types.ModuleType, algorithm: "registry.Algorithm", script: Any, start: Any, ends: Ends
    ) -> None:
        """Observe the main loop. A script without one still runs, but it is neither saved nor resumed."""
        if script.main_loop is None:
            return
        from cleanrl_worker.keeper import Keeper

        main = vars(module)
        keeper = self.keeper = Keeper(self.config, main, script.changed_in_loop, self.checkpoints, start)

        def begin() -> int | None:
            fastlane.show_batches(main.get("envs"))
            ends.watch(main.get("envs"))
            turn = keeper.begin()
            self._report_total(start.global_step if start else 0)
            return turn

        def save(turn: int, step: int) -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)  # a safe point: writing may take longer
            self.saved.append(keeper.save(turn, step))

        def report(step: int) -> None:
            self.link.step = step

        every, eval_every = self.config.checkpoint_every, self.config.eval_every
        loop = MainLoop(
            script.main_loop,
            main,
            begin=begin,
            save=save,
            report=report,
            save_every=every,
            measure=self._make_best(keeper, algorithm, module) if eval_every else lambda turn, step: None,
            measure_every=eval_every,
        )
        self.loop = loop

    def _make_best(
        self, keeper: Any, algorithm: "registry.Algorithm", module: types.ModuleType
    ) -> Callable[[int, int], None]:
        from cleanrl_worker.best import Best

        return Best(keeper, algorithm, module, lambda: self._is_stopping).measure

    def _report_total(self, step: int) -> None:
        """Immediately, not with the next heartbeat: without it a run shows no percentage."""
        self.link.step = step
        if self.link.total:
            emit.heartbeat(step, total=self.link.total)

    def _save_between_turns(self) -> None:
        """Save after a stop away from a safe point: a resumed training repeats this iteration."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        loop = self.loop
        if loop is None or loop.turn is None or loop.is_over:
            return
        turn, step = loop.now
        if self.keeper.saved_turn != turn:
            self.saved.append(self.keeper.save(turn, step, is_whole=False))

    def _end(self, outcome: Mapping[str, Any], code: int) -> int:
        last = str(self.saved[-1]) if self.saved else None
        ran = {"algo": self.config.algo, "env_id": self.config.env_id}
        self.link.report({**ran, "steps": self.link.step, "checkpoint": last, **outcome})
        return code


@contextmanager
def _signals(launcher: Launcher) -> Iterator[None]:
    """Handle SIGTERM and its alarm inside the block. Afterwards SIGTERM is ignored, because the process is exiting."""

    def stop_now(number: int, frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, launcher.stop)
    signal.signal(signal.SIGALRM, stop_now)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)


def silence_imports() -> None:
    """Hide what the libraries print at import: it would be reported as the last output of many failed runs.

    gym prints a deprecation notice of three lines. gymnasium prints a traceback of shimmy's plugin, which cannot load
    while gymnasium itself is loading; nothing is missing afterwards.
    """
    warnings.filterwarnings("ignore", message=r"(?s).*plugin: shimmy\.registration.*circular import")
    with suppress(ImportError):
        from gym_notices import notices

        notices.notices.clear()


def leave_at_once(script: Mapping[str, Any]) -> None:
    """Exit without finalising the interpreter: with torch that takes seconds, and a stop has only ten."""
    for name in ("envs", "writer"):
        with suppress(Exception):  # a script may use these names for anything
            script[name].close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(STOPPED)


def _describe(error: BaseException) -> dict[str, Any]:
    name = type(error).__name__
    text = str(error).strip()
    if type(error).__module__.split(".")[0] in ("cleanrl_worker", "mosaic_sdk"):
        return {"error": text or name, "error_type": name}
    # A library may put whole tensors into its message; the traceback has all of it.
    message = f"{name}: {_shortened(text)}" if text else name
    # The error of torch's distributions when a network's weights have become NaN.
    if isinstance(error, ValueError) and "invalid values" in text and "nan" in text:
        message = f"the training has diverged: its network returns NaN. Lower the learning rate. ({message})"
    return {"error": message, "error_type": name}


def _shortened(text: str) -> str:
    first = text.partition("\n")[0]
    return text if len(text) <= _LONG else f"{first[:_LONG].rstrip(' :')} …"


def _print_traceback() -> None:
    """Print the script's own frames, without the launcher's frames above them."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "__main__"):
        if trace.tb_frame.f_code.co_name == "<module>" and trace.tb_frame.f_globals.get("__file__") != __file__:
            break
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def main() -> int:
    parser = argparse.ArgumentParser(prog="cleanrl_worker.launcher")
    parser.add_argument("--config", required=True)
    parser.add_argument("--link", type=int, default=-1)
    args = parser.parse_args()
    link = Link(args.link) if args.link >= 0 else Link.create()
    try:
        config = CleanRLWorkerConfig.load(args.config)
    except ConfigError as error:
        link.report(_describe(error))
        return REFUSED
    emit.stdout().run_id = config.run_id
    code = Launcher(config, link, Path.cwd()).run()
    if args.link < 0 and link.read_report().get("error"):
        print(link.read_report()["error"], file=sys.stderr)
    if code == STOPPED and not config.track_wandb:  # wandb sends the rest of its data at a normal exit
        leave_at_once(vars(sys.modules["__main__"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
