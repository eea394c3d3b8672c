"""The columns of a list of runs: text, sort key, tooltip and spoken text of every cell, without a toolkit."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.present.durations import format_duration
from mosaic.present.run_order import STATES
from mosaic.present.runs import note
from mosaic.present.scores import count, describe_score, env_steps, is_rate_known, score, score_cell
from mosaic.present.state_marks import GLYPH, KIND, state_text, state_word
from mosaic.present.states import explain
from mosaic.present.text import number, printable, size

if TYPE_CHECKING:
    from mosaic.client import Run

__all__ = ["COLUMNS", "GLYPH", "KIND", "Column", "Surroundings", "column", "name_of"]

TIP_LETTERS = 600


@dataclass
class Surroundings:
    """What a cell depends on besides its run."""

    now: float = field(default_factory=time.time)
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes on disk by run id, as far as they were measured
    gpus: Mapping[str, str] = field(default_factory=dict)  # by UUID: `0: NVIDIA H200`


Text = Callable[["Run", Surroundings], str]


@dataclass(frozen=True)
class Column:
    key: str  # under which its width is remembered
    title: str
    text: Text  # safe to show: no control characters, one line
    sort: "Callable[[Run, Surroundings], Any]"  # None or empty: the run is listed last
    tip: Text  # plain text; may have several lines
    rank: int  # which columns are hidden first when there is little room: the highest rank
    width: int  # in pixels, unless the user chooses another
    is_number: bool = False  # right-aligned, with digits of equal width
    is_high_first: bool = False  # the first click on the heading sorts the highest value to the top
    is_hidden: bool = False  # until the user chooses it
    about: str = ""  # the heading's tooltip

    def spoken(self, run: "Run", around: Surroundings) -> str:
        """What a screen reader says: the heading and the value without glyphs."""
        value = state_word(run) if self.key == "state" else self.text(run, around)
        return f"{self.title}: {value or 'none'}"


def column(key: str) -> Column:
    return next(column for column in COLUMNS if column.key == key)


def name_of(run: "Run") -> str:
    """What a run is called: its name, or its worker's if it has none."""
    return printable(run.name or run.worker_name).strip() or run.run_id


def progress_text(run: "Run") -> str:
    """`62% 2m13s`; without a known total the number of steps."""
    if run.progress is None:
        return count(env_steps(run), "step") if env_steps(run) else ""
    left = "" if run.eta_s is None else f" {format_duration(run.eta_s)}"
    return f"{run.progress:.0%}{left}"


def _progress_tip(run: "Run", _: Surroundings) -> str:
    steps = env_steps(run)
    done = (
        f"{steps:,} of {count(run.total_steps, 'step')}"
        if run.total_steps
        else f"{count(steps, 'step')}; the total is unknown"
    )
    left = "" if run.eta_s is None else f"\nabout {format_duration(run.eta_s)} left at the present rate"
    return done + left


def _rate(run: "Run", _: Surroundings) -> str:
    rate = run.summary.steps_per_s
    if not is_rate_known(run):
        return ""
    return f"{rate:,.0f}" if rate >= 10 else number(rate)


def gpu_text(run: "Run", around: Surroundings) -> str:
    """The numbers of the GPUs that the run holds, or how many if the numbers are unknown."""
    if not run.granted:
        return ""
    numbers = [around.gpus[uuid].split(":")[0] for uuid in run.granted if uuid in around.gpus]
    return ", ".join(numbers) if len(numbers) == len(run.granted) else f"×{len(run.granted)}"


def _gpu_tip(run: "Run", around: Surroundings) -> str:
    if run.granted:
        return "\n".join(printable(f"GPU {around.gpus.get(uuid, uuid)}") for uuid in run.granted)
    if run.gpus_requested and not run.state.is_over:
        return f"waits for {count(run.gpus_requested, 'GPU')}" if run.waiting_for else "runs without a GPU"
    return "holds no GPU"


def _age_tip(run: "Run", _: Surroundings) -> str:
    submitted = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.created_at))
    return f"submitted {submitted}\n{'ran' if run.state.is_over else 'has run'} for {format_duration(run.duration_s)}"


def _size(run: "Run", around: Surroundings) -> str:
    used = around.sizes.get(run.run_id)
    return "" if used is None else size(used)


