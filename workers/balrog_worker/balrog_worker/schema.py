"""The BALROG worker's parameter schema: its settings, how a run is resumed, what the lab runs."""

from typing import Any

from balrog_worker.config import RANDOM, BalrogConfig

_SHORT = {"agent": RANDOM, "tasks": "babyai/goto", "episodes": 2, "max_steps": 20, "trajectories": False}
LAB: dict[str, dict[str, Any]] = {
    "short": _SHORT,
    "long": {**_SHORT, "episodes": 100_000},
    "fails": {"model": "none", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0, "tasks": "babyai/goto"},
}
EXAMPLES = [
    "agent=random tasks=babyai",
    "model=qwen3-8b base_url=http://127.0.0.1:8080/v1 tasks=babyai,crafter agent=chain_of_thought",
]
# Everything of the parent but the journal to continue from.
RESUME = {"resume_from": "{checkpoint}"}


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    return schema_of(BalrogConfig, title="BALROG worker", examples=EXAMPLES, lab=LAB, resume=RESUME)
