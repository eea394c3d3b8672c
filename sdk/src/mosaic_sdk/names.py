"""The names of the contract: events, kinds of lines, environment variables. Imports nothing: every part may use it."""

CONTRACT_VERSION = 1

# A telemetry line says its kind under one of these keys …
KIND_KEYS = ("event_type", "type")
STEP = "step"
EPISODE = "episode"
METRIC = "metric"
KINDS = (STEP, EPISODE, METRIC)

# … and a lifecycle line says its name under this one.
EVENT_KEY = "event"
RUN_STARTED = "run_started"
RUN_COMPLETED = "run_completed"
RUN_FAILED = "run_failed"
RUN_CANCELLED = "run_cancelled"
HEARTBEAT = "heartbeat"
CHECKPOINT_SAVED = "checkpoint_saved"
CHECKPOINT_LOADED = "checkpoint_loaded"
LIFECYCLE_EVENTS = (
    RUN_STARTED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_CANCELLED,
    HEARTBEAT,
    CHECKPOINT_SAVED,
    CHECKPOINT_LOADED,
)

# Lines that could not be written (disk full) are told with this event, which is recognised by its run_id.
TELEMETRY_GAP = "telemetry_gap"


class WorkerEnv:
    """Variables every worker is given."""

    RUN_ID = "MOSAIC_RUN_ID"
    RUN_DIR = "MOSAIC_RUN_DIR"
    WORKER_ID = "MOSAIC_WORKER_ID"
    CHECKPOINT_DIR = "MOSAIC_CHECKPOINT_DIR"
    CONFIG_FILE = "MOSAIC_CONFIG_FILE"
    CUSTOM_SCRIPTS_DIR = "MOSAIC_CUSTOM_SCRIPTS_DIR"


class TelemetryEnv:
    """Variables that steer the frames."""

    FASTLANE_ONLY = "GYM_GUI_FASTLANE_ONLY"
    FASTLANE_SLOT = "GYM_GUI_FASTLANE_SLOT"
    FASTLANE_VIDEO_MODE = "GYM_GUI_FASTLANE_VIDEO_MODE"
    FASTLANE_GRID_LIMIT = "GYM_GUI_FASTLANE_GRID_LIMIT"
    FASTLANE_INTERVAL_MS = "CLEANRL_FASTLANE_INTERVAL_MS"
    FASTLANE_MAX_DIM = "CLEANRL_FASTLANE_MAX_DIM"


class VideoModes:
    """Values of GYM_GUI_FASTLANE_VIDEO_MODE."""

    SINGLE = "single"
    GRID = "grid"
    OFF = "off"
