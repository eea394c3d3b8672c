"""The toy worker's settings. README.md describes them in groups."""

from typing import Any, Dict, Optional

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import Settings, setting

AtStep = Optional[int]  # the number of a step; None: never
TRAIN, POLICY_EVAL, COMMANDS = "train", "policy_eval", "commands"
MODES = (TRAIN, POLICY_EVAL, COMMANDS)


class ToyConfig(Settings):
    """What to do, at which rate, and how to misbehave."""

    seed: Optional[int] = setting(None, "The same seed gives the same rewards.", schema_default=0)
    steps: int = setting(1000, "Steps in total.", minimum=1, aliases=("total_timesteps",))
    rate: float = setting(0.0, "Steps per second; 0: as fast as possible.", minimum=0)
    episode_length: int = setting(50, "Steps per episode.", minimum=1)
    metrics_every: int = setting(10, "Steps between lines of metrics; 0: none.", minimum=0)
    heartbeat_s: float = setting(30.0, "Seconds between heartbeats.")
    agents: int = setting(1, "Number of agents; with more than one, each step is reported once per agent.", minimum=1)
    env_index: AtStep = setting(None, "Added to every step and episode.")
    text_every: int = setting(0, "Steps between lines of plain text; 0: none.", minimum=0)
    use_plain_print: bool = setting(False, "Write telemetry with print() instead of the SDK.")
    paint: bool = setting(False, "Show a moving test picture (mosaic frames RUN).")
    paint_width: int = setting(320, "Width of the picture in pixels.", minimum=8)
    paint_height: int = setting(240, "Height of the picture in pixels.", minimum=8)
    record: str = setting("", "File for the private record; default toy_record.bin in the run's folder.")
    record_sync: bool = setting(False, "Write the record after every line instead of every 2000.")
    checkpoint_every: int = setting(0, "Steps between checkpoints, and one at the end; 0: none.", minimum=0)
    checkpoint: str = setting("", "Checkpoint to continue or to evaluate: a file, or a run.", checkpoint=True)
    eval_every: int = setting(0, "Steps between evaluations, of which the best is kept; 0: none.", minimum=0)
    eval_episodes: int = setting(10, "Episodes of an evaluation.", minimum=1)
    mode: str = setting(
        TRAIN, "What to do: train, evaluate `checkpoint`, or obey commands on stdin.", choices=MODES, place="extras"
    )
    test_mode: bool = setting(False, "The same as mode=policy_eval.", place="extras")

    crash_at: AtStep = setting(None, "Raise an exception at this step.")
    exit_code: int = setting(0, "Exit with this code after a successful run.")
    helpers_fail: bool = setting(False, "Its helpers (--part helper:N) fail at once.")
    signal_at: AtStep = setting(None, "Kill itself with the signal `kill_self` at this step.")
    kill_self: str = setting("SIGKILL", "Name of the signal for `signal_at`.")
    hang_at: AtStep = setting(None, "Stop working at this step: no CPU time, no heartbeats.")
    busy_hang_at: AtStep = setting(None, "Stop working at this step, but use CPU time.")
    busy_hang_text_s: float = setting(
        0.0, "During `busy_hang_at`, print a dot to stderr this often; 0: never.", minimum=0
    )
    stall_progress_at: AtStep = setting(None, "Stop working at this step, but send heartbeats.")
    hang_s: float = setting(0.0, "Seconds for which it hangs; 0: forever.", minimum=0)
    ignore_sigterm: bool = setting(False, "Ignore SIGTERM.")
    fork_children: int = setting(0, "Number of child processes to leave behind.", minimum=0)
    double_fork: bool = setting(False, "Orphan the children.")
    setsid: bool = setting(False, "Start the children in a session of their own.")
    clear_environment: bool = setting(False, "Start the children with an empty environment.")
    rename_process: str = setting("", "Process name (comm) of the children.")
    garbage_every: int = setting(0, "Steps between lines that no parser accepts; 0: none.", minimum=0)
    long_line_bytes: int = setting(0, "Print one line of this many bytes at the start.", minimum=0)
    eat_memory_mb: int = setting(0, "Allocate this much memory at the start.", minimum=0)
    rlimit_mb: int = setting(0, "Limit the address space; 0: no limit.", minimum=0)
    no_telemetry: bool = setting(False, "Succeed without printing a line.")
    half_line_then_kill: AtStep = setting(None, "Print half a line at this step and die of SIGKILL.")
    run_failed_exit_0: bool = setting(False, "Report run_failed and exit with 0.")
    close_stdout_at: AtStep = setting(None, "Close stdout at this step and continue.")
    truncate_stdout_at: AtStep = setting(None, "Open /dev/stdout for writing at this step.")
    burst: int = setting(0, "Print this many metric lines at once at the start.", minimum=0)
    stderr_lines: int = setting(0, "Print this many lines to stderr at the start.", minimum=0)
    no_newline_at_end: bool = setting(False, "End the output with a line that has no newline.")
    illegal_action_at: AtStep = setting(None, "Interactive: select an illegal action at this step.")
    ignore_seed: bool = setting(False, "Interactive: play every episode as if its seed were 0.")
    forget_at: AtStep = setting(None, "Lose everything learned at this step.")

    @classmethod
    def prepare(cls, values: Dict[str, Any]) -> Dict[str, Any]:
        return {**values, "mode": values.get("mode", POLICY_EVAL)} if values.get("test_mode") is True else values

    def check(self) -> None:
        if self.mode == POLICY_EVAL and not self.checkpoint:
            raise ConfigError("checkpoint is missing: mode policy_eval needs the checkpoint to evaluate.")
