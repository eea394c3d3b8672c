"""The toy worker's parameter schema, made from its config class. README.md has the long words."""

from typing import Any, Dict

from toy_worker.config import POLICY_EVAL, TRAIN, ToyConfig

HELP = {
    "seed": "the same seed gives the same rewards",
    "steps": "steps in all; total_timesteps is the same",
    "rate": "steps per second; 0: as fast as it can",
    "episode_length": "steps per episode",
    "metrics_every": "steps between lines of metrics; 0: none",
    "heartbeat_s": "seconds between heartbeats",
    "agents": "more than one: every step once per agent",
    "env_index": "put on every step and episode",
    "text_every": "steps between lines of plain text; 0: none",
    "paint": "shows a moving test picture (mosaic frames RUN)",
    "paint_width": "of the picture, in pixels",
    "paint_height": "of the picture, in pixels",
    "crash_at": "raises at this step",
    "hang_at": "stops at this step: no work, no heartbeats",
    "ignore_sigterm": "does not stop when told to",
    "checkpoint_every": "steps between checkpoints, and one at the end; 0: none",
    "checkpoint": "what to go on from, or to evaluate: a file, or a run's id, name or last",
    "eval_every": "steps between evaluations on seeds of their own; the best state is kept; 0: none",
    "eval_episodes": "episodes of an evaluation",
    "forget_at": "forgets at this step all it had learned",
}
SMALLEST = {
    **{"steps": 1, "rate": 0, "episode_length": 1, "metrics_every": 0, "agents": 1, "text_every": 0},
    **{"paint_width": 8, "paint_height": 8, "checkpoint_every": 0, "eval_every": 0, "eval_episodes": 1},
}
LAB = {
    "short": {"steps": 200},
    "long": {"steps": 1000000, "rate": 50},
    "fails": {"steps": 10, "crash_at": 3},
}


def make_schema() -> Dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    schema = schema_of(ToyConfig, title="Toy worker", lab=LAB)
    properties = schema["properties"]
    for key, words in HELP.items():
        properties[key]["description"] = words
    for key, least in SMALLEST.items():
        properties[key]["minimum"] = least
    properties["seed"]["default"] = 0  # what the runtime makes of none
    same = {"description": "the same as steps", "x-mosaic-same-as": "steps"}
    properties["total_timesteps"] = dict(properties["steps"], **same)
    schema["x-mosaic-examples"] = ["steps=500 rate=50", "steps=1000000 rate=50 paint=true", "steps=100 crash_at=50"]
    mode = properties.pop("mode")  # among the extras, as in every worker
    words = "what to do: train, or play `checkpoint`"
    properties["extras"]["properties"]["mode"] = {**mode, "enum": [TRAIN, POLICY_EVAL], "description": words}
    properties["checkpoint"]["x-mosaic-checkpoint"] = True
    schema["x-mosaic-resume"] = {"extras.mode": TRAIN, "checkpoint": "{checkpoint}"}
    schema["x-mosaic-eval"] = {
        "extras.mode": POLICY_EVAL,
        "checkpoint": "{checkpoint}",
        "eval_episodes": "{episodes}",
        "seed": "{seed}",
        "episode_length": "{parent}",
    }
    return schema
