"""`mosaic eval`: evaluate the policy of a run on seeds that were not used for training."""

import argparse
import json
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic.cli.follow import exit_code, follow, how_it_ended, summary, updates
from mosaic.cli.resume import add_derived_options, derived_config, submit_derived
from mosaic.cli.scores import count as count_of
from mosaic.cli.scores import margin
from mosaic.cli.terminal_text import number
from mosaic.cli.verb import BadUsage, add_verb, count
from mosaic.model.interval import mean_and_interval

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic eval last                              the newest checkpoint of the newest run
mosaic eval 01JCQ --best --episodes 50        the checkpoint with the best evaluation (train with eval_every=…)
mosaic eval crawler --video --seed 7          record videos; use the seeds 7, 8, 9 …
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "eval", evaluate_run, "evaluate the policy that a run has learned", EXAMPLES)
    add_derived_options(parser, "settings for the evaluation")
    parser.add_argument("--best", action="store_true", help="evaluate the best checkpoint instead of the newest")
    parser.add_argument("--episodes", type=count, metavar="N", help="play N episodes (default: the worker's)")
    parser.add_argument("--seed", type=count, metavar="S", help="play episode i with seed S + i (default 1000000)")
    parser.add_argument("--video", action="store_true", help="record videos")


def evaluate_run(args: argparse.Namespace) -> int:
    return submit_derived(args, evaluation_config(args), _wait, _follow)


def evaluation_config(args: argparse.Namespace) -> dict[str, Any]:
    if args.best and args.checkpoint:
        raise BadUsage("--best and --checkpoint cannot be used together")
    if args.episodes == 0:
        raise BadUsage("--episodes must be at least 1")
    config = derived_config(args, "eval", "best" if args.best else args.checkpoint)
    options = {"episodes": args.episodes, "seed": args.seed, "video": args.video or None}
    config["metadata"]["evaluation"] = {name: value for name, value in options.items() if value is not None}
    return config


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
    found = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.endswith((".mp4", ".gif", ".webm")))
