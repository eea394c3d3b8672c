"""Parts of a run's summary: what a question about thousands of runs needs of it. Decoding the whole takes longer."""

import msgspec


class Figures(msgspec.Struct, frozen=True):
    """Fields of `model.run.RunSummary`, with their names."""

    episodes: int = 0
    env_steps: int = 0
    total_steps: int = 0
    last_return: float | None = None
    mean_return: float | None = None
    eval_episodes: int = 0
    eval_mean: float | None = None
    steps_per_s: float = 0.0
    checkpoints: int = 0


class Metrics(msgspec.Struct):
    """The last values of all metrics."""

    last_values: dict[str, float] = {}  # msgspec copies it for each object
