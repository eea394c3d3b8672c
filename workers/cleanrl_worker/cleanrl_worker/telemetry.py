"""Forwards to MOSAIC what a script logs to TensorBoard: metrics under CleanRL's own names, and episodes."""

import math
from collections.abc import Callable
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.observe.numbers import as_number
from mosaic_sdk.observe.summary_writer import on_scalar

from cleanrl_worker.ends import End, Ends

RETURN, LENGTH = "charts/episodic_return", "charts/episodic_length"
# Undefined if all returns of a batch are equal. That does not mean that the training has diverged.
_MAY_BE_NAN = ("losses/explained_variance",)


class Diverged(Exception):
    """A loss has become NaN or infinite, and so will the weights."""


class Scalars:
    """Observes every add_scalar. Its promises:

    1. Each call becomes one metric line with the same name, value and step.
    2. A return followed by its length also becomes an episode line that states how the episode ended. So do episodes
       that ended in the same step and that the script does not log.
    3. A loss that is NaN or infinite is reported and then raises Diverged, unless `stop_on_nan` is off.
    """

    def __init__(
        self,
        emitter: emit.Emitter | None = None,
        on_step: Callable[[int], None] = lambda step: None,
        stop_on_nan: bool = True,
        ends: Ends | None = None,
    ) -> None:
        self.emitter = emitter or emit.stdout()
        self.on_step = on_step
        self.stop_on_nan = stop_on_nan
        self.ends = ends or Ends()
        self.episodes = 0
        self.last_return: float | None = None
        self._open_return: float | None = None

    def observe(self, writer_class: Any) -> None:
        """Observe all writers of this class from now on."""
        on_scalar(writer_class, self.record)

    def record(self, name: str, value: Any, step: Any) -> None:
        number = as_number(value)
        at = int(step or 0)
        self.emitter.metric(name, number, at)
        if name == RETURN:
            self._open_return = self.last_return = number
        elif name == LENGTH and self._open_return is not None:
            self._emit_episodes(self._open_return, int(number), at)
            self._open_return = None
        elif name.startswith("losses/") and not math.isfinite(number) and name not in _MAY_BE_NAN:
            self._handle_divergence(name, number, at)
        if not name.startswith("eval/"):  # the step of those is a number of episodes
            self.on_step(at)

    def _emit_episodes(self, total_reward: float, length: int, at: int) -> None:
        ended = self.ends.take()
        if (total_reward, length) not in self.ends:
            ended = [End(total_reward, length)]  # of environments that are not watched
        for end in ended:
            self.emitter.episode(
                self.episodes,
                end.total_reward,
                end.length,
                terminated=end.terminated,
                truncated=end.truncated,
                global_step=self.ends.env_steps(at),
            )
            self.episodes += 1

    def _handle_divergence(self, name: str, number: float, step: int) -> None:
        if self.stop_on_nan:
            raise Diverged(
                f"{name} is {number} at step {step}: the training has diverged. "
                "Lower learning_rate, check the environment's rewards, or set stop_on_nan=false to continue anyway."
            )
        self.emitter.lifecycle("training_diverged", {"metric": name, "value": str(number), "step": step})
