"""A run of the worker, in any script: its heartbeat, its messages and its manifest."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.parts import announce, wanted

from dreamer_worker import settings
from dreamer_worker.analytics import write_manifest
from dreamer_worker.checkpoint import Claim, Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.telemetry import Telemetry

HEARTBEAT_S = 15.0


class DreamerRuntime:
    """Runs one config to its end. Messages for the user go to stderr, which `mosaic logs` shows."""

    def __init__(self, config: DreamerConfig, telemetry: Telemetry) -> None:
        self.config = config
        self.telemetry = telemetry

    def run(self) -> dict[str, Any]:
        from dreamer_worker.supervisor import RoleFailed

        try:
            return self._run()
        except (RoleFailed, CheckpointError) as error:
            # The text is complete; the traceback, if any, was printed by the process that failed.
            raise WorkFailed(str(error)) from None

    def _run(self) -> dict[str, Any]:
        from dreamer_worker.parallel import prepare

        config = prepare(self.config)
        counters = Counters(Path(config.logdir) / "counters.bin")
        self._report_settings(config)
        if config.script != "eval":
            self._claim = Claim(config.logdir, "launcher.lock").take()  # until this process ends
            self._resume(config, counters)
            settings.keep(config)
        if config.script == "parallel":
            self._report_addresses(config)
        total = None if config.script == "eval" else config.steps
        with Heartbeat(HEARTBEAT_S, progress=Progress(counters, config), emitter=self.telemetry, total=total):
            summary = self._work(config)
        write_manifest(config, summary)
        print_line(ending(summary))
        return summary

    def _work(self, config: DreamerConfig) -> dict[str, Any]:
        from dreamer_worker.parallel import variables_of

        if config.script == "train" or not config.agent_process:  # the agent is in this process
            os.environ.update(variables_of("agent", config))
        # Imported here: a script does not wait for imports that only another one needs.
        if config.script == "train":
            from dreamer_worker.train import run_train

            claim = Claim(config.checkpoint_dir).take()
            try:
                return run_train(config, self.telemetry)
            finally:
                claim.release()
        if config.script == "eval":
            from dreamer_worker.evaluate import run_eval

            return run_eval(config, self.telemetry)
        from dreamer_worker.parallel import run_parallel

        asked = wanted()
        if not asked:
            return run_parallel(config)
        from dreamer_worker.far_vault import Keeper
        from dreamer_worker.meeting import Meeting

        meeting = Meeting(config, asked, Keeper(Epochs(config.checkpoint_dir))).start()
        announce(meeting.address, self.telemetry)
        try:
            return run_parallel(config, meeting)
        finally:
            meeting.close()

    def _resume(self, config: DreamerConfig, counters: Counters) -> None:
        from dreamer_worker.parallel import resume

        epoch = resume(config)
        if epoch is None:
            return
        steps = counters["env_steps"]
        self.telemetry.checkpoint_loaded(str(Epochs(config.checkpoint_dir).path(epoch)), epoch=epoch, step=steps)
        print_line(f"The run continues from a checkpoint at step {steps:,}, after {counters['updates']:,} updates.")
        if steps >= config.steps:
            print_line(
                f"No steps are left: the run ends at step {config.steps:,}. Increase steps, such as steps={2 * steps}."
            )

    def _report_settings(self, config: DreamerConfig) -> None:
        """Emit and print the settings in force."""
        names = (*settings.KEPT, "script", "seed", "log_every_s", "report_every_s", "save_every_s")
        self.telemetry.lifecycle("settings", {name: getattr(config, name) for name in names})
        print_line(opening(config))
        if config.script != "eval" and not config.remote_replay:
            warn_of_memory(config)

    def _report_addresses(self, config: DreamerConfig) -> None:
        """Emit the addresses, for roles that are started on other machines. The secret is not emitted."""
        addresses = {name: getattr(config, name) for name in ("actor_addr", "replay_addr", "logger_addr")}
        self.telemetry.lifecycle("addresses", addresses)


class Progress:
    """The steps played so far, for the heartbeat. It prints a note while the first update compiles."""

    def __init__(self, counters: Counters, config: DreamerConfig) -> None:
        self._counters = counters
        self._first = counters["updates"]
        self._is_learning = config.script == "eval" or config.random_agent
        self._began = time.monotonic()
        self._steps = -1
        self._has_noted = False

    def __call__(self) -> int:
        steps = self._counters["env_steps"]
        if not self._is_learning:
            self._look(steps)
        self._steps = steps
        return steps

    def _look(self, steps: int) -> None:
        took_s = time.monotonic() - self._began
        if self._counters["updates"] > self._first:
            self._is_learning = True
            print_line(f"Learning has begun: the first update was done {took_s:.0f} s after the start.")
        elif steps == self._steps > 0 and not self._has_noted:
            self._has_noted = True
            print_line("The first update is compiling, which takes a minute or more. The envs wait for it.")


def opening(config: DreamerConfig) -> str:
    agent = "an agent that acts at random" if config.random_agent else f"an agent of size {config.size}"
    if config.script == "eval":
        where = " in its world model" if config.dream else ""
        return f"{config.env}: {agent} plays {config.episodes} episodes{where}."
    envs = f"{config.envs} training and {config.eval_envs} evaluation envs"
    return (
        f"{config.env}: {agent}, {envs}, until step {config.steps:,}; {config.train_ratio:g} replayed steps per env "
        f"step, in batches of {config.batch_size} x {config.batch_length}."
    )


def ending(summary: dict[str, Any]) -> str:
    if "mean_return" in summary:
        mean, spread = summary["mean_return"], summary["std_return"]
        return f"{summary['episodes']} episodes played: mean return {mean:.4g}, standard deviation {spread:.4g}."
    return f"Done: {summary['env_steps']:,} steps, {summary['updates']:,} updates, {summary['episodes']:,} episodes."


def warn_of_memory(config: DreamerConfig) -> None:
    """Warn early: the replay grows for hours before a run runs out of memory."""
    most_gb = config.replay_gb * (2 if config.eval_envs else 1)
    total_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if most_gb > total_gb:
        print_line(
            f"Memory may run out: replayed steps may take up to {most_gb:g} GB (replay_gb, for training and for "
            f"evaluation), and this machine has {total_gb:.0f} GB. Set a lower limit: replay_gb={total_gb / 4:.0f}."
        )


def print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
