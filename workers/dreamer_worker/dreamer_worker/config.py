"""The worker's settings: what to play, how much to learn, and which process is where."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.evaluation import FIRST_SEED
from mosaic_sdk.names import WorkerEnv
from mosaic_sdk.settings import Settings, setting

SCRIPTS = ("parallel", "train", "eval")
OUTPUTS = ("jsonl", "tensorboard", "mosaic", "terminal")
SELECTORS = ("uniform", "priority", "recency")
SHARE = {"type": "number", "minimum": 0}
# MOSAIC's names for what a run does, and the script that does it; "": the one that the config names.
MODES = {"train": "", "resume_training": "", "policy_eval": "eval"}
TASK_EXAMPLES = ("crafter_reward", "atari_pong", "dmc_walker_walk", "minigrid_MiniGrid-Empty-5x5-v0", "gym_CartPole-v1")
TASK = r"^(crafter|atari|atari100k|dmc|minigrid|gym|dummy)_.|-v\d+$|:"
ADDRESS = {"pattern": r"^(auto|\S+:\d+)$", "examples": ["auto", "10.0.0.1:7001"]}
# What a suite requires of its env's adapter.
SUITE_OPTIONS: dict[str, dict[str, Any]] = {"dmc_vision": {"image": True, "proprio": False}}


class DreamerConfig(Settings):
    """The settings of a run. Its `extras` may hold any of them too, and keys of other workers, which are ignored."""

    open_places = ("extras", "extras.algo_params")

    seed: int = setting(0, "The same seed gives the same run in one process (script train).")
    script: str = setting(
        "parallel",
        "parallel: a process for each part; train: one process; eval: play a checkpoint.",
        choices=SCRIPTS,
    )
    env: str = setting(
        "dummy_grid",
        "Environment, as suite_name: crafter_reward, atari_pong, dmc_walker_walk, minigrid_…, gym_CartPole-v1.",
        aliases=("env_id", "task"),
        record_default=False,
        schema={"pattern": TASK, "examples": TASK_EXAMPLES},
    )
    env_options: dict[str, Any] = setting({}, "Options of the env's adapter.")
    suite: str = setting("", "A preset: atari, atari100k, crafter, dmc_proprio, dmc_vision, minigrid, gymnasium.")
    size: str = setting(
        "",
        "Size of the agent: debug, 1m, 12m, 25m, 50m, 100m, 200m, 400m. Empty: the suite's value.",
        record_default=False,
    )
    agent: dict[str, Any] = setting(
        {}, "Settings of the agent that override its presets, such as agent.optimizer.lr=1e-4."
    )
    random_agent: bool = setting(False, "Act at random and learn nothing, to run the processes without JAX.")

    steps: int = setting(
        0,
        "Env steps in total. 0: the suite's value, or 10 million by default.",
        minimum=0,
        aliases=("total_timesteps",),
        record_default=False,
    )
    envs: int = setting(
        0, "Number of training envs. 0: the suite's value, or 4 by default.", minimum=0, record_default=False
    )
    eval_envs: int = setting(1, "Envs that play the most likely actions and fill the eval buffer.", minimum=0)
    train_ratio: float = setting(
        0.0,
        "Replayed steps per env step. 0: the suite's value, or 32 by default.",
        minimum=0,
        record_default=False,
    )
    batch_size: int = setting(16, "Sequences per update.", minimum=1)
    batch_length: int = setting(64, "Steps per sequence.", minimum=2)
    updates_per_call: int = setting(1, "Updates that the device does without the host in between.", minimum=1)
    report_length: int = setting(32, "Steps per sequence of a report.", minimum=2)
    replay_gb: float = setting(8.0, "Upper limit of the memory for replayed steps, in GB.", exclusive_minimum=0)
    replay_disk_gb: float = setting(
        0.0, "Beyond replay_gb, keep older steps on disk, in the run's folder, up to this many GB.", minimum=0
    )
    replay_shares: dict[str, float] = setting(
        {"uniform": 1.0},
        "How sequences are drawn: shares of uniform, priority and recency.",
        schema={"properties": dict.fromkeys(SELECTORS, SHARE), "additionalProperties": False},
    )
    online: bool = setting(True, "Replay new sequences first, once.")

    actor_batch: int = setting(-1, "Envs per policy call. -1: half of them.")
    actor_wait_ms: float = setting(10.0, "How long a policy call waits for more envs.", minimum=0)
    actor_addr: str = setting("auto", "host:port of the actor.", schema=ADDRESS)
    replay_addr: str = setting("auto", "host:port of the replay.", schema=ADDRESS)
    logger_addr: str = setting("auto", "host:port of the logger.", schema=ADDRESS)
    secret: str = setting("", "Shared by all processes. Empty: DREAMER_SECRET, or a new one for this run.")
    agent_process: bool = setting(True, "Run the agent in its own process. false: in the launcher.")
    remote_envs: bool = setting(False, "Do not start envs here: they are started elsewhere.")
    remote_replay: bool = setting(False, "Do not start the replay here: it is started elsewhere.")

    logdir: str = setting("", "Where everything is written. Empty: the run's folder.")
    outputs: list[str] = setting(
        ["jsonl", "tensorboard", "mosaic"],
        "Any of jsonl, tensorboard, mosaic, terminal.",
        schema={"items": {"enum": list(OUTPUTS)}},
    )
    log_every_s: float = setting(30.0, "Seconds between lines of metrics.", exclusive_minimum=0)
    report_every_s: float = setting(300.0, "Seconds between reports.", exclusive_minimum=0)
    save_every_s: float = setting(300.0, "Seconds between checkpoints.", exclusive_minimum=0)
    episode_timeout_s: float = setting(
        180.0, "The logger drops the episode of an env that is silent for this long.", exclusive_minimum=0
    )
    env_timeout_s: float = setting(600.0, "An env whose step takes longer is restarted.", exclusive_minimum=0)
    checkpoint: str = setting(
        "",
        "Checkpoint to continue from or to play: a path, or a run's ID, name or folder. Its settings are used too.",
        checkpoint=True,
        aliases=("extras.policy_path", "extras.checkpoint_path"),
    )
    episodes: int = setting(10, "Episodes that script eval plays.", minimum=1)
    dream: bool = setting(
        False, "Script eval and --interactive: play inside the checkpoint's world model instead of the env."
    )
    dream_steps: int = setting(200, "An episode in the world model ends after this many steps.", minimum=1)
    capture_video: bool = setting(False, "Script eval: record the first episodes into videos/eval.")
    eval_every: int = setting(
        0, "Env steps between evaluations during training; the best agent is kept. 0: none.", minimum=0
    )
    eval_episodes: int = setting(10, "Episodes of such an evaluation.", minimum=1)
    emit_steps: bool = setting(False, "Scripts train and eval: emit a telemetry line for every env step.")
    mode: str = setting(
        "train",
        "policy_eval: play policy_path, the same as script=eval; resume_training: continue from it.",
        choices=tuple(MODES),
        place="extras",
    )
    test_mode: bool = setting(False, "The same as mode=policy_eval.", place="extras")

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """`mode` and `test_mode` become a script; what the config leaves out comes from its checkpoint."""
        from dreamer_worker.settings import inherit

        values = inherit(_with_script(values))
        if values.get("script") == "eval":
            values.setdefault("seed", FIRST_SEED)
        return values

    def check(self) -> None:
        _refuse_unknown("outputs", self.outputs, OUTPUTS)
        _refuse_unknown("replay_shares", self.replay_shares, SELECTORS)
        if not all(isinstance(share, int | float) and share >= 0 for share in self.replay_shares.values()):
            raise ConfigError(f"replay_shares: every share must be a number of at least 0, not {self.replay_shares!r}.")
        if not sum(self.replay_shares.values()):
            raise ConfigError('replay_shares: at least one share must be above 0, such as {"uniform": 1}.')

    def resolved(self) -> DreamerConfig:
        """With the suite's values where none was given; ConfigError if they are invalid."""
        config = self._with_suite()
        config._check_agent()
        config._check_logdir()
        return config

    def _check_agent(self) -> None:
        from dreamer_worker.agent.config import AgentConfig

        try:
            AgentConfig.from_dict(self.agent_settings())
        except (ValueError, TypeError) as error:
            raise ConfigError(f"agent: {error}") from None

    def _check_logdir(self) -> None:
        folder = os.environ.get(WorkerEnv.RUN_DIR)
        if folder and os.path.commonpath(
            [os.path.realpath(part) for part in (folder, self.logdir)]
        ) != os.path.realpath(folder):
            raise ConfigError(f"logdir: {self.logdir} is outside the run's folder. Remove it.")

    def _with_suite(self) -> DreamerConfig:
        from dreamer_worker.agent.config import SUITES

        if self.suite and self.suite not in SUITES:
            raise ConfigError(f"suite: there is no suite {self.suite!r}. Choose from: {', '.join(SUITES)}.")
        suite = SUITES.get(self.suite, {})
        preset = {"steps": 10_000_000, "envs": 4, "train_ratio": 32.0, **suite.get("run", {})}
        changes = {key: value for key, value in preset.items() if not getattr(self, key)}
        if "task" in suite and self.env == type(self).env:
            changes["env"] = _task_of(self.suite, suite["task"])
        changes["env_options"] = {**SUITE_OPTIONS.get(self.suite, {}), **self.env_options}
        changes["size"] = self.size or suite.get("size") or ("200m" if self.suite else "1m")
        changes["logdir"] = self.logdir or os.environ.get(WorkerEnv.RUN_DIR) or f"logdir/{self.run_id}"
        return self.replace(**changes)

    @property
    def sequence_length(self) -> int:
        """Steps per replayed sequence: the trained ones, and before them the context."""
        return self.batch_length + 1

    @property
    def report_sequence_length(self) -> int:
        """Steps per sequence of a report, with its context."""
        return min(self.report_length + 1, self.sequence_length)

    @property
    def checkpoint_dir(self) -> str:
        return os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(self.logdir, "checkpoints")

    def agent_settings(self) -> dict[str, Any]:
        preset = {"size": self.size, "seed": self.seed, "report_length": self.report_length}
        return {**preset, **({"suite": self.suite} if self.suite else {}), **self.agent}


