"""How the agents of an environment take their turns."""

from enum import Enum


class SteppingParadigm(str, Enum):
    SINGLE_AGENT = "single_agent"
    SEQUENTIAL = "sequential"
    SIMULTANEOUS = "simultaneous"
    HIERARCHICAL = "hierarchical"

    def __str__(self) -> str:
        return self.value
