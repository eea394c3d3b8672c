"""The window: events through the hub, its start, and what runs, charts and frames cost.

    .venv-gui/bin/python benchmarks/gui.py [--seconds 60] [--only events]

Gaps of the GUI's thread are compared with the same loop without a feed, and the start with that of an empty Qt window,
in the same run: other programs may keep the machine busy.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QApplication
from rig import Lab, lab, p50, rss_mb, table, verdict

from mosaic.client import AsyncTrainerClient
from mosaic.gui.hub.feed import FeedBatch
from mosaic.gui.hub.hub import TelemetryAsyncHub

PARTS = ("events", "start", "runs", "charts", "frames")
RATE = 5_000
PROBE_MS = 5
SETTLE_S = 5  # before memory counts as flat: caches and pools fill first
OTHERS = {part: Path(__file__).with_name(f"gui_{part}.py") for part in ("runs", "charts", "frames")}

# Prints a line when the window is on the screen, its first page is open and the daemon has answered.
WINDOW = """
import sys
from PySide6.QtCore import QTimer
from mosaic.gui import app

build = app.build_window

def build_and_watch(application, home, hub, options):
    window = build(application, home, hub, options)
    def look():
        if window.isVisible() and hub.connection.state == "ok":
            print("up", flush=True)
            window.close()
    timer = QTimer(window, interval=5)
    timer.timeout.connect(look)
    timer.start()
    return window

app.build_window = build_and_watch
sys.exit(app.run(app.Options()))
"""
EMPTY = """
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
label = QLabel("x")
label.show()
application.processEvents()
print("up", flush=True)
"""


class Gaps:
    """How long the GUI's thread was busy between two looks of a timer."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(interval=PROBE_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        now = time.perf_counter()
        self.ms.append((now - self._last) * 1e3)
        self._last = now

    def stop(self) -> list[float]:
        self._timer.stop()
        return self.ms

    def p99(self) -> float:
        return sorted(self.ms)[int(len(self.ms) * 0.99)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", choices=PARTS)
    args = parser.parse_args()
    for part in [args.only] if args.only else PARTS:
        if part == "events":
            events(args.seconds)
        elif part == "start":
            start()
        elif OTHERS[part].exists():
            subprocess.run([sys.executable, str(OTHERS[part])], check=True)


def events(seconds: int) -> None:
    """A real worker prints RATE events per second; the window receives them through a real daemon."""
    application = QApplication.instance() or QApplication([])
    with lab() as rig:
        hub = TelemetryAsyncHub(lambda: AsyncTrainerClient.connect(rig.root, start=False))
        hub.start()
        spin(application, 2)
        quiet = Gaps()
        spin(application, max(3, seconds // 6))
        quiet.stop()
        received, missed, batches, gaps, memory = follow(application, rig, hub, seconds)
        hub.stop()
    slope = growth(memory)
    ratio = gaps.p99() / quiet.p99()
    table(
        f"{RATE:,} events/s for {seconds} s through a real daemon, GUI thread",
        [
            ("", "value", "without events", "target", ""),
            ("gap p99, ms", f"{gaps.p99():.1f}", f"{quiet.p99():.1f}", "≤ 100", verdict(gaps.p99() <= 100)),
            ("the same, ratio", f"{ratio:.1f}", "1.0", "", ""),
            ("longest gap, ms", f"{max(gaps.ms):.0f}", f"{max(quiet.ms):.0f}", "", ""),
            ("events received per s", f"{received / seconds:,.0f}", "", "", ""),
            ("events skipped", f"{missed:,}", "", "0", verdict(missed == 0)),
            ("events per batch, p50", f"{p50(batches):,.0f}", "", "", ""),
            ("memory growth, MB per minute", f"{slope:.2f}", "", "≤ 2", verdict(slope <= 2)),
        ],
    )


def follow(
    application: QCoreApplication, rig: Lab, hub: TelemetryAsyncHub, seconds: int
) -> tuple[int, int, list[float], Gaps, list[tuple[float, float]]]:
    run = rig.submit(steps=RATE * (seconds + 30), rate=RATE, episode_length=1000)
    sizes: list[float] = []
    missed: list[tuple[int, int]] = []

    def receive(batch: FeedBatch) -> None:
        sizes.append(len(batch.events))
        missed.extend(batch.missed)

    feed = hub.follow(run.run_id)
    feed.received.connect(receive)
    while not sizes:
        spin(application, 0.1)
    sizes.clear()
    gaps, memory, began = Gaps(), [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        spin(application, 0.5)
        memory.append((passed, rss_mb(os.getpid())))
    gaps.stop()
    feed.close()
    rig.client.cancel_run(run.run_id)
    return int(sum(sizes)), sum(last - first + 1 for first, last in missed), sizes, gaps, memory


def spin(application: QCoreApplication, seconds: float) -> None:
    QTimer.singleShot(int(seconds * 1000), application.quit)
    application.exec()


def growth(samples: list[tuple[float, float]]) -> float:
    """MB per minute, by least squares over the samples after the start."""
    late = [(t, mb) for t, mb in samples if t >= min(SETTLE_S, samples[-1][0] / 2)]
    mean_t = sum(t for t, _ in late) / len(late)
    mean_mb = sum(mb for _, mb in late) / len(late)
    spread = sum((t - mean_t) ** 2 for t, _ in late)
    return 60 * sum((t - mean_t) * (mb - mean_mb) for t, mb in late) / spread if spread else 0.0


def start(rounds: int = 5) -> None:
    """From the start of the process until the window shows the runs of a warm daemon."""
    with lab() as rig, TemporaryDirectory() as scripts:
        rig.wait_until_over(rig.submit(steps=10))
        env = {**os.environ, "MOSAIC_HOME": str(rig.root.path)}
        ours = [up_ms(Path(scripts) / "window.py", WINDOW, env) for _ in range(rounds)]
        bare = [up_ms(Path(scripts) / "empty.py", EMPTY, env) for _ in range(rounds)]
    table(
        f"From start to window, warm daemon, wall p50 of {rounds}",
        [
            ("", "ms", "× empty", "target", ""),
            ("an empty Qt window", f"{p50(bare):.0f}", "1.0", "", ""),
            (
                "mosaic gui",
                f"{p50(ours):.0f}",
                f"{p50(ours) / p50(bare):.1f}",
                "≤ 2500 ms",
                verdict(p50(ours) <= 2500),
            ),
        ],
    )


def up_ms(script: Path, code: str, env: dict[str, str]) -> float:
    script.write_text(code)
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        took = (time.perf_counter() - began) * 1e3
        assert line == "up\n", f"the window did not open: {line}"
    return took


if __name__ == "__main__":
    main()
