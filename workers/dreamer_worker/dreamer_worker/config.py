"""The worker's settings: what to play, how much to learn, and which process is where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.names import WorkerEnv

IGNORED = ("version", "worker_id")  # of every worker's file; they mean nothing here
SCRIPTS = ("parallel", "train", "eval")
OUTPUTS = ("jsonl", "tensorboard", "mosaic", "terminal")
SELECTORS = ("uniform", "priority", "recency")
# MOSAIC's words for what is to be done, and the script that does it; "": the one that is asked for.
MODES = {"train": "", "resume_training": "", "policy_eval": "eval"}
TASK_EXAMPLES = ("crafter_reward", "atari_pong", "dmc_walker_walk", "minigrid_MiniGrid-Empty-5x5-v0", "gym_CartPole-v1")
TASK = r"^(crafter|atari|atari100k|dmc|minigrid|gym|dummy)_.|-v\d+$|:"
ADDRESS = r"^(auto|\S+:\d+)$"
# What a suite asks of its env's adapter.
SUITE_OPTIONS: dict[str, dict[str, Any]] = {"dmc_vision": {"image": True, "proprio": False}}
ALIASES = {"env_id": "env", "total_timesteps": "steps", "task": "env"}
CHECKPOINTS = ("policy_path", "checkpoint_path")  # what other workers call `checkpoint`
FIRST_EVAL_SEED = 1_000_000  # of evaluations: no training env has it


def _key(default: Any, help: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": help, **more})


@dataclass
class DreamerConfig:
    run_id: str = ""
    seed: int = _key(0, "the same seed gives the same run in one process (script train)")
    script: str = _key(
        "parallel", "parallel: a process for each part; train: one process; eval: play a checkpoint", choices=SCRIPTS
    )
    env: str = _key(
        "dummy_grid", "suite_name: crafter_reward, atari_pong, dmc_walker_walk, minigrid_…, gym_CartPole-v1"
    )
    env_options: dict[str, Any] = field(default_factory=dict, metadata={"help": "given to the env's adapter"})
    suite: str = _key("", "a preset: atari, atari100k, crafter, dmc_proprio, dmc_vision, minigrid, gymnasium")
    size: str = _key("", "of the agent: debug, 1m, 12m, 25m, 50m, 100m, 200m, 400m; empty: the suite's")
    agent: dict[str, Any] = field(
        default_factory=dict,
        metadata={"help": "settings of the agent over its presets, e.g. agent.optimizer.lr=1e-4"},
    )
    random_agent: bool = _key(False, "act at random and learn nothing: the processes without JAX")

    steps: int = _key(0, "env steps in all; 0: the suite's, else 10 million", minimum=0)
    envs: int = _key(0, "training envs; 0: the suite's, else 4", minimum=0)
    eval_envs: int = _key(1, "envs that play the best actions and feed the eval buffer", minimum=0)
    train_ratio: float = _key(0.0, "replayed steps per env step; 0: the suite's, else 32", minimum=0)
    batch_size: int = _key(16, "sequences per update", minimum=1)
    batch_length: int = _key(64, "steps per sequence", minimum=2)
    report_length: int = _key(32, "steps per sequence of a report", minimum=2)
    replay_gb: float = _key(8.0, "memory for replayed steps, at most", exclusiveMinimum=0)
    replay_shares: dict[str, float] = field(
        default_factory=lambda: {"uniform": 1.0},
        metadata={"help": "how sequences are drawn: shares of uniform, priority and recency"},
    )
    online: bool = _key(True, "replay new sequences first, once")

    actor_batch: int = _key(-1, "envs per policy call; -1: half of them")
    actor_wait_ms: float = _key(10.0, "how long a policy call waits for more envs", minimum=0)
    actor_addr: str = _key("auto", "host:port")
    replay_addr: str = _key("auto", "host:port")
    logger_addr: str = _key("auto", "host:port")
    secret: str = _key("", "which every process must know; empty: made for this run, or DREAMER_SECRET")
    agent_process: bool = _key(True, "the agent in a process of its own; false: in the launcher's")
    remote_envs: bool = _key(False, "do not start envs here: they are started elsewhere")
    remote_replay: bool = _key(False, "do not start replay here: it is started elsewhere")

    logdir: str = _key("", "where everything is written; empty: the run's folder")
    outputs: list[str] = field(
        default_factory=lambda: ["jsonl", "tensorboard", "mosaic"],
        metadata={"help": "of jsonl, tensorboard, mosaic, terminal"},
    )
    log_every_s: float = _key(30.0, "seconds between lines of metrics", exclusiveMinimum=0)
    report_every_s: float = _key(300.0, "seconds between reports", exclusiveMinimum=0)
    save_every_s: float = _key(300.0, "seconds between checkpoints", exclusiveMinimum=0)
    episode_timeout_s: float = _key(
        180.0, "an env that is silent for so long is forgotten by the logger", exclusiveMinimum=0
    )
    env_timeout_s: float = _key(600.0, "an env whose step takes longer is started anew", exclusiveMinimum=0)
    checkpoint: str = _key(
        "", "what to begin from, or to play: a run's id, name or folder, or one of its checkpoints; with its settings"
    )
    episodes: int = _key(10, "of script eval", minimum=1)
    capture_video: bool = _key(False, "script eval: record its first episodes into videos/eval")
    eval_every: int = _key(
        0, "env steps between evaluations of the agent as it is; the best one is kept; 0: none", minimum=0
    )
    eval_episodes: int = _key(10, "episodes of such an evaluation", minimum=1)
    emit_steps: bool = _key(False, "script train and eval: a telemetry line for every env step")

    def __post_init__(self) -> None:
        if not self.run_id:
            raise ConfigError('run_id is missing. Add "run_id" to the config, or set MOSAIC_RUN_ID.')
        if self.script not in SCRIPTS:
            raise ConfigError(f"script: must be one of {', '.join(SCRIPTS)}, not {self.script!r}.")
        _refuse_unknown("outputs", self.outputs, OUTPUTS)
        _refuse_unknown("replay_shares", self.replay_shares, SELECTORS)
        if not all(isinstance(share, int | float) and share >= 0 for share in self.replay_shares.values()):
            raise ConfigError(f"replay_shares: shares are numbers of at least 0, not {self.replay_shares!r}.")
        if not sum(self.replay_shares.values()):
            raise ConfigError('replay_shares: none is above 0. Give one, e.g. {"uniform": 1}.')

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DreamerConfig:
        """From the worker file's keys, and from the checkpoint's where they say nothing.

        `extras` may hold any of them too; an unknown key on top is an error.
        """
        from dreamer_worker.settings import inherit

        extras = data.get("extras") or {}
        own = {key: value for key, value in data.items() if key not in (*IGNORED, "extras", "mode", "test_mode")}
        keys = {ALIASES.get(key, key): value for key, value in own.items() if key not in CHECKPOINTS}
        known = {item.name for item in fields(cls)}
        if unknown := sorted(set(keys) - known):
            raise ConfigError(f"{unknown[0]}: the dreamer worker has no such key. It has: {', '.join(sorted(known))}.")
        keys = {key: value for key, value in extras.items() if key in known} | keys | _wish(data, extras, keys)
        keys = {key: value for key, value in keys.items() if value is not None}
        keys = inherit(keys)
        if keys.get("script") == "eval":
            keys.setdefault("seed", FIRST_EVAL_SEED)
        for item in fields(cls):
            if item.name in keys:
                keys[item.name] = _checked(item.name, item.type, keys[item.name])
        return cls(**keys)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def resolved(self) -> DreamerConfig:
        """With the suite's values where none was given; ConfigError if they are of no use."""
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
            raise ConfigError(f"logdir: {self.logdir} is outside of the run's folder. Leave it out.")

    def _with_suite(self) -> DreamerConfig:
        from dreamer_worker.agent.config import SUITES

        if self.suite and self.suite not in SUITES:
            raise ConfigError(f"suite: there is no {self.suite!r}. There are: {', '.join(SUITES)}.")
        suite = SUITES.get(self.suite, {})
        preset = {"steps": 10_000_000, "envs": 4, "train_ratio": 32.0, **suite.get("run", {})}
        changes = {key: value for key, value in preset.items() if not getattr(self, key)}
        if "task" in suite and self.env == type(self).env:
            changes["env"] = _task_of(self.suite, suite["task"])
        changes["env_options"] = {**SUITE_OPTIONS.get(self.suite, {}), **self.env_options}
        changes["size"] = self.size or suite.get("size") or ("200m" if self.suite else "1m")
        changes["logdir"] = self.logdir or os.environ.get(WorkerEnv.RUN_DIR) or f"logdir/{self.run_id}"
        return type(self)(**{**self.to_dict(), **changes})

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


