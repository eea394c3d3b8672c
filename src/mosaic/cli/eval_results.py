"""Reads the results of evaluation runs through the client: they can be read wherever the daemon is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import MosaicError, UnknownRun
from mosaic.present.eval_results import Played, env_of, read_summary, rows_of, summarize
from mosaic.present.scores import is_evaluation

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient


def read_played(client: "TrainerClient", run: "Run", is_remote: bool = False) -> Played:
    """The episodes of an evaluation run; a run that is not over has those stored now."""
    if not is_evaluation(run):
        raise MosaicError(
            f"Run {run.name or run.run_id} is a training, not an evaluation: its episodes have no seeds in common "
            f"with others. Evaluate it with: mosaic eval {run.run_id}"
        )
    facts = {} if is_remote else read_summary(run)
    # The evaluation of a checkpoint plays the environment that it was trained in.
    env = env_of(run, facts) or (_parents_env(client, run.parent_run_id) if run.parent_run_id else "")
    return Played(run, _stored_rows(client, run), env, facts)


def results_of(client: "TrainerClient", run: "Run", is_remote: bool = False) -> dict[str, Any]:
    """The summary of one evaluation run, for `mosaic.cli.eval_table.render`."""
    return summarize(read_played(client, run, is_remote))


def _parents_env(client: "TrainerClient", run_id: str) -> str:
    try:
        return str((client.get_run(run_id).settings or {}).get("env_id") or "")
    except UnknownRun:  # deleted
        return ""


def _stored_rows(client: "TrainerClient", run: "Run") -> list[dict[str, Any]]:
    until = None if run.state.is_over else run.summary.events
    events: Sequence[Any] = () if until == 0 else list(client.stream_episodes(run.run_id, until_seq=until))
    return rows_of(events)
