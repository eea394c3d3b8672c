"""The fields of a run that a condition, a column or an order may name; all other names are settings or metrics."""

from typing import Literal

Kind = Literal["text", "state", "tags", "number", "duration", "any"]

FIELDS: dict[str, Kind] = {
    "state": "state",
    "name": "text",
    "worker": "text",
    "algo": "text",
    "env": "text",
    "id": "text",
    "experiment": "text",
    "note": "text",
    "reason": "text",
    "parent": "text",
    "origin": "text",
    "on": "text",  # local, or a cluster such as slurm:gpu
    "node": "text",  # of a cluster
    "tag": "tags",
    "return": "number",
    "steps": "number",
    "episodes": "number",
    "rate": "number",
    "progress": "number",  # percent
    "seed": "number",
    "gpus": "number",
    "checkpoints": "number",
    "age": "duration",  # since the submission
    "duration": "duration",  # from the submission until the end, or until now
}
ALIASES = {"env_id": "env", "run_id": "id", "tags": "tag", "run": "id", "notes": "note"}
SETTING, METRIC = "setting.", "metric."  # before a name that a field or a setting hides


def field_of(name: str) -> str:
    """The field that a name means; empty for a setting or a metric."""
    low = name.lower()
    low = ALIASES.get(low, low)
    return low if low in FIELDS else ""


def kind_of(name: str) -> Kind:
    return FIELDS.get(field_of(name), "any")