def _wish(data: Mapping[str, Any], extras: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """What `mode`, `test_mode` and another worker's name of a checkpoint ask for, in this worker's words."""
    mode = extras.get("mode") or data.get("mode") or "train"
    if mode not in MODES:
        raise ConfigError(f"mode: must be one of {', '.join(MODES)}, not {mode!r}.")
    is_test = extras.get("test_mode") is True or data.get("test_mode") is True
    script = "eval" if is_test else MODES[mode]
    paths = [folder[name] for folder in (data, extras) for name in CHECKPOINTS if folder.get(name)]
    wish = {"script": script} if script else {}
    if paths and not (keys.get("checkpoint") or extras.get("checkpoint")):
        wish["checkpoint"] = paths[0]
    elif mode != "train" and not (keys.get("checkpoint") or extras.get("checkpoint")):
        raise ConfigError(f"policy_path is missing: mode {mode} needs the checkpoint of a run, or the run's folder.")
    return wish


def _task_of(suite: str, task: str) -> str:
    from dreamer_worker.envs import split_task

    if split_task(task)[0] == "gym" and not task.startswith("gym_"):
        raise ConfigError(f"suite: there is no adapter for {task}. Use {suite}'s settings with an env of yours: env=…")
    return task


def _refuse_unknown(name: str, given: Iterable[str], known: tuple[str, ...]) -> None:
    if unknown := sorted(set(map(str, given)) - set(known)):
        raise ConfigError(f"{name}: there is no {unknown[0]!r}. There are: {', '.join(known)}.")


_TYPES = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "dict": (dict,), "list": (list,)}


