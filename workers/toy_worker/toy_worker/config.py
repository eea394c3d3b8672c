"""The toy worker's keys. README.md says what each does."""

from typing import Any, Dict, Optional

from mosaic_sdk.config import ConfigError

AtStep = Optional[int]  # the number of a step; None: never

# Of every worker's file; nothing is read from them here. What else is unknown is an error.
IGNORED = {"version", "worker_id"}
TRAIN, POLICY_EVAL = "train", "policy_eval"

_WANTED = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    str: ((str,), "a text"),
    AtStep: ((int, type(None)), "the number of a step"),
}


class ToyConfig:
    """The keys with their defaults. Not a dataclass: importing dataclasses would be a third of the worker's start."""

    run_id: str = ""
    seed: AtStep = None
    steps: int = 1000
    rate: float = 0.0
    episode_length: int = 50
    metrics_every: int = 10
    heartbeat_s: float = 30.0
    agents: int = 1
    env_index: AtStep = None
    text_every: int = 0
    use_plain_print: bool = False
    paint: bool = False
    paint_width: int = 320
    paint_height: int = 240
    record: str = ""
    record_sync: bool = False
    checkpoint_every: int = 0
    checkpoint: str = ""
    mode: str = TRAIN
    eval_every: int = 0
    eval_episodes: int = 10

    crash_at: AtStep = None
    exit_code: int = 0
    signal_at: AtStep = None
    kill_self: str = "SIGKILL"
    hang_at: AtStep = None
    busy_hang_at: AtStep = None
    busy_hang_text_s: float = 0.0
    stall_progress_at: AtStep = None
    hang_s: float = 0.0
    ignore_sigterm: bool = False
    fork_children: int = 0
    double_fork: bool = False
    setsid: bool = False
    clear_environment: bool = False
    rename_process: str = ""
    garbage_every: int = 0
    long_line_bytes: int = 0
    eat_memory_mb: int = 0
    rlimit_mb: int = 0
    no_telemetry: bool = False
    half_line_then_kill: AtStep = None
    run_failed_exit_0: bool = False
    close_stdout_at: AtStep = None
    truncate_stdout_at: AtStep = None
    burst: int = 0
    stderr_lines: int = 0
    no_newline_at_end: bool = False
    forget_at: AtStep = None

    def __init__(self, **keys: Any) -> None:
        for key, value in keys.items():
            setattr(self, key, _checked(key, value))
        if self.paint_width < 8 or self.paint_height < 8:
            raise ConfigError("paint_width, paint_height: a picture has at least 8 × 8 pixels.")
        if self.mode not in (TRAIN, POLICY_EVAL):
            raise ConfigError(f"mode: must be {TRAIN} or {POLICY_EVAL}, not {self.mode!r}.")
        if not self.run_id:
            raise ConfigError('run_id is missing. Add "run_id" to the config, or set MOSAIC_RUN_ID.')

    def to_dict(self) -> Dict[str, Any]:
        return {key: getattr(self, key) for key in ToyConfig.__annotations__}

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "ToyConfig":
        """A config from the worker file's keys. An unknown key is an error: a mistyped one would test nothing."""
        keys = {key: value for key, value in data.items() if key not in IGNORED}
        extras = keys.pop("extras", None) or {}
        # Where every worker has them.
        mode = extras.get("mode") or (POLICY_EVAL if keys.pop("test_mode", False) or extras.get("test_mode") else "")
        if mode:
            keys["mode"] = mode
        if "total_timesteps" in keys:
            keys.setdefault("steps", keys.pop("total_timesteps"))
        return cls(**keys)


def _checked(key: str, value: Any) -> Any:
    annotation = ToyConfig.__annotations__.get(key)
    if annotation is None:
        raise ConfigError(f"{key}: the toy worker has no such key. It has: {', '.join(ToyConfig.__annotations__)}.")
    types, name = _WANTED[annotation]
    if not isinstance(value, types) or (isinstance(value, bool) and annotation is not bool):
        raise ConfigError(f"{key}: must be {name}, not {value!r}.")
    return value