def _with_script(values: dict[str, Any]) -> dict[str, Any]:
    """The script that `mode` or `test_mode` stands for takes their place; invalid values stay, to be refused."""
    mode, is_test = values.get("mode", "train"), values.get("test_mode") is True
    if mode not in MODES:
        return values
    if mode != "train" and not values.get("checkpoint"):
        raise ConfigError(f"policy_path is missing: mode {mode} needs the checkpoint of a run, or the run's folder.")
    script = "eval" if is_test else MODES[mode]
    rest = {name: value for name, value in values.items() if name != "mode" and not (name == "test_mode" and is_test)}
    return {**rest, **({"script": script} if script else {})}


def _task_of(suite: str, task: str) -> str:
    from dreamer_worker.envs import split_task

    if split_task(task)[0] == "gym" and not task.startswith("gym_"):
        raise ConfigError(f"suite: there is no adapter for {task}. Use {suite}'s settings with another env: env=…")
    return task


def _refuse_unknown(name: str, given: Iterable[str], known: tuple[str, ...]) -> None:
    if unknown := sorted(set(map(str, given)) - set(known)):
        raise ConfigError(f"{name}: {unknown[0]!r} is not valid. Choose from: {', '.join(known)}.")


TINY = {
    "env": "dummy_grid",
    "size": "debug",
    "envs": 2,
    "eval_envs": 0,
    "batch_size": 4,
    "batch_length": 8,
    "replay_gb": 0.01,
}
LAB = {
    # One process and the random agent: the same seed gives the same rewards, and nothing is compiled.
    "short": {**TINY, "script": "train", "random_agent": True, "steps": 400, "log_every_s": 0.2, "emit_steps": True},
    "long": {**TINY, "script": "parallel", "random_agent": True, "steps": 100_000_000, "log_every_s": 0.5},
    "fails": {**TINY, "script": "train", "random_agent": True, "env": "dummy_crash", "steps": 400},
    "interactive": {**TINY, "random_agent": True},
    "agent": {**TINY, "random_agent": True, "observation": {"place": [1.0] + [0.0] * 15}},
}


