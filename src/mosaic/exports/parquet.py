"""Events as a Parquet file: the columns of `mosaic export --format csv`, typed, and before them what the run is.

pyarrow is an extra: pip install 'mosaic-rl[parquet]'.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.client.events import Event

MISSING = "Parquet files need pyarrow, which is not installed. Install it with: pip install 'mosaic-rl[parquet]'"
ROWS = 65_536  # in a row group

RUN_COLUMNS = {
    "run_id": "string",
    "run_name": "string",
    "algo": "string",
    "env_id": "string",
    "seed": "int64",
    "experiment": "string",
    "axes": "string",
}
TYPES = {
    **dict.fromkeys(("step_index", "env_index", "episode_index", "steps", "global_step", "step"), "int64"),
    **dict.fromkeys(("reward", "total_reward", "value"), "double"),
    **dict.fromkeys(("terminated", "truncated"), "bool"),
    **dict.fromkeys(("agent_id", "name", "event", "payload", "extra"), "string"),
}


def require_pyarrow() -> None:
    """MosaicError, with the command that installs it, if it is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MosaicError(MISSING) from None


class ParquetFile:
    """A file of events of several runs, written in groups of rows."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """`columns`: of the events, as in CSV."""
        require_pyarrow()
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        own = [(name, TYPES[name]) for name in (*columns, "extra")]
        fields = [*RUN_COLUMNS.items(), ("seq", "int64"), ("time", pyarrow.timestamp("ns", "UTC")), ("type", "string")]
        self._schema = pyarrow.schema([*fields, *own])
        self._columns = columns
        self._writer = ParquetWriter(path, self._schema, compression="zstd")

    def __enter__(self) -> "ParquetFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, run: "Run", events: "Iterable[Event]") -> int:
        """Write the events of one run; returns the number of rows."""
        about = run_values(run)
        rows, count = _rows(events), 0
        while batch := list(islice(rows, ROWS)):
            self._writer.write_table(self._table(about, batch))
            count += len(batch)
        return count

    def _table(self, about: dict[str, Any], rows: list[dict[str, Any]]) -> Any:
        import pyarrow

        columns = []
        for field in self._schema:
            constant = field.name in RUN_COLUMNS
            values = [about[field.name]] * len(rows) if constant else [row.get(field.name) for row in rows]
            columns.append(pyarrow.array(values, field.type))
        return pyarrow.Table.from_arrays(columns, schema=self._schema)


def run_values(run: "Run") -> dict[str, Any]:
    axes = json.dumps(run.axes) if run.axes else None
    about = {"run_id": run.run_id, "run_name": run.name, "algo": run.algo or None, "env_id": run.env_id or None}
    return {**about, "seed": run.seed, "experiment": run.experiment or None, "axes": axes}


def _rows(events: "Iterable[Event]") -> Iterator[dict[str, Any]]:
    """One row per event, and one per value of a metric event."""
    for event in events:
        extra = json.dumps(event.extra) if event.extra else None
        shared = {"seq": event.seq, "time": event.ts_ns, "type": event.type, "extra": extra}
        plain = event.to_dict()
        if event.type == "metric":
            for name, value in plain["values"].items():
                yield {**shared, "step": plain["step"], "name": name, "value": value}
        else:
            yield {**{name: _value(plain.get(name)) for name in TYPES}, **shared}


def _value(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
