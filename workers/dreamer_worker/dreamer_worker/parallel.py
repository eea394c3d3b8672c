"""--script parallel: start every process of the run, restart those that die, and end them in order.

    launcher ─┬─ logger
              ├─ replay
              ├─ agent      actor and learner, two threads around one agent
              └─ env 0 …    training envs, then evaluation envs

The run ends when the agent exits normally. Any other process, and an agent that was killed, is restarted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.parts import wanted

from dreamer_worker.agent_process import PART, run_agent
from dreamer_worker.checkpoint import COMMIT, Claim, Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.env import run_env
from dreamer_worker.factories import factories
from dreamer_worker.fastlane import hidden_request
from dreamer_worker.life import Life
from dreamer_worker.logger import run_logger
from dreamer_worker.meeting import Meeting, with_parts
from dreamer_worker.replay import run_replay
from dreamer_worker.rpc import free_address, make_secret
from dreamer_worker.supervisor import PATIENT_S, AgentThread, Child, RoleFailed, Supervisor


def prepare(config: DreamerConfig) -> DreamerConfig:
    """Fill in what the config leaves open (addresses, secret, presets) and create the run's folder."""
    config = config.resolved()
    if asked := wanted():
        config = with_parts(config, asked)
    names = ("actor_addr", "replay_addr", "logger_addr")
    given = {name: getattr(config, name) for name in names}
    taken = {name: free_address() if value == "auto" else value for name, value in given.items()}
    secret = config.secret or os.environ.get("DREAMER_SECRET") or _new_secret(config)
    filled: dict[str, Any] = {"secret": secret, **taken}
    config = config.replace(**filled)
    os.makedirs(config.logdir, exist_ok=True)
    return config


def _new_secret(config: DreamerConfig) -> str:
    if config.remote_envs or config.remote_replay:
        raise ConfigError("Processes on other machines must know the run's secret. Set DREAMER_SECRET on all of them.")
    return make_secret()


def resume(config: DreamerConfig) -> int | None:
    """Set the run's counters to those of its newest complete epoch, or of the `checkpoint`; returns the epoch, if any.

    Only the count of launches keeps growing: it shows a replay on another machine that the run was rolled back.
    """
    Claim(config.checkpoint_dir).take().release()  # wait until an agent that was just killed has saved
    epochs = Epochs(config.checkpoint_dir)
    if config.checkpoint and epochs.newest() is None:
        adopt(*chosen(Path(config.checkpoint)), epochs)
    epoch = epochs.newest()
    epochs.set_aside_after(epoch or 0)
    saved = epochs.read(epoch)["counters"] if epoch is not None else {}
    counters = Counters(Path(config.logdir) / "counters.bin")
    counters.reset({**saved, "launches": counters["launches"] + 1})
    return epoch


def chosen(checkpoint: Path) -> tuple[Epochs, int]:
    """The epoch to continue from: this one, or the newest complete one in a folder of epochs."""
    if (checkpoint / COMMIT).is_file():
        epochs, epoch = Epochs(checkpoint.parent), int(checkpoint.name.rpartition("-")[2])
        if problem := epochs.damage(epoch):
            raise RoleFailed(f"{checkpoint} is damaged ({problem}). Use an older epoch.")
        return epochs, epoch
    if (checkpoint / PART).is_file() or checkpoint.name == PART:
        raise RoleFailed(f"{checkpoint} holds the agent alone: it can be played, but a run cannot be resumed from it.")
    newest = Epochs(checkpoint).newest()
    if newest is None:
        raise RoleFailed(f"There is no complete checkpoint in {checkpoint}. Name a run's checkpoints folder.")
    return Epochs(checkpoint), newest


def adopt(source: Epochs, epoch: int, target: Epochs) -> None:
    """Copy another run's epoch, over an earlier copy that was interrupted."""
    if (source.folder / "blocks").exists():
        shutil.copytree(source.folder / "blocks", target.folder / "blocks", dirs_exist_ok=True)
    shutil.copytree(source.path(epoch), target.begin(epoch), dirs_exist_ok=True)


def works(config: DreamerConfig, keeper: str = "") -> dict[str, Callable[[Life], None]]:
    """What each process of the run does, in starting order. `keeper`: where a replay that is a part saves."""
    make = factories(config)
    found: dict[str, Callable[[Life], None]] = {
        "logger": partial(run_logger, make_logger=make["logger"], config=config),
        "replay": partial(
            run_replay,
            make_replay=make["replay"],
            make_stream=make["stream"],
            make_vault=partial(make["vault"], keeper),
            config=config,
        ),
        "agent": partial(run_agent, make_agent=make["agent"], config=config),
    }
    for index in range(config.envs + config.eval_envs):
        found[f"env{index}"] = partial(run_env, make_env=make["env"], index=index, config=config)
    return found


def plan(config: DreamerConfig) -> list[Any]:
    """The processes to start here."""
    children: list[Any] = []
    for name, work in works(config).items():
        if (name == "replay" and config.remote_replay) or (name.startswith("env") and config.remote_envs):
            continue
        if name == "agent" and not config.agent_process:
            children.append(AgentThread(name, work))
        else:
            children.append(Child(name, work, variables_of(name, config)))
    return children


def variables_of(name: str, config: DreamerConfig) -> dict[str, str]:
    """The environment variables of a process."""
    if name == "agent":
        # Keep what took minutes to compile, for an agent that is restarted and for a resumed run.
        kept = {
            "JAX_COMPILATION_CACHE_DIR": str(Path(config.logdir).absolute() / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        }
        return {name: value for name, value in kept.items() if name not in os.environ}
    # Only the agent computes: the other processes must not take the GPU or start a thread pool each.
    quiet = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**quiet, **hidden_request()} if name.startswith("env") else quiet


def run_role(config: DreamerConfig, names: Sequence[str]) -> None:
    """Run these processes of a run that is launched elsewhere, and restart each one that dies, until stopped."""
    supervise_role(config, names).run()


def supervise_role(config: DreamerConfig, names: Sequence[str], keeper: str = "") -> Supervisor:
    every = works(config, keeper)
    children = [Child(name, every[name], variables_of(name, config)) for name in names]
    return Supervisor(children, last_s=PATIENT_S)


def run_parallel(config: DreamerConfig, meeting: Meeting | None = None) -> dict[str, Any]:
    """The whole run; `config` comes from `prepare`, and `resume` has been called. `meeting`: of its parts."""
    if meeting and meeting.has_replay:
        config = config.replace(replay_addr=meeting.wait_for_replay())
    supervisor = Supervisor(plan(config))
    if meeting and meeting.has_replay:
        meeting.follow_replay(config.replay_addr, partial(_follow, supervisor, config))
    supervisor.run()
    counters = Counters(Path(config.logdir) / "counters.bin").to_dict()
    return {"total_steps": counters["env_steps"], **counters, "restarts": supervisor.restarts}


def _follow(supervisor: Supervisor, config: DreamerConfig, address: str) -> None:
    """The replay is another one, at the newest checkpoint: the agent goes back to it as well."""
    supervisor.renew("agent", works(config.replace(replay_addr=address))["agent"])