def _size_tip(run: "Run", around: Surroundings) -> str:
    if run.run_id in around.sizes:
        return f"{around.sizes[run.run_id]:,} bytes in {printable(run.run_dir)}"
    return "is measured when the run is over" if not run.state.is_over else "not measured"


def _name_tip(run: "Run", _: Surroundings) -> str:
    tags = f"\ntags: {', '.join(run.tags)}" if run.tags else ""
    return _cut(f"{name_of(run)}\n{run.run_id}{tags}")


def _reason_tip(run: "Run", _: Surroundings) -> str:
    return _cut(run.reason.strip() or note(run))


def _cut(text: str) -> str:
    """At most TIP_LETTERS, line by line without control characters."""
    short = text if len(text) <= TIP_LETTERS else text[:TIP_LETTERS] + "…"
    return "\n".join(printable(line) for line in short.split("\n"))


def _words(key: str, title: str, read: "Callable[[Run], str]", rank: int, width: int) -> Column:
    """A column whose cells are words of the run, unchanged."""

    def shown(run: "Run", _: Surroundings) -> str:
        return printable(read(run))

    return Column(key, title, shown, lambda run, _: read(run).lower(), shown, rank, width)


COLUMNS = (
    Column("name", "Name", lambda run, _: name_of(run), lambda run, _: name_of(run).lower(), _name_tip, 0, 200),
    Column(
        "state",
        "State",
        text=lambda run, _: state_text(run),
        sort=lambda run, _: STATES.index(run.state),
        tip=lambda run, _: _cut(explain(run)),
        rank=0,
        width=104,
    ),
    _words("worker", "Worker", lambda run: run.worker_name, rank=6, width=88),
    _words("algo", "Algorithm", lambda run: run.algo, rank=4, width=96),
    _words("env", "Environment", lambda run: run.env_id, rank=2, width=128),
    Column(
        "seed",
        "Seed",
        text=lambda run, _: "" if run.seed is None else str(run.seed),
        sort=lambda run, _: run.seed,
        tip=lambda run, _: "from the run's settings" if run.seed is not None else "the run's settings have no seed",
        rank=7,
        width=56,
        is_number=True,
    ),
    Column(
        "progress",
        "Progress",
        text=lambda run, _: progress_text(run),
        sort=lambda run, _: run.progress,
        tip=_progress_tip,
        rank=0,
        width=176,
        is_high_first=True,
        about="Progress, and the time left at the present rate",
    ),
    Column(
        "rate",
        "Steps/s",
        text=_rate,
        sort=lambda run, _: run.summary.steps_per_s if is_rate_known(run) else None,
        tip=lambda run, _: "environment steps per second" if is_rate_known(run) else "only known while it runs",
        rank=5,
        width=84,
        is_number=True,
        is_high_first=True,
        about="Environment steps per second",
    ),
    Column(
        "return",
        "Return",
        text=lambda run, _: score_cell(run),
        sort=lambda run, _: score(run),
        tip=lambda run, _: describe_score(run) or "no episode has ended yet",
        rank=0,
        width=144,
        is_number=True,
        is_high_first=True,
        about="Mean return of the newest episodes (evaluations: ± 95 % interval), and the returns of the whole run",
    ),
    Column(
        "gpu",
        "GPU",
        text=gpu_text,
        sort=gpu_text,
        tip=_gpu_tip,
        rank=8,
        width=48,
        is_number=True,
        about="The GPUs that the run holds now",
    ),
    Column(
        "age",
        "Age",
        text=lambda run, around: format_duration(around.now - run.created_at),
        sort=lambda run, _: -run.created_at,
        tip=_age_tip,
        rank=1,
        width=76,
        is_number=True,
        about="Time since the submission",
    ),
    Column(
        "size",
        "Size",
        text=_size,
        sort=lambda run, around: around.sizes.get(run.run_id),
        tip=_size_tip,
        rank=9,
        width=76,
        is_number=True,
        is_high_first=True,
        about="Disk space of the run's folder, measured for runs on this machine that are over",
    ),
    Column(
        "note",
        "Note",
        text=lambda run, _: note(run),
        sort=lambda run, _: note(run).lower(),
        tip=_reason_tip,
        rank=3,
        width=160,
        about="Why it failed, what it waits for",
    ),
    Column(
        "id",
        "Run id",
        text=lambda run, _: run.run_id,
        sort=lambda run, _: run.run_id,
        tip=lambda run, _: run.run_id,
        rank=10,
        width=220,
        is_hidden=True,
    ),
)
