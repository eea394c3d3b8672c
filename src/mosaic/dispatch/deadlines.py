"""Signs of life of one run, and when their absence means that it hangs. Times are monotonic and passed in."""

import math
from dataclasses import dataclass

from mosaic.model.run import Limits

HANDSHAKE_LIMIT_S = 600.0
SHOW_QUIET_S = 120.0
MEASUREMENTS = 60  # of the CPU time of a silent run's tree, within its heartbeat limit
IDLE_SHARE = 0.01  # of one core: background threads of a hung library still use some CPU


@dataclass
class Vitals:
    """When a run last gave each sign of life."""

    since: float  # when this daemon first saw the run
    last_heartbeat: float | None = None
    last_activity: float | None = None  # any output, heartbeats included
    progress: int | None = None
    progress_at: float | None = None
    behind_bytes: int = 0
    _output_bytes: int | None = None
    _cpu_at: float | None = None
    _cpu_s: float = 0.0

    def heartbeat(self, now: float, progress: int | None) -> None:
        self.last_heartbeat = self.last_activity = now
        self._cpu_at = None
        if progress != self.progress or self.progress_at is None:
            self.progress, self.progress_at = progress, now

    def activity(self, now: float) -> None:
        self.last_activity = now

    def note_output(self, now: float, total_bytes: int) -> None:
        """Note how much it has printed in all: text without a newline (a progress bar) is a sign of life as well."""
        if self._output_bytes is not None and total_bytes != self._output_bytes:
            self.last_activity = now
        self._output_bytes = total_bytes

    def shift(self, seconds: float) -> None:
        """Skip time in which nothing could be received (the daemon was stopped, the machine was suspended)."""
        self.since += seconds
        for name in ("last_heartbeat", "last_activity", "progress_at", "_cpu_at"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, value + seconds)

    def needs_cpu_time(self, now: float, limits: Limits) -> bool:
        """Whether the silence is long enough to measure the tree's CPU time (a scan of /proc)."""
        return self.last_heartbeat is not None and now - self.last_heartbeat > limits.heartbeat_s / 2

    def note_cpu_time(self, now: float, cpu_s: float | None) -> None:
        """Note the tree's CPU time; a busy tree restarts the measurement of its idle time.

        None: it cannot be measured now, so nothing is known about the time since the last one.
        """
        if cpu_s is None:
            self._cpu_at = None
        elif self._cpu_at is None or cpu_s - self._cpu_s > IDLE_SHARE * (now - self._cpu_at) + 0.02:
            self._cpu_at, self._cpu_s = now, cpu_s

    def verdict(self, now: float, limits: Limits) -> str:
        """Why the run must be ended now; empty while it may continue."""
        if self.behind_bytes:
            return ""  # its output has not been received yet
        if self._is_hung(now, limits):
            return f"hang: no heartbeat for {_format_span(now - (self.last_heartbeat or now))} and no CPU used"
        if self._is_spinning(now, limits):
            return f"hang: no heartbeat and no other output for {_format_span(self._silence(now))}"
        if limits.no_progress_s and self.progress_at is not None and now - self.progress_at > limits.no_progress_s:
            return f"hang: heartbeats without progress for {_format_span(now - self.progress_at)}"
        if limits.quiet_s and self._silence(now) > limits.quiet_s:
            return f"hang: no output for {_format_span(self._silence(now))}"
        return ""

    def next_deadline(self, now: float, limits: Limits) -> float:
        """When the run must be looked at, at the latest, if it gives no sign of life until then."""
        sign = self.since if self.last_activity is None else self.last_activity
        times = [sign + limits.quiet_s] if limits.quiet_s else []
        if self.progress_at is not None and limits.no_progress_s:
            times.append(self.progress_at + limits.no_progress_s)
        if self.last_heartbeat is not None:
            # From then on the CPU time of its tree is measured again and again.
            measured = now + limits.heartbeat_s / MEASUREMENTS
            times.append(max(self.last_heartbeat + limits.heartbeat_s / 2, measured))
            times += [sign + limits.spin_s] if limits.spin_s else []
        return min(times, default=math.inf)

    def describe(self, now: float, limits: Limits) -> str:
        """What a listing shows: "no heartbeat 6 min", "quiet 6 min", "no progress 40 min", or nothing."""
        if self.last_heartbeat is not None and now - self.last_heartbeat > limits.heartbeat_s:
            return f"no heartbeat {_format_span(now - self.last_heartbeat)}"
        if self._silence(now) > SHOW_QUIET_S:
            return f"quiet {_format_span(self._silence(now))}"
        if self.progress_at is not None and now - self.progress_at > SHOW_QUIET_S:
            return f"no progress {_format_span(now - self.progress_at)}"
        return ""

    def _silence(self, now: float) -> float:
        return now - (self.since if self.last_activity is None else self.last_activity)

    def _is_spinning(self, now: float, limits: Limits) -> bool:
        # CPU time proves nothing here, and even a slow training prints something: only complete silence counts.
        return bool(limits.spin_s) and self.last_heartbeat is not None and self._silence(now) > limits.spin_s

    def _is_hung(self, now: float, limits: Limits) -> bool:
        if self.last_heartbeat is None or now - self.last_heartbeat <= limits.heartbeat_s:
            return False
        # The tree must be idle for half the limit: a single look at a sleeping process proves nothing.
        return self._cpu_at is not None and now - self._cpu_at >= limits.heartbeat_s / 2


def _format_span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
