"""The evaluation worker's parameter schema: its settings, how a run is resumed, what the lab runs."""

from typing import Any

from eval_worker.config import EvalConfig

_SHORT = {"env": "CartPole-v1", "operators": {"chance": "random"}, "seeds": [0, 1], "max_steps": 20, "video": 0}
LAB: dict[str, dict[str, Any]] = {
    "short": {"script": _SHORT},
    "long": {"script": {**_SHORT, "seeds": {"first": 0, "count": 10000}, "pace": 20}},
    "fails": {"script": {**_SHORT, "env": "NoSuchEnv-v0"}},
}
RESUME = {"resume_from": "{checkpoint}", "script": "{parent}", "mode": "{parent}"}


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    return schema_of(EvalConfig, title="Evaluation worker", lab=LAB, resume=RESUME)
