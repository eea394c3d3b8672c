"""The lanes of an evaluation, once the agents of its environment are known.

A lane is one copy of the environment with an operator for each agent. Every lane plays every seed; of its copies
(`parallel: n`), copy j plays seeds j, j + n, …
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.document import a_list, a_name, a_text, an_object, one_of, refuse_unknown

ALL = "*"
Groups = Mapping[str, List[str]]


class Seat(NamedTuple):
    """One operator process of a lane, and the agents for which it decides."""

    operator: str
    agents: Tuple[str, ...]  # ("",) in a single-agent lane


@dataclass(frozen=True)
class Lane:
    """One copy of the environment, its operators and its episodes."""

    index: int
    name: str
    operator: Optional[str]  # of a single-agent lane; None in a multi-agent one
    agents: Dict[str, str]  # operator of each agent, in the environment's order; empty in a single-agent lane
    seats: Tuple[Seat, ...]
    episodes: Tuple[Tuple[int, int], ...]  # (episode_index, seed) of each episode that it plays

    def describe(self) -> Dict[str, Any]:
        """As `evaluation_started` reports it."""
        players: Dict[str, Any] = {"operator": self.operator} if self.operator else {"agents": self.agents}
        return {"index": self.index, "name": self.name, **players}


def parse_lanes(value: Any, operators: Sequence[str]) -> Optional[List[Dict[str, Any]]]:
    """The lanes of a script: [{"name", "operator"} or {"name", "agents"}]; None if it names none."""
    if value is None:
        return None
    lanes = [_parse_lane(one, place, operators) for place, one in enumerate(a_list(value, "lanes"))]
    if not lanes:
        raise ConfigError("lanes: must have at least one lane.")
    _refuse_repeated([lane["name"] for lane in lanes])
    used = {name for lane in lanes for name in [lane.get("operator"), *lane.get("agents", {}).values()]}
    idle = [name for name in operators if name not in used]
    if idle:
        raise ConfigError(f"operators.{idle[0]}: is in no lane. Add it to one, or remove it.")
    return lanes


def parse_groups(value: Any) -> Dict[str, List[str]]:
    groups, owner = {}, {}  # type: Dict[str, List[str]], Dict[str, str]
    for name, agents in an_object(value or {}, "groups").items():
        path = f"groups.{a_name(name, 'groups')}"
        groups[name] = [a_text(agent, f"{path}[{place}]") for place, agent in enumerate(a_list(agents, path))]
        for agent in groups[name]:
            if agent in owner:
                raise ConfigError(f"{path}: {agent} is in {owner[agent]} already. An agent is in one group.")
            owner[agent] = name
    return groups


def plan_lanes(
    lanes: Optional[List[Dict[str, Any]]],
    operators: Sequence[str],
    groups: Groups,
    agents: Optional[Sequence[str]],
    *,
    rotate: bool,
    copies: int,
    seeds: Sequence[int],
) -> List[Lane]:
    """`agents`: the environment's agents in its order; None: it has only one."""
    given = _default_lanes(operators, agents) if lanes is None else lanes
    if agents is None:
        _refuse_agents(given, groups, rotate)
        filled: List[Tuple[str, Optional[str], Dict[str, str]]] = [(one["name"], one["operator"], {}) for one in given]
    else:
        _refuse_strangers(groups, agents)
        filled = [
            (name, None, seating)
            for lane in given
            for name, seating in _rotations(lane["name"], _seating(lane, groups, agents), groups, rotate)
        ]
    episodes = list(enumerate(seeds))
    count = min(copies, len(episodes))
    shares = [(f".{copy + 1}" if count > 1 else "", tuple(episodes[copy::count])) for copy in range(count)]
    planned = [(one, mark, share) for one in filled for mark, share in shares]
    _refuse_repeated([name + mark for (name, _, _), mark, _ in planned])
    return [
        Lane(index, name + mark, operator, seating, _seats(operator, seating, groups), share)
        for index, ((name, operator, seating), mark, share) in enumerate(planned)
    ]


def _parse_lane(value: Any, place: int, operators: Sequence[str]) -> Dict[str, Any]:
    path = f"lanes[{place}]"
    given = {"operator": value} if isinstance(value, str) else an_object(value, path)
    refuse_unknown(given, ("name", "operator", "agents"), path)
    operator, agents = given.get("operator"), given.get("agents")
    if (operator is None) == (agents is None):
        raise ConfigError(f"{path}: must have either operator or agents.")
    name = given.get("name") if given.get("name") is not None else operator or f"lane-{place}"
    if operator is not None:
        known = one_of(a_text(operator, f"{path}.operator"), operators, f"{path}.operator", "operator")
        return {"name": a_name(name, f"{path}.name"), "operator": known}
    return {"name": a_name(name, f"{path}.name"), "agents": _parse_agents(agents, f"{path}.agents", operators)}


