"""The state of `mosaic watch` and what its keys do. It knows neither the terminal nor the daemon."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mosaic.present.folded import PREFIX, folded, name_of_line
from mosaic.present.metric_order import in_order as metrics_in_order
from mosaic.present.run_filter import BadFilter, RunFilter, parse_filter
from mosaic.present.run_order import ORDERS, in_order

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.client.events import Curve

WHEEL_ROWS = 3
LOG_LINES = 1000


@dataclass
class Scroll:
    """The visible part of a long list."""

    top: int = 0
    page: int = 1  # number of rows that fit; set by what draws the list

    def move(self, by: int, count: int) -> None:
        self.top = max(0, min(self.top + by, count - self.page))

    def show(self, place: int, count: int) -> None:
        """Scroll as little as needed to make this row visible."""
        self.top = min(max(self.top, place - self.page + 1), place)
        self.move(0, count)


@dataclass
class OpenRun:
    """The run that is open, with its details."""

    run_id: str
    run: "Run | None" = None  # with its history
    names: list[str] = field(default_factory=list)  # of its metrics, in the order in which they are shown
    curves: "dict[str, Curve]" = field(default_factory=dict)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    filter: str = ""
    scroll: Scroll = field(default_factory=Scroll)

    def add_names(self, names: Iterable[str]) -> None:
        self.names = metrics_in_order([*self.names, *names])

    def matching(self) -> list[str]:
        return [name for name in self.names if matches(self.filter, name)]

    def visible(self) -> list[str]:
        return self.matching()[self.scroll.top : self.scroll.top + self.scroll.page]


@dataclass
class WatchState:
    """The list of runs, the open run if there is one, and the mode that decides what a key does."""

    runs: "dict[str, Run]" = field(default_factory=dict)
    shown: "list[Run]" = field(default_factory=list)  # the runs that match the filter, in order; experiments folded
    total: int = 0
    marked: str = ""  # the id of the selected run; empty: whichever run is in the first row
    place: int = 0  # the row of the selected run
    scroll: Scroll = field(default_factory=Scroll)
    order: str = "live first"
    filter: str = ""  # as it was typed
    understood: RunFilter = field(default_factory=RunFilter)  # the filter, or the last one that had no error
    filter_problem: str = ""
    unfolded: set[str] = field(default_factory=set)  # experiments whose runs are listed
    open_run: OpenRun | None = None
    is_typing: bool = False  # keys edit the filter
    is_help: bool = False
    question: "Run | None" = None  # the user is asked whether to cancel this run
    to_cancel: str = ""  # the id of the run to cancel, after the answer yes
    problem: str = ""
    note: str = ""  # shown until the next key
    is_left: bool = False

    # What is shown

    def arrange(self) -> None:
        """Filter and sort again. The selection stays on its run."""
        self._understand()
        chosen = in_order(self.understood.chosen(self.runs.values()), self.order)
        self.shown = folded(chosen, self.unfolded)
        places = {run.run_id: place for place, run in enumerate(self.shown)}
        self.place = places.get(self.marked, self.place) if self.marked else 0
        self._mark(self.place, by_hand=bool(self.marked))

    def _understand(self) -> None:
        """Apply the filter, or keep the last one and say what is wrong."""
        try:
            self.understood, self.filter_problem = parse_filter(self.filter), ""
        except BadFilter as error:
            self.filter_problem = str(error)

    def _mark(self, place: int, by_hand: bool = True) -> None:
        self.place = max(0, min(place, len(self.shown) - 1))
        self.marked = self.shown[self.place].run_id if by_hand and self.shown and self.place else ""
        self.scroll.show(self.place, len(self.shown))

    @property
    def chosen(self) -> "Run | None":
        """The run that a key applies to."""
        if self.open_run:
            return self.open_run.run or self.runs.get(self.open_run.run_id)
        return self.shown[self.place] if self.shown else None

    def open(self, run_id: str) -> None:
        self.open_run = OpenRun(run_id, self.runs.get(run_id))

    # Keys

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        self.note = ""
        if key == "closed":
            self.is_left = True
        elif self.question:
            self._answer(key)
        elif self.is_help:
            self.is_help = False
        elif self.is_typing:
            self._type(key)
        elif not self._move(key):
            self._do(key)

    def _answer(self, key: str) -> None:
        if key in ("y", "Y") and self.question:
            self.to_cancel = self.question.run_id
        self.question = None

    def _type(self, key: str) -> None:
        text = self.open_run.filter if self.open_run else self.filter
        if key == "enter":
            self.is_typing = False
        elif key == "escape":
            self.is_typing = False
            self._narrow("")
        elif key == "back":
            self._narrow(text[:-1])
        elif len(key) == 1 and key.isprintable():
            self._narrow(text + key)
        else:
            self._move(key)

    def _narrow(self, text: str) -> None:
        if self.open_run:
            self.open_run.filter, self.open_run.scroll.top = text, 0
        else:
            self.filter = text
            self.arrange()

    def _move(self, key: str) -> bool:
        """Move if this is a key that moves. Returns whether it is."""
        if key.startswith("click "):
            self._click(int(key.split()[1]))
            return True
        page = self.open_run.scroll.page if self.open_run else self.scroll.page
        far = 1 << 30
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdn": page, " ": page}
        moves |= {"home": -far, "g": -far, "end": far, "G": far, "wheel up": -WHEEL_ROWS, "wheel down": WHEEL_ROWS}
        if key not in moves or (self.is_typing and len(key) == 1):
            return False
        if self.open_run:
            self.open_run.scroll.move(moves[key], len(self.open_run.matching()))
        else:
            self._mark(self.place + moves[key])
        return True

    def _click(self, row: int) -> None:
        """Select the run in this row of the terminal. Rows count from 1; two lines are above the first run."""
        place = self.scroll.top + row - 3
        if not self.open_run and row >= 3 and place < min(len(self.shown), self.scroll.top + self.scroll.page):
            self._mark(place)

    def _do(self, key: str) -> None:
        if key == "q":
            self.is_left = True
        elif key == "?":
            self.is_help = True
        elif key == "/":
            self.is_typing = True
        elif key == "c":
            self._ask_to_cancel()
        elif key in ("escape", "back"):
            self._go_back()
        elif not self.open_run and key in ("s", "S"):
            self._sort(1 if key == "s" else -1)
        elif not self.open_run and key == "enter" and self.chosen:
            self._enter(self.chosen)
        elif not self.open_run and key == "e" and self.chosen and self.chosen.experiment:
            self._fold(self.chosen.experiment)

    def _enter(self, line: "Run") -> None:
        """Open the run, or unfold the experiment."""
        if experiment := name_of_line(line.run_id):
            self._fold(experiment)
        else:
            self.open(line.run_id)

    def _fold(self, experiment: str) -> None:
        """Fold the runs of an experiment into one line, or list them again."""
        self.unfolded ^= {experiment}
        if experiment not in self.unfolded and any(name_of_line(line.run_id) == experiment for line in self.shown):
            self.marked = f"{PREFIX}{experiment}"
        self.arrange()

    def _ask_to_cancel(self) -> None:
        run = self.chosen
        if run and not run.state.is_over:
            self.question = run
        elif run:
            self.note = f"Run {run.name or run.run_id} is already over: {run.state}."

    def _go_back(self) -> None:
        """Clear the filter; if there is none, close the run."""
        if self.open_run and not self.open_run.filter:
            self.open_run = None
            self.arrange()
        else:
            self._narrow("")

    def _sort(self, by: int) -> None:
        names = list(ORDERS)
        self.order = names[(names.index(self.order) + by) % len(names)]
        self.marked, self.place = "", 0
        self.arrange()


def matches(words: str, text: str) -> bool:
    """Whether the text contains every word of the filter, ignoring case."""
    return all(word in text.lower() for word in words.lower().split())
