"""The state of a training: networks, optimizers, schedules, statistics and random numbers, as plain data and tensors.

XuanCe saves networks and optimizers only. Neither it nor this module saves the replay memory and open episodes.
"""

import random
from typing import Any

import numpy as np
import torch

NOT_SAVED = ["replay memory", "open episodes"]
_LEARNER_NUMBERS = ("iterations", "policy_iterations", "value_iterations", "alpha")
_AGENT_NUMBERS = ("current_step", "e_greedy", "egreedy", "noise_scale", "PER_beta", "gradient_step")
_STATISTICS = ("obs_rms", "ret_rms")
_MAY_HAVE_STATE = (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)


def capture(agent: Any) -> dict[str, Any]:
    return {
        "policy": agent.policy.state_dict(),
        "learner": _learner_parts(agent.learner),
        "agent": {name: _plain(getattr(agent, name)) for name in _AGENT_NUMBERS if hasattr(agent, name)},
        "statistics": {name: _statistics(getattr(agent, name)) for name in _STATISTICS if hasattr(agent, name)},
        "current_episode": torch.as_tensor(np.asarray(agent.current_episode)),
        "random": _random_state(),
    }


def restore_policy(agent: Any, state: dict[str, Any]) -> None:
    """What is needed to act."""
    agent.policy.load_state_dict(state["policy"], strict=True)
    for name, values in state["statistics"].items():
        target = getattr(agent, name)
        for key, value in values.items():
            setattr(target, key, _unpacked(value))
    for name, value in state["agent"].items():
        setattr(agent, name, value)


def restore(agent: Any, state: dict[str, Any]) -> None:
    """All of it: the training continues."""
    restore_policy(agent, state)
    for name, value in state["learner"].items():
        setattr(agent.learner, name, _restored(getattr(agent.learner, name), value))
    known = state["current_episode"].numpy()
    agent.current_episode = known if known.shape == agent.current_episode.shape else agent.current_episode
    _restore_random(state["random"])
    # The replay memory is empty now. Learning waits until it holds as much as at the first start.
    agent.start_training = agent.start_training + agent.current_step


def _learner_parts(learner: Any) -> dict[str, Any]:
    parts = {}
    for name, value in vars(learner).items():
        if name in _LEARNER_NUMBERS or (name != "policy" and _has_state(value)):
            parts[name] = _packed(value)
    return parts


def _has_state(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(_has_state(part) for part in value.values())
    if isinstance(value, list):
        return bool(value) and all(_has_state(part) for part in value)
    return isinstance(value, (torch.nn.Parameter, *_MAY_HAVE_STATE)) or (
        isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf
    )


def _packed(value: Any) -> Any:
    if isinstance(value, _MAY_HAVE_STATE):
        return value.state_dict()
    if isinstance(value, dict):
        return {key: _packed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_packed(part) for part in value]
    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else _plain(value)


def _restored(current: Any, saved: Any) -> Any:
    """`current` with the saved content; what can be changed in place is, because optimizers refer to it."""
    if isinstance(current, _MAY_HAVE_STATE):
        current.load_state_dict(saved)
        return current
    if isinstance(current, dict):
        return {key: _restored(part, saved[key]) for key, part in current.items()}
    if isinstance(current, list):
        return [_restored(part, saved[place]) for place, part in enumerate(current)]
    if isinstance(current, torch.Tensor) and current.is_leaf:
        with torch.no_grad():
            current.copy_(saved)
        return current
    return saved.to(current.device) if isinstance(current, torch.Tensor) else saved


def _statistics(values: Any) -> dict[str, Any]:
    return {key: _tensors(getattr(values, key)) for key in ("count", "mean", "var")}


def _tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tensors(part) for key, part in value.items()}
    return torch.as_tensor(np.asarray(value))


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unpacked(part) for key, part in value.items()}
    return value.numpy() if value.ndim else value.item()


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _random_state() -> dict[str, Any]:
    name, keys, *rest = np.random.get_state()
    numbers = {"name": name, "keys": torch.as_tensor(np.asarray(keys).astype(np.int64)), "rest": list(rest)}
    return {"torch": torch.get_rng_state(), "numpy": numbers, "python": list(random.getstate())}


def _restore_random(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    numbers, python = state["numpy"], state["python"]
    np.random.set_state((numbers["name"], numbers["keys"].numpy().astype(np.uint32), *numbers["rest"]))
    random.setstate((python[0], tuple(python[1]), python[2]))
