"""The toy worker's parameter schema: its settings, how its runs are resumed and evaluated, what the lab runs."""

from typing import Any, Dict

from toy_worker.config import POLICY_EVAL, TRAIN, ToyConfig
from toy_worker.learning import ENV_ID

LAB: Dict[str, Dict[str, Any]] = {
    "short": {"steps": 200},
    "long": {"steps": 1000000, "rate": 50},
    "fails": {"steps": 10, "crash_at": 3},
    "interactive": {"episode_length": 5},
    "agent": {"episode_length": 5, "observation": [0.0]},
}
EXAMPLES = ["steps=500 rate=50", "steps=1000000 rate=50 paint=true", "steps=100 crash_at=50"]
RESUME = {"extras.mode": TRAIN, "checkpoint": "{checkpoint}"}
EVALUATE = {
    "extras.mode": POLICY_EVAL,
    "checkpoint": "{checkpoint}",
    "eval_episodes": "{episodes}",
    "seed": "{seed}",
    "episode_length": "{parent}",
}
# Its one environment has no settings, so the checkpoint's policy is all that an operator needs.
INTERACTIVE: Dict[str, Any] = {
    "settings": {"checkpoint": "{checkpoint}", "episode_length": "{parent}"},
    "arguments": ["--interactive"],
    "env_ids": [ENV_ID],
}


def make_schema() -> Dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    from toy_worker.helpers import HELPER

    return schema_of(
        ToyConfig,
        title="Toy worker",
        lab=LAB,
        examples=EXAMPLES,
        resume=RESUME,
        evaluate=EVALUATE,
        interactive=INTERACTIVE,
        parts=(HELPER,),
    )
