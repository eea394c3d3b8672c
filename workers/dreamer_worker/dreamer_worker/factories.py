"""How each process makes what it works with. A factory travels to its process by cloudpickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.logger import Logger
from dreamer_worker.replay import Replay, Vault
from dreamer_worker.rpc import Client
from dreamer_worker.storage import free_bytes
from dreamer_worker.streams import METHODS, Stream


def factories(config: DreamerConfig) -> dict[str, Callable[..., Any]]:
    """The factories of a run, ready to be sent to its processes."""
    return {
        "env": partial(make_env, config),
        "agent": partial(make_agent, config),
        "replay": partial(make_replay, config),
        "stream": make_stream,
        "vault": partial(make_vault, config),
        "logger": partial(make_logger, config),
    }


def make_env(config: DreamerConfig, index: int) -> Any:
    """The run's env of that index; training envs come first."""
    from dreamer_worker import envs

    return envs.make_env(config.env, seed=config.seed * 10_007 + index, **config.env_options)


def make_agent(config: DreamerConfig) -> Any:
    env = make_env(config, 0)  # for its spaces
    try:
        return make_agent_for(env, config)
    finally:
        env.close()


def make_agent_for(env: Any, config: DreamerConfig) -> Any:
    """The agent for an env that exists already."""
    if config.random_agent:
        from dreamer_worker.random_agent import RandomAgent

        return RandomAgent(env.obs_space, env.act_space, config.seed)
    from dreamer_worker import agent

    return agent.make_agent(env.obs_space, env.act_space, config.agent_settings())


def make_replay(config: DreamerConfig) -> Replay:
    batch, length = config.batch_size, config.sequence_length
    # Before sampling starts, every env must have a whole sequence, and there must be a whole batch of them.
    minimum = max(batch, config.envs) * length
    limiter = SamplesPerInsert(config.train_ratio / config.batch_length, 4 * batch, minimum)
    return Replay(partial(make_buffer, config), limiter)


def make_buffer(config: DreamerConfig, spaces: Mapping[str, Any]) -> Buffer:
    folder, disk_bytes = Path(config.logdir) / "replay", int(config.replay_disk_gb * 1e9)
    if disk_bytes > free_bytes(folder):
        raise ValueError(
            f"replay_disk_gb is {config.replay_disk_gb:g}, but {folder} has {free_bytes(folder) / 1e9:.0f} GB left."
        )
    buffer = Buffer(
        spaces,
        config.sequence_length,
        int(config.replay_gb * 1e9),
        config.replay_shares,
        seed=config.seed,
        online=config.online,
        disk_bytes=disk_bytes,
        folder=folder,
    )
    envs = max(config.envs, config.eval_envs)
    if buffer.blocks <= envs:
        # Each env fills a block of its own: they would overwrite each other's before a sequence is complete.
        good = 2 * (envs + 1) * buffer.block_rows * buffer.row_bytes / 1e9
        raise ValueError(f"A replay of {config.replay_gb} GB has no room for {envs} envs. Set replay_gb to {good:.2g}.")
    return buffer


def make_vault(config: DreamerConfig, keeper: str = "") -> Vault:
    """Where the replay's part of checkpoints is kept: here, or by the run at this address."""
    if not keeper:
        return Vault(Epochs(config.checkpoint_dir))
    from dreamer_worker.far_vault import FarVault

    return FarVault(Path(config.logdir) / "on its way", Client(keeper, config.secret), config.replay_addr)


def make_stream(replay: Replay, name: str) -> Stream:
    """How the batches of one stream are drawn: `train` waits for the limiter; `report` and `eval` do not."""
    if name == "train":
        return replay.sample
    return partial(replay.report, name="train" if name == "report" else name)


def make_streams(replay: Replay) -> dict[str, Stream]:
    return {name: make_stream(replay, name) for name in METHODS}


def make_logger(config: DreamerConfig) -> Logger:
    from dreamer_worker.outputs import make_outputs

    outputs = make_outputs(config.outputs, config.logdir, config.run_id)
    counters = Counters(Path(config.logdir) / "counters.bin")
    return Logger(outputs, counters, config.logdir, config.episode_timeout_s)
