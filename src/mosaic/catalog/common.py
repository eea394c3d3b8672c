"""Settings that MOSAIC itself reads or fills in: valid for every worker that has a schema."""

from typing import Any

from mosaic_sdk.names import VideoModes

from mosaic.catalog.schema import Schema, properties_of

FILLED_IN = ("version", "run_id", "worker_id")
EXTRAS: dict[str, dict[str, Any]] = {
    "mode": {"enum": ["train", "policy_eval"], "description": "policy_eval: put the run's folder into evals/"},
    "test_mode": {"type": "boolean", "description": "the same as mode=policy_eval"},
    "fastlane_video_mode": {
        "enum": [VideoModes.SINGLE, VideoModes.GRID, VideoModes.OFF],
        "default": VideoModes.SINGLE,
        "description": "which environments to show live",
    },
    "fastlane_slot": {
        **{"type": "integer", "minimum": 0, "maximum": 63, "default": 0},
        "description": "which environment to show in mode single",
    },
    "fastlane_grid_limit": {
        **{"type": "integer", "minimum": 1, "maximum": 1024, "default": 4},
        "description": "how many environments to show in mode grid",
    },
    "store_observations": {
        **{"type": "boolean", "default": False},
        "description": "also store observations larger than 4 kB",
    },
}


def with_common(schema: Schema) -> Schema:
    """The worker's schema with MOSAIC's own settings added; what the worker declares itself takes precedence."""
    if not schema:
        return schema
    known = properties_of(schema)
    # If the schema does not mention extras, they are as open or closed as the config itself.
    closed = {keyword: schema[keyword] for keyword in ("additionalProperties",) if keyword in schema}
    extras = known.get("extras", {"type": "object", **closed})
    extras = {**extras, "properties": {**EXTRAS, **properties_of(extras)}}
    return {**schema, "properties": {**{name: {} for name in FILLED_IN}, **known, "extras": extras}}