EXAMPLES = (
    "env=crafter_reward size=12m envs=16 train_ratio=256",
    "suite=atari100k env=atari100k_boxing",
    "env=gym_CartPole-v1 size=debug batch_size=4 batch_length=8 envs=2 steps=3000    minutes on a laptop",
    "checkpoint=last steps=2000000    continue from the newest run",
    "mode=policy_eval policy_path=last episodes=20    play it",
    "mode=policy_eval policy_path=last dream=true    play it inside its own world model",
)
EVALUATE = {
    **{"extras.mode": "policy_eval", "checkpoint": "{checkpoint}", "episodes": "{episodes}", "seed": "{seed}"},
    **{"capture_video": "{video}", "env_options": "{parent}"},
}
PARTS = ("env", "replay")  # see meeting.py
INTERACTIVE = {
    "settings": {"checkpoint": "{checkpoint}", "env": "{env_id}", "env_options": "{parent}"},
    "arguments": ["--interactive"],
    "env_ids": ["{env}", "gym_{env}", "minigrid_{env}"],
}


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    from dreamer_worker.agent.config import SIZES, SUITES, AgentConfig

    schema = schema_of(
        DreamerConfig,
        title="DreamerV3",
        lab=LAB,
        examples=EXAMPLES,
        resume={"extras.mode": "resume_training", "checkpoint": "{checkpoint}"},
        evaluate=EVALUATE,
        interactive=INTERACTIVE,
        parts=PARTS,
        export="dreamer_worker.export",
        inherits_with=["checkpoint", "extras.policy_path", "extras.checkpoint_path"],
    )
    properties = schema["properties"]
    properties["size"].update(pattern=f"^((size)?({'|'.join(SIZES)}))?$", examples=list(SIZES))
    properties["suite"].update(pattern=f"^({'|'.join(SUITES)})?$", examples=list(SUITES))
    properties["agent"].update(_schema_of_settings(AgentConfig()))
    return schema


def _schema_of_settings(settings: Any) -> dict[str, Any]:
    """Names and kinds of nested settings, from their defaults."""
    names: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        names[item.name] = _schema_of_settings(value) if is_dataclass(value) else {"type": _kind_of(value)}
    return {"type": "object", "properties": names, "additionalProperties": False}


def _kind_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", tuple: "array"}
    return kinds[type(value)]
