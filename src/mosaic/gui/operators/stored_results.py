"""The results of an evaluation run: its stored episodes from the daemon, then the statistics in another thread."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.present.eval_draft import settings_of
from mosaic.present.eval_results import Played, env_of, read_summary, rows_of, summarize
from mosaic.present.eval_tables import Results, results_of

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.client.events import Event

REPORT, DEMONSTRATIONS = "report.html", "demonstrations"


@dataclass(frozen=True)
class Found:
    """What the results panel shows."""

    results: Results
    report: Path | None  # on this machine
    demonstrations: Path | None


async def fetch(client: "AsyncTrainerClient", run_id: str) -> "tuple[Run, list[Event]]":
    run = await client.get_run(run_id)
    if not run.summary.episodes:
        return run, []
    until = None if run.state.is_over else run.summary.events
    return run, [event async for event in client.stream_episodes(run_id, until_seq=until)]


def found_in(run: "Run", events: "list[Event]", is_remote: bool) -> Found:
    """Takes about a second for many seeds: intervals are drawn 10,000 times."""
    # The script knows the order of the operators, and their kinds, also where the summary is not at hand.
    script = settings_of(run.config).get("script")
    plan = {"operators": script.get("operators")} if isinstance(script, Mapping) else {}
    facts = {**plan, **({} if is_remote else read_summary(run))}
    played = Played(run, rows_of(events), env_of(run, facts), facts)
    folder = Path(run.run_dir)
    report, demonstrations = folder / REPORT, folder / DEMONSTRATIONS
    return Found(
        results_of(summarize(played)),
        report if not is_remote and os.path.isfile(report) else None,
        demonstrations if not is_remote and os.path.isdir(demonstrations) else None,
    )
