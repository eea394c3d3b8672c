"""`mosaic frames`: watch the environment of a run live, or save a picture or a clip."""

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected
from mosaic.cli.frame_viewer import open_viewer
from mosaic.cli.safe_output import raw
from mosaic.cli.terminal_text import is_colourful, is_screen
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb, count
from mosaic.present.frame_facts import Rate, describe, size_of
from mosaic.present.frame_files import CLIP_MAX_DIM, LONGEST_CLIP_S, Clip, save_png

if TYPE_CHECKING:
    from mosaic.cli.frame_viewer import Source
    from mosaic.cli.verb import Verbs
    from mosaic.client import Frame

LIVE_HZ = 15.0  # a terminal cannot usefully show more
CLIP_HZ = 15.0
CLIP_S = 5.0
LOOK_S = 2.0  # how long to watch when stdout is not a terminal
EXAMPLES = """
mosaic frames 01JCQ                           watch in the terminal; press q to quit
mosaic frames 01JCQ --save now.png            save the newest frame
mosaic frames 01JCQ --clip run.gif --seconds 8
mosaic frames 01JCQ --lane 2                  one lane of an evaluation; without it, all of them
mosaic frames 01JCQ --json                    size, fps, metrics and the cost of watching
mosaic --host me@box frames 01JCQ             watch a run on another machine
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "frames", show_frames, "watch a run's environment live, or save pictures of it", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--save", metavar="FILE.png", help="save the newest frame and exit")
    files.add_argument("--clip", metavar="FILE.gif", help=f"save a clip of --seconds (default {CLIP_S:g}) and exit")
    parser.add_argument("--lane", type=count, metavar="N", help="show only lane N of an evaluation; the first is 0")
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="exit after S seconds")
    parser.add_argument("--hz", type=_hz, default=None, help=f"frames per second (default {LIVE_HZ:g})")
    parser.add_argument(
        "--max-dim",
        type=count,
        metavar="N",
        help=f"scale frames down so that no side is longer than N pixels (default for clips: {CLIP_MAX_DIM})",
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="give up if no frame comes within S seconds (default 10)",
    )
    parser.add_argument("--line", action="store_true", help="show only the line of numbers, no picture")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json(parser)


def _seconds(text: str) -> float:
    return _number(text, "seconds", 86_400, least=0.01)


def _hz(text: str) -> float:
    return _number(text, "frames per second", 120, least=0.1)


def _number(text: str, what: str, most: float, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid number of {what} ({least:g} to {most:g})")
    return value


def show_frames(args: argparse.Namespace) -> int:
    if args.save:
        return _save(args)
    if args.clip:
        return _clip(args)
    return _watch(args)


def _source(args: argparse.Namespace, hz: float, max_dim: int = 0) -> "Source":
    largest = args.max_dim if args.max_dim is not None else max_dim
    return lambda inner: inner.frames(args.run, args.hz or hz, args.wait, largest, args.lane)


def _save(args: argparse.Namespace) -> int:
    from mosaic.cli.frame_files import check_target

    path = check_target(args.save, ".png", args.force)
    with connected(args) as client, open_viewer(client, _source(args, LIVE_HZ)) as show:
        frame = next(show.frames())
    save_png(path, frame.pixels)
    _print_result(args, {"file": str(path), **_facts(frame)}, f"Saved {size_of(frame)} to {path}.")
    return 0


def _clip(args: argparse.Namespace) -> int:
    from mosaic.cli.frame_files import check_target

    seconds = args.seconds or CLIP_S
    if seconds > LONGEST_CLIP_S:
        raise BadUsage(f"a clip of {seconds:g} s would not fit into memory; the longest is {LONGEST_CLIP_S:g} s")
    path = check_target(args.clip, ".gif", args.force)
    clip = Clip(seconds)
    with connected(args) as client, open_viewer(client, _source(args, CLIP_HZ, CLIP_MAX_DIM)) as show:
        for frame in show.frames(seconds):
            clip.add(frame)
            _progress(args, f"{clip.filmed_s:.1f} of {seconds:g} s, {len(clip)} frames")
    _progress(args, "")
    clip.end()
    clip.save(path)
    facts = {"file": str(path), "frames": len(clip), "seconds": clip.seconds, **_facts(frame)}
    short = "" if show.is_left or clip.seconds >= seconds else f" (the run ended before {seconds:g} s)"
    _print_result(args, facts, f"Saved {len(clip)} frames of {size_of(frame)}, {clip.seconds:.1f} s{short}, to {path}.")
    return 0


def _watch(args: argparse.Namespace) -> int:
    is_live = is_screen(sys.stdout) and not args.json
    seconds = args.seconds or (None if is_live else LOOK_S)
    rate, screen = Rate(), Screen(args.line or not is_colourful(sys.stdout))
    with (
        connected(args) as client,
        open_viewer(client, _source(args, LIVE_HZ), screen.clear if is_live else None) as show,
    ):
        if is_live:
            screen.print_line("Waiting for the first frame. Press q to quit.")
        for frame in show.frames(seconds, newest=True):
            rate.count(frame)
            if is_live:
                screen.show(frame, rate)
    if is_live:
        print("\nThe run is over." if show.is_over else "")
    elif args.json:
        print(json.dumps({**_facts(frame), "fps": rate.fps, "core_share": rate.core_share(frame)}))
    else:
        print(describe(frame, rate))
    return 0


class Screen:
    """A picture with a line of numbers below it, drawn over the previous one."""

    def __init__(self, is_plain: bool) -> None:
        self._is_plain = is_plain
        self._height = 0
        self._size: tuple[int, int] | None = None

    def print_line(self, text: str) -> None:
        """Print a line that the first picture will replace."""
        raw(sys.stdout).write(text[: shutil.get_terminal_size().columns - 1] + "\r")
        sys.stdout.flush()

    def show(self, frame: "Frame", rate: Rate) -> None:
        from mosaic.cli.halfblocks import draw

        columns, rows = size = shutil.get_terminal_size()
        if self._size not in (None, size):
            self.clear()  # the terminal has rewrapped the old lines, so their position is unknown
        picture = [] if self._is_plain or rows < 3 else draw(frame.pixels, columns, rows - 2)
        lines = [*picture, describe(frame, rate, columns - 1)]
        back = f"\x1b[{self._height}A" if self._height else ""
        raw(sys.stdout).write("\r" + back + "\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J\r")
        sys.stdout.flush()
        self._height, self._size = len(picture), size

    def clear(self) -> None:
        raw(sys.stdout).write("\x1b[0m\x1b[H\x1b[2J")
        self._height = 0


def _facts(frame: "Frame") -> dict[str, Any]:
    width, height = frame.size
    return {
        "width": width,
        "height": height,
        "channels": frame.pixels.shape[2],
        "number": frame.number,
        "last_reward": frame.last_reward,
        "rolling_return": frame.rolling_return,
        "step_rate_hz": frame.step_rate_hz,
        "cost_ms": frame.cost_ns / 1e6 if frame.cost_ns else None,
        "through": "shared memory" if frame.is_shared else "the daemon",
    }


def _print_result(args: argparse.Namespace, facts: dict[str, Any], sentence: str) -> None:
    print(json.dumps(facts) if args.json else sentence)


def _progress(args: argparse.Namespace, text: str) -> None:
    if sys.stderr.isatty() and not args.json:
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
