"""What a client shows of a run: its history and the summary of its telemetry. Every command imports it."""

from dataclasses import dataclass, field

from mosaic.model.states import RunState


@dataclass(frozen=True)
class Move:
    """One line of a run's history."""

    old: RunState | None  # None: the submit
    new: RunState
    at: float  # unix seconds
    reason: str = ""


# Limits of what one run can add to listings and to the daemon's memory.
MOST_CURVES = 4096  # further metric names are stored as events, without a curve
MOST_LAST_VALUES = 256  # in a summary; all metrics have a curve, up to the limit above
UNNUMBERED = -(1 << 63)  # the index of an episode whose worker gave it none, until the store numbers it
MOST_OBSERVED = 64  # hooks of a run's summary
LONGEST_NAME = 256  # characters, of a metric or an agent; a line with a longer one is a reject


@dataclass
class RunSummary:
    """What a listing shows of a run's telemetry; in memory while the run is live, in the index afterwards."""

    events: int = 0  # = the last seq
    steps: int = 0  # stored step events; a worker need not report every step
    episodes: int = 0  # stored episode events, evaluation episodes included
    metrics: int = 0
    rejects: int = 0
    last_step: int = -1  # highest step number seen in a step, metric or heartbeat
    env_steps: int = 0  # environment steps taken in training, as far as the output shows
    total_steps: int = 0  # from heartbeats; 0: unknown
    last_return: float | None = None
    recent_returns: list[float] = field(default_factory=list)  # newest last, at most 60
    mean_return: float | None = None  # of the newest `mean_over` training episodes
    mean_over: int = 0
    return_trace: list[float] = field(default_factory=list)  # means over the whole run, oldest first, for a sparkline
    eval_episodes: int = 0  # of agent "eval", or of an evaluation run
    eval_mean: float | None = None  # of the newest evaluation; of a whole evaluation run
    eval_interval: float | None = None  # half the width of its 95 % confidence interval
    eval_over: int = 0  # the number of episodes in eval_mean
    steps_per_s: float = 0.0
    last_event_at: float = 0.0  # unix seconds
    failed_message: str = ""  # error of a run_failed line
    last_values: dict[str, float] = field(default_factory=dict)  # newest value of the first MOST_LAST_VALUES metrics
    values_left_out: int = 0  # metrics that are not in last_values, because there are too many
    note: str = ""  # what is missing or odd in the stored telemetry; empty: nothing
    observed: list[tuple[str, str]] = field(default_factory=list)  # what was heard of a script's libraries, and where
    checkpoints: int = 0  # that were reported as saved

    @property
    def training_episodes(self) -> int:
        return self.episodes - self.eval_episodes
