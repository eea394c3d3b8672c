"""eval_summary.json, version 2: what an evaluation of several operators on equal seeds has found.

    results = EvalResults(run_id="01…", env_id="MiniGrid-Empty-8x8-v0", mode="script", seeds=range(20),
                          operators={"ppo": {"kind": "rl", "about": {…}}, "chance": {"kind": "random"}})
    results.add({"lane": "ppo", "env_index": 0, "operator": "ppo", "agent_id": "ppo", "episode_index": 0, "seed": 0,
                 "return": 0.96, "length": 11, "success": True, "terminated": True, "truncated": False, "reason": "",
                 "failed": False, "steps_per_s": 812.0, "decision_ms": 0.4})
    results.write(run_dir)

Numbers that are not finite are null, so the file is valid JSON. The same rows give the same file.
"""

import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from mosaic_sdk.emit import json_default
from mosaic_sdk.files import write_json
from mosaic_sdk.names import EVAL_SUMMARY
from mosaic_sdk.results.cautions import cautions
from mosaic_sdk.results.comparison import Comparison
from mosaic_sdk.results.entry import statistics
from mosaic_sdk.results.finite import finite
from mosaic_sdk.results.games import Row, games_of, is_competition, is_multi_agent
from mosaic_sdk.results.ledgers import ledger_totals
from mosaic_sdk.results.pairing import comparisons, distinct, of
from mosaic_sdk.results.ratings import rate
from mosaic_sdk.results.rows import counted, is_one_seed, row_of, tells_success
from mosaic_sdk.results.teams import with_teams

VERSION = 2


class EvalResults:
    """The episodes of an evaluation. `add` takes one row per episode, or per episode and agent."""

    def __init__(
        self,
        *,
        run_id: str,
        env_id: str,
        mode: str = "script",
        seeds: Iterable[int] = (),
        operators: Mapping[str, Mapping[str, Any]],
        worker: str = "eval",
    ) -> None:
        """`operators`: {name: {"kind": …, "about": {…}}}; also those that have not played yet."""
        self._head = {"version": VERSION, "run_id": run_id, "worker": worker, "env_id": env_id, "mode": mode}
        self._seeds = list(seeds)
        self._operators = {name: dict(about) for name, about in operators.items()}
        self._rows: Dict[Any, Dict[str, Any]] = {}
        self._warnings: Dict[str, None] = {}
        self._pairs: Optional[List[Comparison]] = None  # of the rows as they are: they take a second

    def add(self, fields: Mapping[str, Any]) -> Dict[str, Any]:
        """Add a row and return it as stored. A row of the same lane, episode and agent is replaced: a resumed
        evaluation may report an episode again."""
        row = row_of(fields)
        key = (row["lane"], row["env_index"], row["episode_index"], row["agent_id"])
        self._rows[key] = row
        self._pairs = None
        self._operators.setdefault(row["operator"], {})
        return row

    def warn(self, text: str) -> None:
        """Add a sentence that a reader of the results must know. The same sentence is kept once."""
        self._warnings[text] = None

    @property
    def rows(self) -> List[Dict[str, Any]]:
        return list(self._rows.values())

    def summary(self, folder: "Optional[str | os.PathLike[str]]" = None) -> Dict[str, Any]:
        """The whole document. `folder`: the run's, where the ledgers of LLM operators are."""
        rows, good = self.rows, counted(self.rows)
        self._pairs = pairs = comparisons(good, self._operators) if self._pairs is None else self._pairs
        warnings = [*self._warnings, *cautions(rows, good, self._operators, pairs)]
        document = {
            **self._head,
            "seeds": self._seeds,
            "operators": {name: self._entry(name, rows, good) for name in self._operators},
            "lanes": lanes_of(rows, good),
            "comparisons": [pair.to_dict() for pair in pairs],
            "ratings": ratings_of(good),
            "warnings": list(dict.fromkeys(warnings)),
            "ledger": {} if folder is None else ledger_totals(folder),
            "rows": rows,
        }
        return {key: finite(part) for key, part in document.items()}

    def write(self, folder: "str | os.PathLike[str]") -> str:
        """Write eval_summary.json into the run's folder; returns its path."""
        path = os.path.join(os.fspath(folder), EVAL_SUMMARY)
        return write_json(path, self.summary(folder), indent=1, default=json_default)

    def _entry(self, name: str, rows: Sequence[Row], good: Sequence[Row]) -> Dict[str, Any]:
        about = self._operators[name]
        mine, counting = of("operator", name, rows), of("operator", name, good)
        numbers = statistics(mine, counting, is_one_seed(good), tells_success(good))
        return {"kind": about.get("kind", ""), "about": about.get("about") or {}, **numbers}


def lanes_of(rows: Sequence[Row], good: Sequence[Row]) -> Dict[str, Any]:
    """The numbers of each lane of a multi-agent evaluation; empty for others, where a lane is an operator."""
    if not is_multi_agent(rows):
        return {}
    every, counting = with_teams(rows), with_teams(good)
    return {
        name: {
            "operators": distinct("operator", of("team", name, every)),
            **statistics(of("team", name, every), of("team", name, counting), is_one_seed(good), tells_success(good)),
        }
        for name in distinct("team", every)
    }


def ratings_of(good: Sequence[Row]) -> Optional[Dict[str, Any]]:
    """The rating of each operator, best first; None unless the evaluation is a competition."""
    if not is_competition(good):
        return None
    return {name: rating.to_dict() for name, rating in rate(games_of(good)).items()}
