"""Curves of runs as a pandas DataFrame in long format: a row for each point of each metric.

run_id · name · algo · env_id · seed · experiment · the axes of the experiments · metric · step · value · time

pandas is an extra: pip install 'mosaic-rl[pandas]'.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mosaic.client.events import Curve
from mosaic.client.run import Run
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.visible import visible_line

if TYPE_CHECKING:
    import pandas

    from mosaic.client.asynchronous import AsyncTrainerClient
    from mosaic.client.handle import AsyncRunHandle, RunHandle

RunLike: TypeAlias = "str | Run | RunHandle | AsyncRunHandle"
Runs: TypeAlias = "RunLike | Iterable[RunLike]"

MISSING = "A frame needs pandas, which is not installed. Install it with: pip install 'mosaic-rl[pandas]'"
AT_ONCE = 8  # requests to the daemon
RUN_COLUMNS = ("run_id", "name", "algo", "env_id", "seed", "experiment")
POINT_COLUMNS = ("metric", "step", "value", "time")


async def frame(
    client: "AsyncTrainerClient", runs: Runs, metrics: str | Sequence[str] | None = None, points: int = 0
) -> "pandas.DataFrame":
    """See `AsyncTrainerClient.frame`."""
    _require_pandas()
    chosen = [await client.get_run(_reference(run)) for run in _listed(runs)]
    limit = asyncio.Semaphore(AT_ONCE)
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    names = await _gather(limit, [_call(client.curve_names, run.run_id) for run in chosen])
    if wanted is not None:
        _refuse_unknown(wanted, names)
        names = [[name for name in wanted if name in known] for known in names]
    asked = [(run, name) for run, known in zip(chosen, names, strict=True) for name in known]
    curves = await _gather(limit, [_call(client.query_curve, run.run_id, name, points) for run, name in asked])
    return _table([(run, curve) for (run, _), curve in zip(asked, curves, strict=True)], chosen)


def _require_pandas() -> None:
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise MosaicError(MISSING) from None


def _listed(runs: Runs) -> "list[RunLike]":
    is_one = isinstance(runs, str | Run) or hasattr(runs, "run_id")
    return [cast(RunLike, runs)] if is_one else list(cast("Iterable[RunLike]", runs))


def _reference(run: RunLike) -> str:
    return run if isinstance(run, str) else run.run_id


def _call(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: function(*arguments)


async def _gather(limit: asyncio.Semaphore, calls: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
    async def one(call: Callable[[], Awaitable[Any]]) -> Any:
        async with limit:
            return await call()

    return await asyncio.gather(*map(one, calls))


def _refuse_unknown(wanted: Sequence[str], known: Sequence[Sequence[str]]) -> None:
    """A metric that no run has is a mistake; one that only some have is missing in the others' rows."""
    everywhere = {name for names in known for name in names}
    for name in wanted:
        if name not in everywhere:
            listed = visible_line(", ".join(sorted(everywhere)[:50])) or "none"
            hint = did_you_mean(name, sorted(everywhere)) or f"Their metrics: {listed}."
            raise MosaicError(f"None of these runs has a metric '{visible_line(name)}'. {hint}")


def _table(curves: "Sequence[tuple[Run, Curve]]", runs: Sequence[Run]) -> "pandas.DataFrame":
    import numpy as np
    import pandas

    axes = list(dict.fromkeys(key for run in runs for key in run.axes if key not in (*RUN_COLUMNS, *POINT_COLUMNS)))
    lengths = [len(curve.step) for _, curve in curves]
    columns: dict[str, Any] = {}
    for name in (*RUN_COLUMNS, *axes):
        values = [run.axes.get(name) if name in axes else getattr(run, name) for run, _ in curves]
        columns[name] = pandas.Series(values, dtype=_dtype(name, values)).repeat(lengths).reset_index(drop=True)
    columns["metric"] = pandas.Series([curve.name for _, curve in curves], dtype="str").repeat(lengths)
    columns["metric"] = columns["metric"].reset_index(drop=True)
    columns["step"] = np.array([step for _, curve in curves for step in curve.step], np.int64)
    columns["value"] = np.array([value for _, curve in curves for value in curve.mean], np.float64)
    times = [time for _, curve in curves for time in _times(curve)]
    moments = pandas.to_datetime(pandas.Series(times, dtype="float64"), unit="s", utc=True)
    columns["time"] = moments.astype("datetime64[ns, UTC]")
    return pandas.DataFrame(columns)


def _dtype(name: str, values: Sequence[Any]) -> Any:
    if name == "seed":
        return "Int64"  # some runs have none
    if name in RUN_COLUMNS:
        return "str"
    return None if values else "object"


def _times(curve: Curve) -> list[float]:
    """Unix times; NaN where they were not stored."""
    if curve.seconds is None or not curve.started_at:
        return [float("nan")] * len(curve.step)
    return [curve.started_at + seconds for seconds in curve.seconds]
