"""What the dispatcher remembers of a live run between turns."""

from dataclasses import dataclass

from mosaic.dispatch.deadlines import Vitals
from mosaic.model.run import Limits
from mosaic.model.rundir import RunDir


@dataclass
class LiveRun:
    """What the dispatcher remembers of a run between turns. Nothing here is needed to go on after a crash."""

    rundir: RunDir
    vitals: Vitals
    limits: Limits
    seen_at: float
    stop_sent: bool = False
    end_reason: str = ""  # why we ended it ourselves
    adopted: bool = False  # what its file knows (measured, heartbeats) was asked once
    measured: bool = False
    gone: bool = False  # its tree is proven dead: it uses nothing any more
    drained: bool = False  # its tailer has sent the last byte and will send no more
    trouble: str = ""  # why its telemetry cannot be stored now
    burying_since: float = 0.0  # when we began to kill what a dead holder left
    missing: int = -1  # bytes not stored yet after its end …
    missing_since: float = 0.0  # … and since when that number stands still
