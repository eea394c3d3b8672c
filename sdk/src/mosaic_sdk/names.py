"""The names of the contract: events, kinds of lines, commands, files, environment variables.

It imports nothing, so that every part of MOSAIC may use it.
"""

CONTRACT_VERSION = 1

# A telemetry line has its kind under one of these keys; the SDK writes the first one.
EVENT_TYPE_KEY = "event_type"
TYPE_KEY = "type"
KIND_KEYS = (EVENT_TYPE_KEY, TYPE_KEY)
STEP = "step"
EPISODE = "episode"
METRIC = "metric"
KINDS = (STEP, EPISODE, METRIC)

# A lifecycle line has its name under this key.
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

# Reports that a library of a script is heard: the payload says what, and by which hook. Recognised by its run_id.
OBSERVING = "observing"

# Says where a run's worker takes up its parts: the payload has the address (mosaic_sdk.parts).
PARTS_WANTED = "parts_wanted"

# Reports lines that could not be written (disk full). It is recognised by its run_id.
TELEMETRY_GAP = "telemetry_gap"

# Interactive mode: a command has its name under CMD_KEY, an answer its type under TYPE_KEY (STEP is both).
CMD_KEY = "cmd"
RESET = "reset"
INIT_AGENT = "init_agent"
SELECT_ACTION = "select_action"
STEP_RESULT = "step_result"
PING = "ping"
STOP = "stop"
COMMANDS = (RESET, STEP, INIT_AGENT, SELECT_ACTION, STEP_RESULT, PING, STOP)
READY = "ready"
EPISODE_DONE = "episode_done"
AGENT_READY = "agent_ready"
ACTION_SELECTED = "action_selected"
NOTED = "noted"
PONG = "pong"
STOPPED = "stopped"
ERROR = "error"
# What workers that were not written with this SDK may answer instead.
EPISODE_END = "episode_end"
AGENT_INITIALIZED = "agent_initialized"

# Evaluations: the agent_id of their episodes while a training runs, and their metric.
EVAL_AGENT = "eval"
EVAL_MEAN_RETURN = "eval/mean_return"

# Files in a run's folder.
EVAL_SUMMARY = "eval_summary.json"
CHECKPOINTS = "checkpoints"  # the folder, unless MOSAIC_CHECKPOINT_DIR names another
BEST = "best"  # the folder in it with the best checkpoint …
BEST_FILE = "best.json"  # … and the file there that names it
COMMIT_FILE = "commit.json"  # written last into a checkpoint that is a folder
EXPORT_FILE = "export.json"  # what a worker says about the files that it exported


class WorkerEnv:
    """Environment variables that every worker receives; the last eleven only some."""

    RUN_ID = "MOSAIC_RUN_ID"
    RUN_DIR = "MOSAIC_RUN_DIR"
    WORKER_ID = "MOSAIC_WORKER_ID"
    CHECKPOINT_DIR = "MOSAIC_CHECKPOINT_DIR"
    CONFIG_FILE = "MOSAIC_CONFIG_FILE"
    CUSTOM_SCRIPTS_DIR = "MOSAIC_CUSTOM_SCRIPTS_DIR"
    OPERATORS_FILE = "MOSAIC_OPERATORS_FILE"  # of a run with operators: how to start each of them
    OPERATOR = "MOSAIC_OPERATOR"  # of an operator's process: its name
    ATTEMPT = "MOSAIC_ATTEMPT"  # of a worker that uses gRPC: what it registers with
    NONCE = "MOSAIC_NONCE"
    DRIVER_ADDRESS = "MOSAIC_DRIVER_ADDRESS"  # of a driver: where it calls the daemon …
    DRIVER_TOKEN = "MOSAIC_DRIVER_TOKEN"  # … and the token of these calls, for runs of its experiment
    PARTS = "MOSAIC_PARTS"  # of a run with parts: which (mosaic_sdk.parts) …
    PARTS_SECRET = "MOSAIC_PARTS_SECRET"  # … and what it and its parts know and nobody else
    PART = "MOSAIC_PART"  # of a part: its name, index and count …
    PART_ADDRESS = "MOSAIC_PART_ADDRESS"  # … and where its run takes it up
    OBSERVE = "MOSAIC_OBSERVE"  # 1: mosaic_sdk.observe reports what the libraries of a script log


class TelemetryEnv:
    """Environment variables that control frames."""

    FASTLANE_ONLY = "GYM_GUI_FASTLANE_ONLY"
    FASTLANE_SLOT = "GYM_GUI_FASTLANE_SLOT"
    FASTLANE_TILE = "GYM_GUI_FASTLANE_TILE"  # set for the lanes of an evaluation
    FASTLANE_VIDEO_MODE = "GYM_GUI_FASTLANE_VIDEO_MODE"
    FASTLANE_GRID_LIMIT = "GYM_GUI_FASTLANE_GRID_LIMIT"
    FASTLANE_INTERVAL_MS = "CLEANRL_FASTLANE_INTERVAL_MS"
    FASTLANE_MAX_DIM = "CLEANRL_FASTLANE_MAX_DIM"


class VideoModes:
    """Values of GYM_GUI_FASTLANE_VIDEO_MODE."""

    SINGLE = "single"
    GRID = "grid"
    OFF = "off"
