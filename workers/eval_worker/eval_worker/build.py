"""The lanes of an evaluation: what each of them plays, and with whom."""

from collections import Counter
from collections.abc import Mapping, Sequence

from mosaic_sdk.operators.lane_plan import Lane as LanePlan
from mosaic_sdk.operators.script import EvalScript
from mosaic_sdk.operators.specs import HUMAN

from eval_worker.desk import Desk
from eval_worker.game import Game, LaneFailed
from eval_worker.journal import Past
from eval_worker.launch import Launcher, has_people
from eval_worker.player import PlayerGame
from eval_worker.seats import HumanSeat, OperatorSeat, Seat
from eval_worker.table import DESCRIBE, DESCRIBED, Recall, Seating, TableGame


def find_agents(script: EvalScript, launcher: Launcher) -> Sequence[str] | None:
    """The agents of the environment; None if it has only one. LaneFailed if it cannot be made."""
    if not launcher.needs_host():
        return None
    host = launcher.host(0, "agents")
    try:
        described = host.ask(DESCRIBED, {"cmd": DESCRIBE})
    finally:
        host.close()
    return described["agents"] if described.get("multi_agent") else None


def plan_lanes(script: EvalScript, launcher: Launcher) -> tuple[Sequence[str] | None, list[LanePlan]]:
    """The agents and the lanes. LaneFailed if no lane can play, because the environment cannot be made."""
    try:
        agents = find_agents(script, launcher)
    except LaneFailed:
        if not any(map(launcher.owns_env, script.operators)):
            raise
        agents = None  # players bring their own; the other lanes fail with this reason
    return agents, script.lane_plan(agents)


def repetitions_of(seeds: Sequence[int]) -> Mapping[int, int]:
    """By episode: how often its seed was played before; without the episodes whose seed is new."""
    met: Counter[int] = Counter()
    found: dict[int, int] = {}
    for episode, seed in enumerate(seeds):
        if met[seed]:
            found[episode] = met[seed]
        met[seed] += 1
    return found


class Builder:
    """Makes the games of the lanes. No process is started before a game begins."""

    def __init__(self, script: EvalScript, launcher: Launcher, desk: Desk, past: Past | None) -> None:
        self._script = script
        self._launcher = launcher
        self._desk = desk
        self._past = past or Past()
        self.shows_text = False
        self.operator_seed = 0
        self._repetitions = repetitions_of(script.seeds)

    def game(self, lane: LanePlan) -> Game:
        if lane.operator is not None and self._launcher.owns_env(lane.operator):
            return PlayerGame(lane.operator, self._launcher.player(lane.index, lane.operator), self._script.max_steps)
        host = self._launcher.host(lane.index, lane.name)
        return TableGame(self._seating(lane), host, self._script.max_steps, self._recall(lane))

    def _seating(self, lane: LanePlan) -> Seating:
        seats: dict[str, Seat] = {}
        for planned in lane.seats:
            seat = self._seat(planned.operator)
            seats.update(dict.fromkeys(planned.agents, seat))
        return Seating(
            lane=lane.index,
            lane_name=lane.name,
            seats=seats,
            shows_text=self.shows_text or has_people(self._script, lane),
            operator_seed=self.operator_seed,
            repetitions=self._repetitions,
            recorded=frozenset(self._script.record),
        )

    def _seat(self, operator: str) -> Seat:
        spec = self._script.operators[operator]
        if spec["kind"] == HUMAN:
            return HumanSeat(operator, self._desk, spec["time_limit_s"])
        return OperatorSeat(operator, self._launcher.operator(operator))

    def _recall(self, lane: LanePlan) -> Recall:
        return lambda episode, step, agent: self._past.recall(lane.name, episode, step, agent)
