"""The toy worker's parameter schema, made from its config class. README.md has the long words."""

from typing import Any, Dict

from toy_worker.config import ToyConfig

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
}
SMALLEST = {
    **{"steps": 1, "rate": 0, "episode_length": 1, "metrics_every": 0, "agents": 1, "text_every": 0},
    **{"paint_width": 8, "paint_height": 8},
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
    same = {"description": "the same as steps", "x-mosaic-same-as": "steps"}
    properties["total_timesteps"] = dict(properties["steps"], **same)
    schema["x-mosaic-examples"] = ["steps=500 rate=50", "steps=1000000 rate=50 paint=true", "steps=100 crash_at=50"]
    return schema
