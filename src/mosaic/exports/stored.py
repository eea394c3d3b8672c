"""The stored events of a run, and the rows of values in them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient
    from mosaic.client.events import Episode, Event

ENV_STEPS, EPISODES, STEPS = "env steps", "episodes", "steps"  # what the step of a row counts
EVALUATION = "eval"  # the agent of evaluation episodes in a training run
TELL_EVERY = 5000

Tell = Callable[[int], None]  # is told the number of events read so far


def silent(_: int) -> None:
    """For exports whose progress nobody shows."""


def stored_events(
    client: "TrainerClient", run: "Run", type_: str | None = None, tell: Tell = silent
) -> "Iterator[Event]":
    """All events of a run, of one type if `type_` names it. Those of a live run end with what is stored now."""
    # Without `until` the stream of a live run would wait for more.
    until = None if run.state.is_over else run.summary.events
    if until == 0:
        return
    streams = {"step": client.stream_steps, "episode": client.stream_episodes}
    stream = streams.get(type_ or "", client.stream_events)
    for number, event in enumerate(stream(run.run_id, until_seq=until)):
        if number % TELL_EVERY == 0:
            tell(number)
        if type_ in (None, event.type):
            yield event


@dataclass(frozen=True, slots=True)
class Row:
    """Values that were measured at one moment."""

    ts_ns: int
    step: int
    axis: str  # what `step` counts
    values: dict[str, float]


def rows_of(events: "Iterable[Event]") -> Iterator[Row]:
    """The metrics, and for each episode its return and length, under the names of the daemon's curves.

    Single steps and lifecycle events are left out. Episodes lie where the curves have them: see Curve.places in
    ingest/rollup.py.
    """
    axes: dict[str, str] = {}
    env_steps: dict[str, int] = {}
    for event in events:
        if event.type == "metric":
            yield Row(event.ts_ns, event.step, STEPS, event.values)  # type: ignore[union-attr]
        elif event.type == "episode":
            yield _episode(event, axes, env_steps)  # type: ignore[arg-type]


def _episode(episode: "Episode", axes: dict[str, str], env_steps: dict[str, int]) -> Row:
    kind = "eval" if episode.agent_id == EVALUATION else "episode"
    axis = axes.setdefault(kind, EPISODES if episode.global_step is None else ENV_STEPS)
    if episode.global_step is not None:
        env_steps[kind] = episode.global_step
    step = episode.episode_index if axis == EPISODES else env_steps[kind]
    values = {f"{kind}/return": episode.total_reward, f"{kind}/length": float(episode.steps)}
    return Row(episode.ts_ns, step, axis, values)
