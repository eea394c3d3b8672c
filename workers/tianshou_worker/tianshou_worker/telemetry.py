"""What a training reports: Tianshou's own metrics, and the episodes of its environments."""

from typing import Any

import gymnasium
from mosaic_sdk import emit
from mosaic_sdk.library.training import Training
from tianshou.utils import TensorboardLogger


class Metrics(TensorboardLogger):
    """The same names and values as in TensorBoard, over environment steps."""

    def __init__(self, writer: Any, training: Training) -> None:
        every = training.config.report_every
        super().__init__(writer, training_interval=every, update_interval=every)
        self._training = training

    def write(self, step_type: str, step: int, data: dict[str, Any]) -> None:
        super().write(step_type, step, data)
        scope = step_type.partition("/")[0]
        numbers = {f"{scope}/{name}": float(one) for name, one in data.items() if isinstance(one, (int, float))}
        if numbers:
            emit.metrics(numbers, self._training.steps)


class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of all environments, and reports their episodes. Between two steps a training can stop."""

    def __init__(self, env: Any, training: Any, place: int) -> None:
        super().__init__(env)
        self._training, self._place = training, place
        self._return, self._length = 0.0, 0

    def reset(self, **options: Any) -> Any:
        self._return, self._length = 0.0, 0
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        outcome = self.env.step(action)
        _, reward, terminated, truncated, _ = outcome
        self._training.count += 1
        self._return, self._length = self._return + float(reward), self._length + 1
        if terminated or truncated:
            ends = {"terminated": bool(terminated), "truncated": bool(truncated)}
            self._training.report_episode(self._return, self._length, env_index=self._place, **ends)
        self._training.at_step()
        return outcome
