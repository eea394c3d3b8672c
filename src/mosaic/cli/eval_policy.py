"""`mosaic eval RUN`: evaluate the policy of a run on seeds that were not used for training."""

import argparse
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.catalog.derived import BEST, EVAL, derived_config
from mosaic.cli.connection import host_of
from mosaic.cli.follow import exit_code, follow, how_it_ended, summary, updates
from mosaic.cli.resume import submit_derived
from mosaic.cli.run import run_options
from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import BadUsage
from mosaic.model.interval import mean_and_interval
from mosaic.present.folder_size import files_below
from mosaic.present.scores import count as count_of
from mosaic.present.scores import margin
from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient


def evaluate_policy(args: argparse.Namespace) -> int:
    return submit_derived(args, evaluation_config(args), _wait, _follow)


def evaluation_config(args: argparse.Namespace) -> dict[str, Any]:
    if args.best and args.checkpoint:
        raise BadUsage("--best and --checkpoint cannot be used together")
    if args.video not in (None, True):
        raise BadUsage("--video takes no number for a run: write --video alone")
    if args.episodes == 0:
        raise BadUsage("--episodes must be at least 1")
    checkpoint = BEST if args.best else args.checkpoint
    evaluation = {"episodes": args.episodes, "seed": args.seed, "video": args.video}
    settings, is_remote = parse_settings(args.settings), bool(host_of(args))
    return derived_config(args.run, EVAL, settings, run_options(args), checkpoint, evaluation, is_remote=is_remote)


def _follow(client: "TrainerClient", run: "Run") -> int:
    def ending(run: "Run") -> str:
        result = Result.of(client, run)
        return f"{how_it_ended(run)}\n{result.describe()}" if result.returns else summary(run)

    return follow(client, run, ending)


def _wait(client: "TrainerClient", run: "Run") -> int:
    for latest in updates(client, run.run_id):
        run = latest
    run = client.get_run(run.run_id)  # WatchRuns sends runs without their history and config
    print(json.dumps({**run.to_dict(), "evaluation": Result.of(client, run).to_dict()}, indent=1))
    return exit_code(run)


@dataclass(frozen=True)
class Result:
    """The result of an evaluation, from its stored episodes."""

    folder: str
    returns: list[float]
    seeds: list[int]  # empty if the worker does not report them
    summary: str  # path of eval_summary.json; empty if it is not on this machine
    videos: list[str]

    @classmethod
    def of(cls, client: "TrainerClient", run: "Run") -> "Result":
        from mosaic.client.events import Episode

        events = client.stream_episodes(run.run_id) if run.state.is_over else ()
        episodes = [event for event in events if isinstance(event, Episode)]
        seeds = [episode.extra.get("episode_seed") for episode in episodes]
        summary = os.path.join(run.run_dir, "eval_summary.json")
        return cls(
            folder=run.run_dir,
            returns=[episode.total_reward for episode in episodes if not math.isnan(episode.total_reward)],
            seeds=[seed for seed in seeds if isinstance(seed, int)],
            summary=summary if os.path.exists(summary) else "",
            videos=_files_below(os.path.join(run.run_dir, "videos")),
        )

    def describe(self) -> str:
        mean, half = mean_and_interval(self.returns)
        spread = f" ± {margin(half)} (95 %)" if half is not None else ""
        episodes = f"{count_of(len(self.returns), 'episode')}{_describe_seeds(self.seeds)}"
        score = f"mean return {number(mean)}{spread} over {episodes}"
        return "\n".join([score, self.summary or self.folder, *self.videos])

    def to_dict(self) -> dict[str, Any]:
        mean, half = mean_and_interval(self.returns) if self.returns else (None, None)
        return {
            "mean": mean,
            "interval": half,
            "episodes": len(self.returns),
            "returns": self.returns,
            "seeds": self.seeds,
            "summary": self.summary,
            "videos": self.videos,
        }


def _describe_seeds(seeds: list[int]) -> str:
    if not seeds:
        return ""
    first, last = min(seeds), max(seeds)
    if sorted(seeds) == list(range(first, last + 1)) and last > first:
        return f", seeds {first}…{last}"
    return f", seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds[:10]))}{' …' if len(seeds) > 10 else ''}"


def _files_below(folder: str) -> list[str]:
    found = map(str, files_below(Path(folder)))
    return sorted(path for path in found if path.endswith((".mp4", ".gif", ".webm")))
