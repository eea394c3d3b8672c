"""Settings that MOSAIC itself reads or fills in: valid for every worker that has a schema."""

from typing import Any

from mosaic_sdk.names import VideoModes

from mosaic.catalog.schema import Schema, properties_of

FILLED_IN = ("version", "run_id", "worker_id")
EXTRAS: dict[str, dict[str, Any]] = {
    "mode": {"enum": ["train", "policy_eval"], "description": "With policy_eval, the run's folder is in evals/."},
    "test_mode": {"type": "boolean", "description": "The same as mode=policy_eval."},
    "fastlane_video_mode": {
        "enum": [VideoModes.SINGLE, VideoModes.GRID, VideoModes.OFF],
        "default": VideoModes.SINGLE,
        "description": "Which environments to show live.",
    },
    "fastlane_slot": {
        **{"type": "integer", "minimum": 0, "maximum": 63, "default": 0},
        "description": "The environment that `single` shows.",
    },
    "fastlane_grid_limit": {
        **{"type": "integer", "minimum": 1, "maximum": 1024, "default": 4},
        "description": "The number of environments that `grid` shows.",
    },
    "store_observations": {
        **{"type": "boolean", "default": False},
        "description": "Also store observations larger than 4 kB.",
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
