"""A Dreamer run's scores beside the published ones: a table, and a picture.

    python benchmarks/dreamer_curve.py boxing.jsonl                        a metrics.jsonl; several are several runs
    python benchmarks/dreamer_curve.py boxing.jsonl --svg boxing.svg
    python benchmarks/dreamer_curve.py walker.jsonl --task dmc_walker_walk
    python benchmarks/dreamer_curve.py walker2023-0.jsonl --task dmc_walker_walk --frames 2    one step is two frames
    python benchmarks/dreamer_curve.py breakout.jsonl --task atari100k_breakout --together 16

The nth episodes of all envs are one row: with 16 envs they begin and end at nearly the same time. Where episodes differ
in length, `--together 16` puts 16 episodes that ended one after another into a row instead. Published: mean over
seeds of the mean score of the episodes that ended in the 10 % before that point (15 % in Atari100k), lowest and highest
seed in brackets. Those runs had one env, so their episodes are short; ours span the frames of the row.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

# Task → frames per agent step; frames → (mean, lowest seed, highest seed).
PUBLISHED: dict[str, tuple[int, dict[int, tuple[float, float, float]]]] = {
    "atari100k_boxing": (4, {100_000: (30.6, 12, 57.5), 200_000: (48.8, 25.8, 69.8), 400_000: (78.9, 67.6, 85.7)}),
    "atari100k_breakout": (4, {100_000: (4.6, 2.7, 6.5), 200_000: (5.7, 4.2, 6.5), 400_000: (8.8, 6.0, 10.5)}),
    "atari100k_krull": (4, {100_000: (3112, 2475, 4225), 200_000: (7636, 7335, 8032), 400_000: (7608, 7161, 8249)}),
    "atari100k_ms_pacman": (4, {100_000: (544, 393, 712), 200_000: (935, 730, 1147), 400_000: (1412, 1144, 1662)}),
    "dmc_walker_walk": (1, {50_000: (289, 206, 448), 100_000: (478, 261, 691), 250_000: (876, 778, 942)}),
    "dmc_walker_stand": (1, {50_000: (400, 255, 523), 100_000: (791, 652, 943), 250_000: (954, 865, 985)}),
    "dmc_cheetah_run": (1, {50_000: (228, 133, 317), 100_000: (297, 141, 403), 250_000: (465, 383, 495)}),
    "dmc_cartpole_swingup": (1, {50_000: (322, 265, 457), 100_000: (516, 489, 531), 250_000: (817, 772, 859)}),
}
COLOURS = ("#0b6e99", "#b5541c", "#4b7a2b", "#7a3e8f")


class Episode(NamedTuple):
    begin: float  # in frames
    end: float
    score: float


def rounds_of(path: Path, frames: int, together: int = 0) -> list[list[Episode]]:
    """The first episodes of all envs, the second ones, and so on; or every `together` episodes by their end."""
    found: dict[int, list[Episode]] = defaultdict(list)
    ends: dict[int, list[float]] = defaultdict(lambda: [0.0])
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if "episode" not in line or line["eval"]:
            continue
        before = ends[line["env"]]
        found[len(before)].append(Episode(before[-1], line["step"] * frames, line["score"]))
        before.append(line["step"] * frames)
    if not together:
        return [found[number] for number in sorted(found)]
    ended = sorted((episode for played in found.values() for episode in played), key=lambda episode: episode.end)
    return [ended[first : first + together] for first in range(0, len(ended), together)]


def print_rounds(name: str, rounds: list[list[Episode]]) -> None:
    print(f"\n{name}\n\n| frames | episodes | mean score | lowest .. highest |\n|---|---|---|---|")
    for played in rounds:
        scores = [episode.score for episode in played]
        span = f"{min(x.begin for x in played) / 1e3:.0f}k .. {max(x.end for x in played) / 1e3:.0f}k"
        print(f"| {span} | {len(played)} | {statistics.fmean(scores):.1f} | {min(scores):.0f} .. {max(scores):.0f} |")


def print_published(task: str, runs: dict[str, list[list[Episode]]]) -> None:
    window = 0.15 if task.startswith("atari100k") else 0.1
    print(f"\n| frames | {published(task)} | {' | '.join(runs)} |\n|---|---|{'---|' * len(runs)}")
    for frames, (mean, low, high) in PUBLISHED[task][1].items():
        ours = " | ".join(mean_before(frames, rounds, window) for rounds in runs.values())
        print(f"| {frames / 1e3:.0f}k | {mean:g} ({low:g} .. {high:g}) | {ours} |")


def published(task: str) -> str:
    """What stands beside ours: DM Control's curves are from another experiment than today's presets."""
    return "published in 2023, with other settings" if task.startswith("dmc_") else "published"


def mean_before(frames: int, rounds: list[list[Episode]], window: float) -> str:
    """The mean score of the episodes that ended in the 10 or 15 % before this point, as for the published ones."""
    ended = [episode for played in rounds for episode in played if (1 - window) * frames < episode.end <= frames]
    return f"{statistics.fmean(episode.score for episode in ended):.1f} ({len(ended)} episodes)" if ended else "-"


class Picture:
    """A plot as SVG, 720 by 400."""

    left, right, top, bottom = 56, 704, 40, 352

    def __init__(self, title: str, xs: tuple[float, float], ys: tuple[float, float]) -> None:
        self.xs, self.ys = xs, ys
        self.parts = [f'<text x="{self.left}" y="24" font-size="15" font-weight="bold">{title}</text>']

    def x(self, frames: float) -> float:
        return self.left + (frames - self.xs[0]) / (self.xs[1] - self.xs[0]) * (self.right - self.left)

    def y(self, score: float) -> float:
        return self.bottom - (score - self.ys[0]) / (self.ys[1] - self.ys[0]) * (self.bottom - self.top)

    def line(self, points: list[tuple[float, float]], style: str) -> None:
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" {style}/>')

    def dot(self, x: float, y: float, style: str, radius: float = 4) -> None:
        self.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius}" {style}/>')

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" font-size="12" {style}>{text}</text>')

    def axes(self, x_step: float, y_step: float) -> None:
        for score in _steps(*self.ys, y_step):
            self.line([(self.xs[0], score), (self.xs[1], score)], 'stroke="#ddd"')
            self.text(self.left - 8, self.y(score) + 4, f"{score:g}", 'text-anchor="end"')
        for frames in _steps(*self.xs, x_step):
            self.text(self.x(frames), self.bottom + 18, f"{frames / 1e3:g}k", 'text-anchor="middle"')
        legend = "frames; thin: an episode; dot: mean of a row of episodes; gray: published seeds and their mean"
        self.text(self.left, self.bottom + 38, legend)

    def write(self, path: Path) -> None:
        head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-family="sans-serif">'
        path.write_text("\n".join([head, '<rect width="720" height="400" fill="white"/>', *self.parts, "</svg>\n"]))


def draw(path: Path, task: str, runs: dict[str, list[list[Episode]]]) -> None:
    points = PUBLISHED[task][1]
    episodes = [episode for rounds in runs.values() for played in rounds for episode in played]
    scores = [episode.score for episode in episodes] + [value for point in points.values() for value in point]
    span = max(max(scores) - min(0.0, *scores), 1e-9)
    picture = Picture(
        f"{task}, score; gray: {published(task)}",
        (0, max(max(points), *(episode.end for episode in episodes)) * 1.03),
        (min(0.0, *scores) - 0.05 * span, max(scores) + 0.05 * span),
    )
    picture.axes(50_000 if picture.xs[1] < 600_000 else 100_000, _scale_step(span))
    for frames, (mean, low, high) in points.items():
        picture.line([(frames, low), (frames, high)], 'stroke="#999" stroke-width="10" stroke-opacity="0.5"')
        picture.dot(frames, mean, 'fill="#555"', 5)
    for (name, rounds), colour in zip(runs.items(), COLOURS, strict=False):
        _draw_run(picture, rounds, colour)
        picture.text(picture.left + 12, picture.top + 16 + 16 * list(runs).index(name), name, f'fill="{colour}"')
    picture.write(path)


def _scale_step(span: float) -> float:
    return next(step for step in (5, 20, 100, 200, 1000, 5000) if span / step <= 7 or step == 5000)


def _draw_run(picture: Picture, rounds: list[list[Episode]], colour: str) -> None:
    middles = []
    for played in rounds:
        for episode in played:
            ends = [(episode.begin, episode.score), (episode.end, episode.score)]
            picture.line(ends, f'stroke="{colour}" stroke-opacity="0.25"')
        middle = statistics.fmean((episode.begin + episode.end) / 2 for episode in played)
        middles.append((middle, statistics.fmean(episode.score for episode in played)))
    picture.line(middles, f'stroke="{colour}" stroke-width="2"')
    for x, y in middles:
        picture.dot(x, y, f'fill="{colour}"')


def _steps(low: float, high: float, step: float) -> list[float]:
    first = int(-(-low // step))
    return [step * number for number in range(first, int(high // step) + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metrics", type=Path, nargs="+")
    parser.add_argument("--task", default="atari100k_boxing", choices=PUBLISHED)
    parser.add_argument("--svg", type=Path, help="write the picture to this file")
    parser.add_argument("--frames", type=int, help="frames per agent step, if it differs from the task's usual one")
    parser.add_argument(
        "--together", type=int, default=0, metavar="N", help="episodes per row, in the order they ended"
    )
    args = parser.parse_args()
    frames = args.frames or PUBLISHED[args.task][0]
    runs = {path.stem: rounds_of(path, frames, args.together) for path in args.metrics}
    for name, rounds in runs.items():
        print_rounds(name, rounds)
    print_published(args.task, runs)
    if args.svg:
        draw(args.svg, args.task, runs)


if __name__ == "__main__":
    main()
