"""A run of the worker, whichever script it is, with its heartbeat and what it leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mosaic_sdk.heartbeat import Heartbeat

from dreamer_worker.analytics import write_manifest
from dreamer_worker.checkpoint import Claim, Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.telemetry import Telemetry


class DreamerRuntime:
    """Runs one config to its end."""

    def __init__(self, config: DreamerConfig, tell: Telemetry) -> None:
        self.config = config
        self.tell = tell

    def run(self) -> dict[str, Any]:
        from dreamer_worker.parallel import prepare

        config = prepare(self.config)
        if config.script != "eval":
            self._resume(config)
        if config.script == "parallel":
            self._tell_roles(config)
        counters = Counters(Path(config.logdir) / "counters.bin")
        # Whatever moves, moves one of them: the sum is progress.
        with Heartbeat(15.0, progress=lambda: counters["env_steps"] + counters["updates"], emitter=self.tell):
            summary = self._work(config)
        write_manifest(config, summary)
        return summary

    def _work(self, config: DreamerConfig) -> dict[str, Any]:
        from dreamer_worker.parallel import variables_of

        if config.script == "train" or not config.agent_process:  # the agent is in this process
            os.environ.update(variables_of("agent", config))
        # Imported here: one script does not wait for what only another needs.
        if config.script == "train":
            from dreamer_worker.train import run_train

            claim = Claim(config.checkpoint_dir).take()
            try:
                return run_train(config, self.tell)
            finally:
                claim.release()
        if config.script == "eval":
            from dreamer_worker.evaluate import run_eval

            return run_eval(config, self.tell)
        from dreamer_worker.parallel import run_parallel

        return run_parallel(config)

    def _resume(self, config: DreamerConfig) -> None:
        from dreamer_worker.parallel import resume

        epoch = resume(config)
        if epoch is not None:
            self.tell.checkpoint_loaded(str(Epochs(config.checkpoint_dir).path(epoch)), epoch=epoch)

    def _tell_roles(self, config: DreamerConfig) -> None:
        """Where the processes are, for roles that are started elsewhere. The secret is not told."""
        addresses = {name: getattr(config, name) for name in ("actor_addr", "replay_addr", "logger_addr")}
        self.tell.lifecycle("addresses", addresses)
