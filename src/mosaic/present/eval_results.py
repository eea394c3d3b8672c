"""The results of an evaluation run, from its stored episodes.

The summary in the run's folder only adds what episodes do not tell: the kind of each operator, the totals of language
models, and warnings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic_sdk.names import EVAL_SUMMARY
from mosaic_sdk.results.rows import row_of_episode
from mosaic_sdk.results.summary import EvalResults

from mosaic.model.rundir import RunDir
from mosaic.present.run_files import read_run_json

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.client.events import Event

MOST_BYTES = 64 * 1024 * 1024  # of a summary: a row per episode


@dataclass(frozen=True)
class Played:
    """The episodes of an evaluation run."""

    run: "Run"
    rows: list[dict[str, Any]]
    env: str  # the id of the environment; empty if nothing tells it
    facts: Mapping[str, Any] = field(default_factory=dict)  # eval_summary.json, if it is on this machine

    @property
    def operators(self) -> list[str]:
        """In the order of the script; an evaluation of one policy has one operator, which has no name."""
        played = dict.fromkeys(row["operator"] for row in self.rows)
        known = _objects(self.facts.get("operators"))
        return [*(name for name in known if name in played), *(name for name in played if name not in known)]

    def about(self, operator: str) -> dict[str, Any]:
        entry = _objects(self.facts.get("operators")).get(operator) or {}
        return {"kind": entry.get("kind", ""), "about": entry.get("about") or {}}

    @property
    def ledger(self) -> dict[str, Any]:
        return _objects(self.facts.get("ledger"))

    @property
    def warnings(self) -> list[str]:
        found = self.facts.get("warnings")
        return [str(text) for text in found] if isinstance(found, list) else []


def rows_of(events: "Iterable[Event]") -> list[dict[str, Any]]:
    return [row_of_episode(event.to_dict()) for event in events if event.type == "episode"]


def read_summary(run: "Run") -> dict[str, Any]:
    """eval_summary.json of a run on this machine; empty if there is none."""
    return read_run_json(RunDir(run.run_dir).path / EVAL_SUMMARY, MOST_BYTES) or {} if run.run_dir else {}


def summarize(played: Played) -> dict[str, Any]:
    """The summary of one evaluation run, as in eval_summary.json, version 2."""
    run = played.run
    names = {operator: operator or run.name or run.run_id for operator in played.operators}
    found = EvalResults(
        run_id=run.run_id,
        env_id=played.env,
        seeds=seeds_of(played.rows),
        operators={names[operator]: played.about(operator) for operator in played.operators},
        worker=run.worker_name,
    )
    for row in played.rows:
        found.add({**row, "operator": names[row["operator"]]})
    for text in played.warnings:
        found.warn(text)
    return {**found.summary(), "ledger": played.ledger}


def seeds_of(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    return list(dict.fromkeys(row["seed"] for row in rows if isinstance(row["seed"], int)))


def env_of(run: "Run", facts: Mapping[str, Any]) -> str:
    """The environment that the run itself names; empty if only its parent does."""
    worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
    env = ((worker.get("config") or {}).get("script") or {}).get("env")
    if env:
        return str(env.get("id", "") if isinstance(env, dict) else env)
    return str((run.settings or {}).get("env_id") or facts.get("env_id") or "")


def _objects(value: object) -> dict[str, Any]:
    """The objects in an object of a file that anyone could have written."""
    entries = value.items() if isinstance(value, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}
