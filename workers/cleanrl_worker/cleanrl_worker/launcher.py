"""python -m cleanrl_worker.launcher --config FILE [--link FD]: runs a script as its own `__main__`, and looks on.

The script is not changed, on disk or in memory. What is known of it is seen at its own seams: what it tells its
SummaryWriter (telemetry.py), where its main loop counts (mainloop.py), and its globals (state.py).
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
# From the wish to stop to giving up on a safe point: the whole tree is killed after 10 s.
PATIENCE_S = 4.0
CURRICULUM = "CLEANRL_CURRICULUM"  # where our ppo finds the stages, as JSON
_LONG = 500  # characters of a library's error, in a sentence


class Launcher:
    """One training. `run` returns the exit code; how it ended is in the link."""

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
            return self._end(_told(error), REFUSED if isinstance(error, ConfigError) else FAILED)
        except SystemExit as error:
            if error.code not in (None, 0):
                return self._end({"error": f"the script ended itself with exit code {error.code}"}, FAILED)
        except BaseException as error:  # noqa: BLE001  # the edge of the process: any failure of a script is reported
            _print_traceback()
            return self._end(_told(error), FAILED)
        return self._end({}, 0)

    def stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """SIGTERM: end at the next safe point, or anywhere if none comes soon."""
        if os.getpid() != self._owner_pid:
            # A forked child of the script must die of it, not wait for a loop that is its parent's.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        if self._is_stopping:
            return
        self._is_stopping = True
        if self.loop is None or (self.loop.turn is None and not self.loop.is_over):
            raise Stopped  # nothing is trained yet
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
        # Only now: all that can be refused without torch has been.
        from cleanrl_worker import seams

        seams.prepare(algorithm, config)
        if config.curriculum_schedule:
            os.environ[CURRICULUM] = json.dumps(config.curriculum_schedule)
        module = types.ModuleType("__main__")
        vars(module).update(__file__=str(script.path), __builtins__=__builtins__)
        ends = Ends(script.counts_steps)
        self._watch(module, algorithm, script, start, ends)
        seams.redirect_logs(config.tensorboard_dir)
        seams.hear_scalars(self.link, config, ends)
        if not phase.is_running():  # a phase's total is not the run's
            self.link.total = arguments.steps_in_all(values)
        sys.argv = [str(script.path), *arguments.command_line(values, script)]
        sys.modules["__main__"] = module
        exec(compile(script.source, str(script.path), "exec"), vars(module))

    def _find_start(self) -> Any:
        """The checkpoint to go on from; what the config leaves open is then as it was there."""
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
        """Look on at the main loop; a script without one is run all the same, but neither saved nor resumed."""
        if script.main_loop is None:
            return
        from cleanrl_worker.keeper import Keeper

        main = vars(module)
        keeper = self.keeper = Keeper(self.config, main, script.changed_in_loop, self.checkpoints, start)

        def begin() -> int | None:
            fastlane.show_batches(main.get("envs"))
            ends.watch(main.get("envs"))
            turn = keeper.begin()
            self._tell_total(start.global_step if start else 0)
            return turn

        def save(turn: int, step: int) -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)  # it came; writing may take its time
            self.saved.append(keeper.save(turn, step))

        def tell(step: int) -> None:
            self.link.step = step

        every, eval_every = self.config.checkpoint_every, self.config.eval_every
        loop = MainLoop(
            script.main_loop,
            main,
            begin=begin,
            save=save,
            tell=tell,
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

    def _tell_total(self, step: int) -> None:
        """At once, not with the next heartbeat: until then a run has no percentage."""
        self.link.step = step
        if self.link.total:
            emit.heartbeat(step, total=self.link.total)

    def _save_between_turns(self) -> None:
        """Stopped away from a safe point: the turn is begun again when the training is resumed."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        loop = self.loop
        if loop is None or loop.turn is None or loop.is_over:
            return
        turn, step = loop.now
        if self.keeper.saved_turn != turn:
            self.saved.append(self.keeper.save(turn, step, is_whole=False))

    def _end(self, told: Mapping[str, Any], code: int) -> int:
        last = str(self.saved[-1]) if self.saved else None
        ran = {"algo": self.config.algo, "env_id": self.config.env_id}
        self.link.report({**ran, "steps": self.link.step, "checkpoint": last, **told})
        return code


@contextmanager
def _signals(launcher: Launcher) -> Iterator[None]:
    """SIGTERM and its alarm are heard inside; afterwards the signal is ignored: we are on our way out."""

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
    """What the libraries print while they are imported would be the last words of many a failed run.

    gym: three lines of advertisement. gymnasium: shimmy's plugin, which cannot load while gymnasium itself is being
    loaded, with its whole traceback; nothing is missing afterwards.
    """
    warnings.filterwarnings("ignore", message=r"(?s).*plugin: shimmy\.registration.*circular import")
    with suppress(ImportError):
        from gym_notices import notices

        notices.notices.clear()


def leave_at_once(script: Mapping[str, Any]) -> None:
    """End without taking the interpreter down piece by piece: with torch in it that takes seconds, and we have ten."""
    for name in ("envs", "writer"):
        with suppress(Exception):  # whatever a script calls so
            script[name].close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(STOPPED)


def _told(error: BaseException) -> dict[str, Any]:
    name = type(error).__name__
    text = str(error).strip()
    if type(error).__module__.split(".")[0] in ("cleanrl_worker", "mosaic_sdk"):
        return {"error": text or name, "error_type": name}
    # A library may print whole tensors into its message; all of it is in the traceback.
    words = f"{name}: {_shortened(text)}" if text else name
    # What torch's distributions say of the outputs of a network whose weights are no numbers any more.
    if isinstance(error, ValueError) and "invalid values" in text and "nan" in text:
        words = f"the training has diverged: its network gives nan. Lower the learning rate. ({words})"
    return {"error": words, "error_type": name}


def _shortened(text: str) -> str:
    first = text.partition("\n")[0]
    return text if len(text) <= _LONG else f"{first[:_LONG].rstrip(' :')} …"


def _print_traceback() -> None:
    """The script's own frames; ours above them say nothing about it."""
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
        link.report(_told(error))
        return REFUSED
    emit.stdout().run_id = config.run_id
    code = Launcher(config, link, Path.cwd()).run()
    if args.link < 0 and link.read_report().get("error"):
        print(link.read_report()["error"], file=sys.stderr)
    if code == STOPPED and not config.track_wandb:  # whose own way out sends the rest of the data
        leave_at_once(vars(sys.modules["__main__"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
