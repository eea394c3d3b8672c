"""Policy evaluation: episodes on given seeds, reported one by one and summarised in eval_summary.json.

    found = Evaluation(run_id=config.run_id, worker="acme", env_id=config.env_id, algo="ppo", checkpoint=path)
    for seed in seeds_from(config.seed, config.eval_episodes):
        found.add(seed, *play(seed))          # return, length, terminated, truncated
    found.write()

    {"version": 1, "run_id": "01…", "worker": "acme", "env_id": "CartPole-v1", "algo": "ppo", "checkpoint": "/…/x.pt",
     "deterministic": true, "episodes": 10, "mean_return": 487.1, "std_return": 20.3, "min_return": 430.0,
     "max_return": 500.0, "mean_length": 487.1, "seeds": [1000000, …],
     "rows": [{"episode_index": 0, "seed": 1000000, "return": 500.0, "length": 500, "terminated": false,
               "truncated": true}, …]}

Numbers that are not finite are null, so the file is valid JSON. A worker may add keys of its own. While a training
runs, pass `agent_id=EVAL_AGENT` and `global_step`: such episodes do not count as training episodes.
"""

import os
from typing import Any, Dict, List, Optional

from mosaic_sdk import emit
from mosaic_sdk.files import write_json
from mosaic_sdk.names import EVAL_AGENT, EVAL_MEAN_RETURN, EVAL_SUMMARY, WorkerEnv
from mosaic_sdk.results.averages import mean, spread
from mosaic_sdk.results.finite import finite

__all__ = ["EVAL_AGENT", "EVAL_MEAN_RETURN", "FIRST_SEED", "Evaluation", "seeds_from"]

VERSION = 1
FIRST_SEED = 1_000_000  # trainings use lower ones


def seeds_from(first: Optional[int], count: int) -> List[int]:
    """The seeds of an evaluation: `first`, `first` + 1, …; from FIRST_SEED on if none is given."""
    start = FIRST_SEED if first is None else first
    return list(range(start, start + count))


class Evaluation:
    """The episodes of one policy. `add` reports an episode; `write` writes the summary."""

    def __init__(
        self,
        *,
        run_id: str,
        worker: str,
        env_id: str,
        algo: str = "",
        checkpoint: str = "",
        deterministic: bool = True,
        emitter: Optional[emit.Emitter] = None,
        agent_id: Optional[str] = None,
        global_step: Optional[int] = None,
        first_index: int = 0,
    ) -> None:
        """`first_index`: the episode_index of the first episode, for an evaluation that is repeated in one run."""
        self._about: Dict[str, Any] = {"run_id": run_id, "worker": worker, "env_id": env_id, "algo": algo}
        self._about.update(checkpoint=checkpoint, deterministic=deterministic)
        self._emitter = emitter or emit.stdout()
        self._agent_id, self._global_step = agent_id, global_step
        self._first_index = first_index
        self.rows: List[Dict[str, Any]] = []

    def add(
        self, seed: int, total_return: float, length: int, terminated: bool, truncated: bool, **more: Any
    ) -> Dict[str, Any]:
        """Report one episode; returns its row. `more`: further columns."""
        index = self._first_index + len(self.rows)
        ends = {"terminated": bool(terminated), "truncated": bool(truncated)}
        row = {"episode_index": index, "seed": seed, "return": float(total_return), "length": int(length), **ends}
        self.rows.append({**row, **more})
        self._emitter.episode(
            index,
            float(total_return),
            int(length),
            agent_id=self._agent_id,
            global_step=self._global_step,
            episode_seed=seed,
            **ends,
        )
        return self.rows[-1]

    @property
    def returns(self) -> List[float]:
        return [row["return"] for row in self.rows]

    @property
    def seeds(self) -> List[int]:
        return [row["seed"] for row in self.rows]

    @property
    def mean_return(self) -> float:
        """NaN without an episode."""
        return mean(self.returns)

    def statistics(self) -> Dict[str, Any]:
        """The numbers of the summary; null without an episode."""
        returns = self.returns
        if not returns:
            names = ("mean_return", "std_return", "min_return", "max_return", "mean_length")
            return {"episodes": 0, **dict.fromkeys(names)}
        return {
            "episodes": len(returns),
            "mean_return": mean(returns),
            "std_return": spread(returns),
            "min_return": min(returns),
            "max_return": max(returns),
            "mean_length": mean([row["length"] for row in self.rows]),
        }

    def summary(self, **more: Any) -> Dict[str, Any]:
        """The whole document. `more`: the worker's own keys."""
        rows = {"seeds": self.seeds, "rows": self.rows}
        return {"version": VERSION, **self._about, **self.statistics(), **rows, **more}

    def write(self, folder: "Optional[str | os.PathLike[str]]" = None, **more: Any) -> str:
        """Write eval_summary.json into `folder`, or into the run's; returns its path."""
        place = os.fspath(folder) if folder is not None else os.environ.get(WorkerEnv.RUN_DIR) or "."
        path = os.path.join(place, EVAL_SUMMARY)
        return write_json(path, finite(self.summary(**more)), indent=1, default=_json_default)


def _json_default(value: Any) -> Any:
    return finite(emit.json_default(value))
