"""What an evaluation reports: an episode line for each episode, and the means so far as metrics."""

from typing import Any

from mosaic_sdk import emit

from balrog_worker.plan import Episode


def episode_over(episode: Episode, row: dict[str, Any], *, is_replayed: bool) -> None:
    """`is_replayed`: it was played by the run that this one continues."""
    keys = ("task", "environment", "progression", "invalid", "tokens_in", "tokens_out", "cost", "details")
    metadata = {key: row[key] for key in keys}
    emit.episode(
        episode.index,
        row["return"],
        row["length"],
        terminated=row["terminated"],
        truncated=row["truncated"],
        episode_seed=row["seed"],
        metadata={**metadata, **({"replayed": True} if is_replayed else {})},
    )


def means(summary: dict[str, Any], step: int) -> None:
    values = {f"progression/{name}": entry["progression"] for name, entry in summary["environments"].items()}
    values["progression/average"] = summary["average"]["progression"]
    values.update({"tokens/in": summary["tokens_in"], "tokens/out": summary["tokens_out"]})
    if summary["cost"] is not None:
        values["cost"] = summary["cost"]
    emit.metrics(values, step=step)
