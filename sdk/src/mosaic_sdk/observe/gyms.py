"""Gymnasium and Gym: envs from `make` and `make_vec`, vector envs of other processes, and what counts episodes."""

from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after, call_instead, defined_in
from mosaic_sdk.observe.tally import tally_of
from mosaic_sdk.observe.vectors import hear_vector


def listen(module: ModuleType, observer: Observer) -> None:
    library = module.__name__.partition(".")[0]
    for name, listen_to in _PARTS.items():
        found = defined_in(module, name)
        if found is not None:
            listen_to(module if name == "make" else found, observer, library)


def _listen_to_makers(registration: ModuleType, observer: Observer, library: str) -> None:
    episodes = observer.episodes

    def make(original: Any, *args: Any, **kwargs: Any) -> Any:
        return episodes.hear(original(*args, **kwargs), library + ".make")

    def make_vec(original: Any, *args: Any, **kwargs: Any) -> Any:
        envs = original(*args, **kwargs)
        # One that consists of single envs is observed already, here or by _listen_to_async.
        return envs if hasattr(envs, "env_fns") else hear_vector(envs, "step", episodes, library + ".make_vec")

    call_instead(registration, "make", make)
    if hasattr(registration, "make_vec"):
        call_instead(registration, "make_vec", make_vec)


def _listen_to_async(async_class: Any, observer: Observer, library: str) -> None:
    def hear(_: None, envs: Any, *args: Any, **kwargs: Any) -> None:
        hear_vector(envs, "step_wait", observer.episodes, library + ".vector.AsyncVectorEnv")

    call_after(async_class, "__init__", hear)


def _listen_to_sync(sync_class: Any, observer: Observer, library: str) -> None:
    """Its envs are in this process; those that `make` made are observed already."""

    def hear(_: None, envs: Any, *args: Any, **kwargs: Any) -> None:
        for env in getattr(envs, "envs", ()):
            observer.episodes.hear(env, library + ".vector.SyncVectorEnv")

    call_after(sync_class, "__init__", hear)


def _listen_to_statistics(statistics_class: Any, observer: Observer, library: str) -> None:
    """An env that no `make` made: a script that counts its episodes means them to be seen."""

    def hear(_: None, env: Any, *args: Any, **kwargs: Any) -> None:
        if not hasattr(env, "num_envs"):  # of a vector env its own hook observes the episodes
            observer.episodes.hear(env, library + ".wrappers.RecordEpisodeStatistics")

    call_after(statistics_class, "__init__", hear)


def _listen_to_limits(limit_class: Any, observer: Observer, library: str) -> None:
    """A time limit outside of an observed env ends its episodes, which that env does not see."""

    def note_limit(_: None, wrapper: Any, *args: Any, **kwargs: Any) -> None:
        tally = tally_of(wrapper)
        if tally is not None:
            tally.count.limit = int(wrapper._max_episode_steps)

    call_after(limit_class, "__init__", observer.guarded(note_limit, library + ".wrappers.TimeLimit"))


_PARTS = {
    "make": _listen_to_makers,
    "AsyncVectorEnv": _listen_to_async,
    "SyncVectorEnv": _listen_to_sync,
    "RecordEpisodeStatistics": _listen_to_statistics,
    "TimeLimit": _listen_to_limits,
}
