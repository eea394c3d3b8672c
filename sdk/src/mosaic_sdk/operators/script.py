"""The evaluation script: which operators play which environment on which seeds.

    env: MiniGrid-Empty-8x8-v0
    operators: {ppo: "rl:last:best", chance: random}
    seeds: 0-19

    script = EvalScript.parse(document)         # ConfigError that names the key
    script.to_dict()                            # the normal form: every key, every default; parsing it changes nothing
    script.lane_plan(agents)                    # the lanes, once the environment's agents are known

docs/howto/evaluation-script.md describes every key.
"""

import copy
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators import lane_plan, specs
from mosaic_sdk.operators.document import a_list, a_name, a_text, an_object, one_of, refuse_unknown
from mosaic_sdk.operators.lane_plan import Lane
from mosaic_sdk.operators.seeds import parse_seeds
from mosaic_sdk.values import checked

NEXT, WAIT = "next", "wait"
MODES = SCRIPT, MANUAL = "script", "manual"
DEFAULT_VIDEOS = 0
_MOST_COPIES = 64
_FASTEST = 1_000_000  # steps per second


class EvalScript(NamedTuple):
    """A checked script. `env` and `operators` are plain objects with all of their keys (specs.py)."""

    name: str
    env: Dict[str, Any]
    operators: Dict[str, Dict[str, Any]]
    lanes: Optional[List[Dict[str, Any]]]  # None: by the number of agents and operators
    groups: Dict[str, List[str]]
    rotate: bool
    seeds: List[int]
    max_steps: Optional[int]
    parallel: int
    on_done: str
    pace: float
    video: int
    record: List[str]

    @classmethod
    def parse(cls, document: Any, mode: str = SCRIPT) -> "EvalScript":
        """A script from a document (a file's content, or a normal form). `mode` decides only the default of on_done."""
        given = an_object(document, "The script")
        refuse_unknown(given, (*cls._fields, "episodes"))
        for key in ("env", "operators"):
            if given.get(key) is None:
                raise ConfigError(f"{key} is missing.")
        operators = specs.parse_operators(given["operators"])
        return cls(
            name="" if given.get("name") in (None, "") else a_name(given["name"], "name"),
            env=specs.parse_env(given["env"]),
            operators=operators,
            lanes=lane_plan.parse_lanes(given.get("lanes"), list(operators)),
            groups=lane_plan.parse_groups(given.get("groups")),
            seeds=parse_seeds(given.get("seeds"), given.get("episodes")),
            record=_parse_record(given.get("record"), operators),
            **_parse_schedule(given, mode),
        )

    def to_dict(self) -> Dict[str, Any]:
        """The normal form, as JSON can hold it."""
        return copy.deepcopy(self._asdict())

    def lane_plan(self, agents: Optional[Sequence[str]]) -> List[Lane]:
        """The lanes, after rotations and copies. `agents`: the environment's, in its order; None: it has only one."""
        more = {"rotate": self.rotate, "copies": self.parallel, "seeds": self.seeds}
        return lane_plan.plan_lanes(self.lanes, list(self.operators), self.groups, agents, **more)  # type: ignore[arg-type]

    @property
    def resolved_operators(self) -> Dict[str, Dict[str, Any]]:
        """Those that the daemon must find a command for."""
        return {name: spec for name, spec in self.operators.items() if spec["kind"] in specs.RESOLVED}


def _parse_schedule(given: Mapping[str, Any], mode: str) -> Dict[str, Any]:
    def value(key: str, kind: str, default: Any, **rules: Any) -> Any:
        return default if given.get(key) is None else checked(given[key], [kind], rules, key)

    on_done = WAIT if mode == MANUAL else NEXT
    return {
        "rotate": value("rotate", "boolean", False),
        "max_steps": value("max_steps", "integer", None, minimum=1),
        "parallel": value("parallel", "integer", 1, minimum=1, maximum=_MOST_COPIES),
        "on_done": value("on_done", "string", on_done, enum=(NEXT, WAIT)),
        "pace": float(value("pace", "number", 0.0, minimum=0, maximum=_FASTEST)),
        "video": value("video", "integer", DEFAULT_VIDEOS, minimum=0),
    }


def _parse_record(value: Any, operators: Mapping[str, Mapping[str, Any]]) -> List[str]:
    if value is None:
        return [name for name, spec in operators.items() if spec["kind"] == specs.HUMAN]
    names = [a_text(name, f"record[{place}]") for place, name in enumerate(a_list(value, "record"))]
    return [one_of(name, operators, f"record[{place}]", "operator") for place, name in enumerate(names)]
