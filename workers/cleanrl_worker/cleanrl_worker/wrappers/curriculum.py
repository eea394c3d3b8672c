"""Curriculum training: a sequence of environments, each until its condition holds (Syllabus-RL).

Importing this module is cheap: `schedule.py` checks the schedule with the standard library alone, and `tasks.py`, which
needs torch and Syllabus, is imported when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cleanrl_worker.wrappers.schedule import (
    BABYAI_DOORKEY_CURRICULUM,
    BABYAI_GOTO_CURRICULUM,
    DEFAULT_CONDITION,
    PRESETS,
    SCHEDULE_SCHEMA,
    Condition,
    Stage,
    parse_condition,
    read_schedule,
)

if TYPE_CHECKING:
    from cleanrl_worker.wrappers.tasks import BabyAITaskWrapper, CurriculumTraining, check_environments

__all__ = [
    "BABYAI_DOORKEY_CURRICULUM",
    "BABYAI_GOTO_CURRICULUM",
    "DEFAULT_CONDITION",
    "PRESETS",
    "SCHEDULE_SCHEMA",
    "BabyAITaskWrapper",
    "Condition",
    "CurriculumTraining",
    "Stage",
    "check_environments",
    "check_schedule",
    "parse_condition",
    "read_schedule",
]


def check_schedule(document: Any) -> list[dict[str, str]]:
    """The stages with every condition written out; ConfigError if the schedule is invalid."""
    return [stage.to_dict() for stage in read_schedule(document)]


def __getattr__(name: str) -> Any:
    if name not in ("BabyAITaskWrapper", "CurriculumTraining", "check_environments"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("cleanrl_worker.wrappers.tasks"), name)
