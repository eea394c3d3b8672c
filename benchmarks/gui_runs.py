"""The runs page with 10,000 runs: the longest time for which scrolling and filtering block the window.

    .venv-gui/bin/python benchmarks/gui_runs.py

Every gap is compared with the same action on a table of 40 runs in the same process, because the machine may be busy.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from mosaic.client.run import Run
from mosaic.gui.context import Context
from mosaic.gui.hub.connection import Connection, RunsChange
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.gui.memory import Memory
from mosaic.gui.runs.page import RunsPage
from mosaic.gui.theme import Theme
from mosaic.wire import mosaic_pb2 as pb

RUNS = 10_000
FEW = 40  # a little more than fits
STATES = ("TERMINATED", "FAULTED", "CANCELLED", "EXECUTING")
FILTERS = ("s", "st", "state:live", "state:live algo:ppo", "state:live return>400", "cartpole -99", "age<2h", "")


class Silent:
    """A navigator, and notices, that do nothing."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def make_run(number: int) -> Run:
    now = time.time()
    trace = [(number * step) % 97 for step in range(40)]
    info = pb.RunInfo(
        run_id=f"01JCQ{number:021}",
        name=f"cartpole {number}",
        worker_name="cleanrl",
        algo=("ppo", "dqn")[number % 2],
        env_id="CartPole-v1",
        state=pb.State.Value(STATES[number % 4]),
        created_at=now - number,
        updated_at=now,
        total_steps=100_000,
    )
    info.summary.CopyFrom(pb.Summary(env_steps=number, mean_return=number % 500, mean_over=9, return_trace=trace))
    return Run.from_wire(info)


def make_page(app: QApplication, runs: list[Run]) -> RunsPage:
    hub = TelemetryAsyncHub(lambda: None)
    hub.runs.update((run.run_id, run) for run in runs)
    hub.connection = Connection("ok")
    theme = Theme()
    theme.dress(app)
    memory = Memory(Path(tempfile.mkdtemp()) / "gui.ini")
    page = RunsPage(Context(hub, memory, theme, None, "", Silent(), Silent()))
    page.resize(1280, 720)
    page.show()
    settle(app)
    return page


def settle(app: QApplication) -> None:
    for _ in range(5):
        app.processEvents()


def gap_ms(app: QApplication, act) -> float:
    """How long the window does not answer while it carries this out and draws the result."""
    began = time.perf_counter()
    act()
    app.processEvents()
    return (time.perf_counter() - began) * 1000


def scroll(app: QApplication, page: RunsPage) -> list[float]:
    bar = page.table.verticalScrollBar()
    return [gap_ms(app, lambda at=at: bar.setValue(at * bar.maximum() // 100)) for at in range(101)]


def filter_runs(app: QApplication, page: RunsPage) -> list[float]:
    def type_in(text: str) -> None:
        page.filter_field.setText(text)
        page.filter_field.apply()

    return [gap_ms(app, lambda text=text: type_in(text)) for _ in range(3) for text in FILTERS]


def sort_runs(app: QApplication, page: RunsPage) -> list[float]:
    return [gap_ms(app, lambda key=key: page.sort_by(key)) for key in ("return", "name", "note", "progress", "age")]


def report_changes(app: QApplication, page: RunsPage) -> list[float]:
    """A hundred reports, each of a hundred changed runs and one new one."""
    hub = page._context.hub

    def report(turn: int) -> None:
        new = make_run(RUNS + turn)
        changed = (*list(hub.runs.values())[:100], new)
        hub.runs[new.run_id] = new
        hub.runs_changed.emit(RunsChange(changed))

    return [gap_ms(app, lambda turn=turn: report(turn)) for turn in range(100)]


def main() -> None:
    app = QApplication([])
    few, full = (make_page(app, [make_run(number) for number in range(count)]) for count in (FEW, RUNS))
    print(f"| {RUNS:,} runs | longest gap | p50 | 40 runs: longest gap | ratio of p50 |")
    print("|---|---|---|---|---|")
    for name, act in (("scroll", scroll), ("filter", filter_runs), ("sort", sort_runs), ("reports", report_changes)):
        base, found = act(app, few), act(app, full)
        ratio = statistics.median(found) / statistics.median(base)
        print(
            f"| {name} | {max(found):.1f} ms | {statistics.median(found):.1f} ms | {max(base):.1f} ms | {ratio:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
