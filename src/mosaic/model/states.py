"""The states of a run and the moves between them.

INIT ──▶ HANDSHAKE ──▶ READY ──▶ EXECUTING ──▶ TERMINATED
  │          │           │ └─────────────────────▲   (READY → TERMINATED: a clean end
  │          │           │           │                without telemetry, e.g. a dry run)
  └──────────┴───────────┴───────────┴──▶ CANCELLED or FAULTED
"""

from enum import StrEnum


class RunState(StrEnum):
    INIT = "INIT"  # in the registry, waiting for the dispatcher
    HANDSHAKE = "HANDSHAKE"  # claimed; its holder is being started
    READY = "READY"  # its tailer has registered; nothing is measured yet
    EXECUTING = "EXECUTING"  # the first step, episode or metric is stored
    TERMINATED = "TERMINATED"  # the worker exited with code 0
    FAULTED = "FAULTED"  # any other end; the reason says which
    CANCELLED = "CANCELLED"  # ended on request

    @property
    def is_over(self) -> bool:
        return self not in MOVES


S = RunState

MOVES: dict[RunState, frozenset[RunState]] = {
    S.INIT: frozenset({S.HANDSHAKE, S.CANCELLED, S.FAULTED}),
    S.HANDSHAKE: frozenset({S.READY, S.CANCELLED, S.FAULTED}),
    S.READY: frozenset({S.EXECUTING, S.TERMINATED, S.CANCELLED, S.FAULTED}),
    S.EXECUTING: frozenset({S.TERMINATED, S.CANCELLED, S.FAULTED}),
}

LIVE_STATES = tuple(MOVES)
