"""The words with which people select states: `live`, `failed`, and the states' own names."""

from mosaic.model.states import LIVE_STATES, RunState

S = RunState

STATES: dict[str, frozenset[RunState]] = {
    "live": frozenset(LIVE_STATES),
    "over": frozenset(set(S) - set(LIVE_STATES)),
    "waiting": frozenset({S.INIT}),
    "running": frozenset({S.HANDSHAKE, S.READY, S.EXECUTING}),
    "done": frozenset({S.TERMINATED}),
    "failed": frozenset({S.FAULTED}),
    "cancelled": frozenset({S.CANCELLED}),
} | {state.lower(): frozenset({state}) for state in S}