def _parse_agents(value: Any, path: str, operators: Sequence[str]) -> Dict[str, str]:
    agents = an_object(value, path)
    if not agents:
        raise ConfigError(f"{path}: must name the operator of at least one agent.")
    return {
        key: one_of(a_text(name, f"{path}.{key}"), operators, f"{path}.{key}", "operator")
        for key, name in agents.items()
    }


def _default_lanes(operators: Sequence[str], agents: Optional[Sequence[str]]) -> List[Dict[str, Any]]:
    if agents is not None and len(operators) > 1:
        raise ConfigError(
            f"lanes is missing: the environment has the agents {', '.join(agents)}, and there are {len(operators)} "
            "operators. Say in lanes which operator plays which agent."
        )
    return [{"name": name, "operator": name} for name in operators]


def _refuse_agents(lanes: List[Dict[str, Any]], groups: Groups, rotate: bool) -> None:
    for place, lane in enumerate(lanes):
        if "operator" not in lane:
            raise ConfigError(f"lanes[{place}].agents: the environment has one agent. Use operator instead.")
    for key, is_given in (("groups", groups), ("rotate", rotate)):
        if is_given:
            raise ConfigError(f"{key}: the environment has one agent. Remove {key}.")


def _refuse_strangers(groups: Groups, agents: Sequence[str]) -> None:
    for name, members in groups.items():
        for agent in members:
            one_of(agent, agents, f"groups.{name}", "agent")


def _seating(lane: Mapping[str, Any], groups: Groups, agents: Sequence[str]) -> Dict[str, str]:
    """The operator of each agent: by its id, else by its group, else by "*"."""
    if "operator" in lane:
        return dict.fromkeys(agents, lane["operator"])
    named: Mapping[str, str] = lane["agents"]
    path = f"lanes.{lane['name']}.agents"
    for key in named:
        one_of(key, [*agents, *groups, ALL], f"{path}.{key}", "agent or group")
    group_of = {agent: name for name, members in groups.items() for agent in members}
    seating = {}
    for agent in agents:
        found = [named[key] for key in (agent, group_of.get(agent, ""), ALL) if key in named]
        if not found:
            raise ConfigError(f'{path}: {agent} has no operator. Add it, or "*" for all the others.')
        seating[agent] = found[0]
    _refuse_split_groups(seating, groups, path)
    return seating


def _refuse_split_groups(seating: Mapping[str, str], groups: Groups, path: str) -> None:
    for name, members in groups.items():
        if len({seating[agent] for agent in members}) > 1:
            raise ConfigError(f"{path}: the agents of the group {name} must have the same operator.")


def _rotations(name: str, seating: Dict[str, str], groups: Groups, rotate: bool) -> List[Tuple[str, Dict[str, str]]]:
    """The seating, and with `rotate` every other one that moving the operators on by some places gives."""
    sides = _sides(seating, groups)
    operators = [seating[side[0]] for side in sides]
    found: List[Tuple[str, Dict[str, str]]] = []
    for turn in range(len(sides) if rotate else 1):
        moved = operators[-turn:] + operators[:-turn] if turn else operators
        turned = {agent: operator for side, operator in zip(sides, moved) for agent in side}
        ordered = {agent: turned[agent] for agent in seating}
        if all(ordered != before for _, before in found):
            found.append((f"{name}-r{turn}" if turn else name, ordered))
    return found


def _sides(seating: Mapping[str, str], groups: Groups) -> List[Tuple[str, ...]]:
    """The agents that one operator process plays together: those of a group, and each other one alone."""
    group_of = {agent: tuple(members) for members in groups.values() for agent in members}
    return list(dict.fromkeys(group_of.get(agent, (agent,)) for agent in seating))


def _seats(operator: Optional[str], seating: Mapping[str, str], groups: Groups) -> Tuple[Seat, ...]:
    if operator is not None:
        return (Seat(operator, ("",)),)
    return tuple(Seat(seating[side[0]], side) for side in _sides(seating, groups))


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise ConfigError(f"lanes: two lanes have the name {repeated[0]}. Give each a name of its own.")
