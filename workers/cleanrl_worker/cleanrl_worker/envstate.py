"""The state of a script's environments as plain values, layer by layer, from the outermost wrapper to the env itself.

An env whose layers hold only numbers, arrays, random generators (the classic ones) or MuJoCo's data continues exactly
where it was. For any other env only the running means of its wrappers are saved: it starts a new episode.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cleanrl_worker.plain import NotPlain, to_plain

# What a layer is built from or renders with. None of it affects the next steps.
_REBUILT = {"env", "spec", "metadata", "model", "init_qpos", "init_qvel", "fullpath", "_cached_spec", "_saved_kwargs"}
_REBUILT |= {"screen", "clock", "surf", "font", "window", "viewer", "render_mode", "mujoco_renderer"}
_SPACES = ("action_space", "observation_space", "_action_space", "_observation_space")
Layer = dict[str, Any]


def capture(envs: Any, left_out: list[str]) -> list[list[Layer]]:
    """One list of layers per env; empty if an env cannot be saved, with the reason in `left_out`."""
    singles = _singles(envs)
    if not singles:
        if envs is not None:
            left_out.append(f"the environments ({type(envs).__name__}): they start new episodes")
        return []
    try:
        states = [[_layer_state(layer) for layer in _layers(env)] for env in singles]
    except NotPlain as error:
        left_out.append(f"the environments ({error}): they start new episodes")
        return []
    return [[{"class": "spaces", "rng": _space_rngs(envs)}], *states]


def restore(envs: Any, saved: list[list[Layer]], lost: list[str]) -> bool:
    """Whether every env is restored. If not, the envs are left as the script created them."""
    if not saved:
        return False
    singles = _singles(envs)
    chains = [list(_layers(env)) for env in singles]
    here = [[type(layer).__name__ for layer in chain] for chain in chains]
    there = [[layer["class"] for layer in chain] for chain in saved[1:]]
    if here != there:
        lost.append("the environments: their wrappers have changed, so they start new episodes")
        return False
    _put_space_rngs(envs, saved[0][0]["rng"])
    for chain, states in zip(chains, saved[1:], strict=True):
        for layer, state in zip(chain, states, strict=True):
            _put_layer(layer, state)
    return True


def running_means(envs: Any) -> dict[str, list[dict[str, Any]]]:
    """{"obs_rms": [mean, var and count of each env], …}; a list of one for envs that are stepped as a batch."""
    found: dict[str, list[dict[str, Any]]] = {}
    for env in _singles(envs) or [envs]:
        for layer in _layers(env):
            for name, value in vars(layer).items():
                if is_running_mean(value):
                    found.setdefault(name, []).append(means_of(value))
    return found


def put_running_means(envs: Any, saved: Mapping[str, list[dict[str, Any]]]) -> None:
    for number, env in enumerate(_singles(envs) or [envs]):
        for layer in _layers(env):
            for name, value in vars(layer).items():
                if is_running_mean(value) and number < len(saved.get(name, ())):
                    put_means(value, saved[name][number])


def is_running_mean(value: Any) -> bool:
    return type(value).__name__ == "RunningMeanStd"


def means_of(value: Any) -> dict[str, Any]:
    return {"mean": np.array(value.mean), "var": np.array(value.var), "count": float(value.count)}


def put_means(value: Any, saved: Mapping[str, Any]) -> None:
    value.mean, value.var, value.count = saved["mean"], saved["var"], saved["count"]


def _singles(envs: Any) -> list[Any]:
    return list(getattr(envs, "envs", ())) if envs is not None else []


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        if type(env).__name__ != "FastLaneWrapper":  # showing frames must not change which checkpoints fit
            yield env
        env = vars(env).get("env") if hasattr(env, "__dict__") else None


def _layer_state(layer: Any) -> Layer:
    values: dict[str, Any] = {}
    rngs: dict[str, Any] = {}
    means: dict[str, Any] = {}
    for name, value in vars(layer).items():
        if name in _SPACES:
            rngs[name] = _space_rng(value)
        elif name in _REBUILT or callable(value):
            continue
        elif isinstance(value, np.random.Generator):
            rngs[name] = value.bit_generator.state
        elif is_running_mean(value):
            means[name] = means_of(value)
        elif type(value).__name__ == "MjData":
            values[name] = _mujoco_state(layer.model, value)
        else:
            values[name] = _plain(layer, name, value)
    return {"class": type(layer).__name__, "values": values, "rng": rngs, "means": means}


def _plain(layer: Any, name: str, value: Any) -> Any:
    try:
        return to_plain(value)
    except NotPlain as error:
        raise NotPlain(f"{type(layer).__name__}.{name} is a {error}") from None


def _put_layer(layer: Any, state: Layer) -> None:
    for name, value in state["values"].items():
        here = vars(layer).get(name)
        if type(here).__name__ == "MjData":
            _put_mujoco_state(layer.model, here, value)
        else:
            vars(layer)[name] = value
    for name, rng in state["rng"].items():
        here = vars(layer).get(name)
        if name in _SPACES:
            _put_space_rng(here, rng)
        else:
            # An env that was never seeded has no generator yet.
            vars(layer)[name] = _generator(rng) if here is None else _set_generator(here, rng)
    for name, means in state["means"].items():
        put_means(vars(layer)[name], means)


def _mujoco_state(model: Any, data: Any) -> Any:
    import mujoco  # already imported by the env

    what = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, what), np.float64)
    mujoco.mj_getState(model, data, state, what)
    return to_plain(state)


def _put_mujoco_state(model: Any, data: Any, state: Any) -> None:
    import mujoco

    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_forward(model, data)
    # mj_forward resets the solver's warm start; the next step must start from the saved one.
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)


def _space_rngs(envs: Any) -> dict[str, Any]:
    names = ("single_action_space", "single_observation_space", "action_space", "observation_space")
    return {name: _space_rng(getattr(envs, name, None)) for name in names}


def _put_space_rngs(envs: Any, saved: Mapping[str, Any]) -> None:
    for name, rng in saved.items():
        _put_space_rng(getattr(envs, name, None), rng)


def _space_rng(space: Any) -> Mapping[str, Any] | None:
    generator = getattr(space, "_np_random", None)
    return generator.bit_generator.state if isinstance(generator, np.random.Generator) else None


def _put_space_rng(space: Any, rng: Mapping[str, Any] | None) -> None:
    if space is not None and rng is not None:
        _set_generator(space.np_random, rng)


def _set_generator(generator: np.random.Generator, rng: Mapping[str, Any]) -> np.random.Generator:
    generator.bit_generator.state = rng
    return generator


def _generator(rng: Mapping[str, Any]) -> np.random.Generator:
    return _set_generator(np.random.Generator(np.random.PCG64()), rng)