def _checked(name: str, kind: Any, value: Any) -> Any:
    kind = str(kind).partition("[")[0]  # dict[str, Any] is checked as a dict
    wanted = _TYPES[kind]
    if isinstance(value, float) and wanted == (int,) and value.is_integer():
        return int(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
        raise ConfigError(f"{name}: must be of type {kind}, not {value!r}.")
    return value


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


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    from dreamer_worker.agent.config import SIZES, SUITES, AgentConfig

    schema = schema_of(DreamerConfig, title="DreamerV3", lab=LAB)
    properties = schema["properties"]
    properties["env"].update(pattern=TASK, examples=TASK_EXAMPLES)
    properties["size"].update(pattern=f"^((size)?({'|'.join(SIZES)}))?$", examples=list(SIZES))
    properties["suite"].update(pattern=f"^({'|'.join(SUITES)})?$", examples=list(SUITES))
    properties["outputs"]["items"] = {"enum": list(OUTPUTS)}
    properties["checkpoint"].update({"x-mosaic-checkpoint": True})
    for name in ("actor_addr", "replay_addr", "logger_addr"):
        properties[name].update(pattern=ADDRESS, examples=["auto", "10.0.0.1:7001"])
    share = {"type": "number", "minimum": 0}
    properties["replay_shares"].update(properties=dict.fromkeys(SELECTORS, share), additionalProperties=False)
    properties["agent"].update(_schema_of_settings(AgentConfig()), additionalProperties=False)
    for name in FROM_SUITE:
        del properties[name]["default"]
    for alias, name in ALIASES.items():
        properties[alias] = {**properties[name], "description": f"the same as {name}", "x-mosaic-same-as": name}
    properties["extras"]["properties"].update(EXTRAS)
    schema["x-mosaic-examples"] = list(EXAMPLES)
    schema["x-mosaic-inherits-with"] = ["checkpoint", *(f"extras.{name}" for name in CHECKPOINTS)]
    schema["x-mosaic-resume"] = {"extras.mode": "resume_training", "checkpoint": "{checkpoint}"}
    schema["x-mosaic-eval"] = {
        **{"extras.mode": "policy_eval", "checkpoint": "{checkpoint}", "episodes": "{episodes}", "seed": "{seed}"},
        **{"capture_video": "{video}", "env_options": "{parent}"},
    }
    return schema


# Left out, they are the suite's: a default in the schema would be recorded with the run, and be wrong.
FROM_SUITE = ("env", "steps", "envs", "train_ratio", "size")
EXAMPLES = (
    "env=crafter_reward size=12m envs=16 train_ratio=256",
    "suite=atari100k env=atari100k_boxing",
    "env=gym_CartPole-v1 size=debug batch_size=4 batch_length=8 envs=2 steps=3000    minutes on a laptop",
    "checkpoint=last steps=2000000    go on from the newest run",
    "mode=policy_eval policy_path=last episodes=20    play it",
)
# Where MOSAIC and its other workers have them.
EXTRAS: dict[str, Any] = {
    "mode": {
        "enum": list(MODES),
        "default": "train",
        "description": "policy_eval: play policy_path, the same as script=eval; resume_training: go on from it",
    },
    "policy_path": {"type": "string", "description": "the same as checkpoint", "x-mosaic-checkpoint": True},
    "checkpoint_path": {"type": "string", "description": "the same as policy_path", "x-mosaic-same-as": "policy_path"},
    "test_mode": {"type": "boolean", "default": False, "description": "the same as mode=policy_eval"},
}


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
