"""A trained DreamerV3 policy in numpy alone: no JAX, no GPU, no MOSAIC. `mosaic model export` puts this file, as
policy.py, beside the weights (model.safetensors) and what they are for (policy.json).

    from policy import Policy

    policy = Policy(".")                                # the exported folder
    obs, _ = env.reset()
    policy.reset()
    while True:
        action = policy.act({"place": obs})             # sensors by name, as policy.json lists them; images as uint8
        …

It computes in float32. The most likely action is taken, unless `act(…, samples=True)`. The model's own state is drawn
at random in both cases, as during training, from `seed`. Continuous actions are -1 .. 1, to be stretched to the env's
range.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

import numpy as np

Arrays = dict[str, Any]

EPS = 1e-4  # of a norm
DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8}


class Policy:
    """Acts in one env, step by step."""

    def __init__(self, folder: str | os.PathLike[str], seed: int = 0) -> None:
        with open(os.path.join(folder, "policy.json"), encoding="utf-8") as file:
            self.about = json.load(file)
        self._p = nested(read_safetensors(os.path.join(folder, "model.safetensors")))["params"]
        self._rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """An episode begins."""
        size = self.about["rssm"]
        self._deter = np.zeros(size["deter"], np.float32)
        self._stoch = np.zeros(size["stoch"] * size["classes"], np.float32)
        self._action = {key: np.zeros(space["shape"], space["dtype"]) for key, space in self.about["act"].items()}
        self._is_first = True

    def act(self, obs: Arrays, samples: bool = False, dice: np.ndarray | None = None) -> Arrays:
        """The action for an observation, by name. `dice`: Gumbel noise for the model's state, drawn if not given."""
        size, dyn = self.about["rssm"], self._p["dyn"]
        shape = size["stoch"], size["classes"]
        action = np.zeros_like(self._encoded()) if self._is_first else self._encoded()
        self._is_first = False
        deter = self._advance(dyn, action)
        tokens = self._tokens(obs)
        logits = linear(dyn["posterior_out"], mlp(dyn["posterior"], np.concatenate([deter, tokens]))).reshape(shape)
        dice = self._rng.gumbel(size=shape) if dice is None else dice
        chosen = (mixed(logits, size["unimix"]) + dice).argmax(-1)
        self._deter, self._stoch = deter, np.eye(shape[1], dtype=np.float32)[chosen].reshape(-1)
        x = mlp(self._p["pol"]["body"], np.concatenate([self._deter, self._stoch]))
        self._action = {key: self._choose(key, space, x, samples) for key, space in self.about["act"].items()}
        return dict(self._action)

    def _choose(self, key: str, space: Arrays, x: np.ndarray, samples: bool) -> np.ndarray:
        shape, nets, heads = tuple(space["shape"]), self.about["nets"], self._p["pol"]
        if is_discrete(space):
            logits = mixed(linear(heads["logits/" + key], x).reshape(*shape, -1), nets["policy_unimix"])
            noise = self._rng.gumbel(size=logits.shape) if samples else 0
            return np.asarray((logits + noise).argmax(-1), space["dtype"])
        mean, raw = (linear(heads[name + "/" + key], x).reshape(shape) for name in ("mean", "std"))
        std = (nets["max_std"] - nets["min_std"]) * sigmoid(raw + 2) + nets["min_std"]
        noise = self._rng.standard_normal(shape) if samples else 0
        action: np.ndarray = (np.tanh(mean) + std * noise).astype(space["dtype"])
        return action

    def _advance(self, p: Arrays, action: np.ndarray) -> np.ndarray:
        """The next deterministic state."""
        blocks = self.about["rssm"]["blocks"]
        bounded = action / np.maximum(1, np.abs(action))
        sources = {"deter_in": self._deter, "stoch_in": self._stoch, "action_in": bounded}
        inputs = np.concatenate([active(p[name], linear(p[name], x)) for name, x in sources.items()])
        shared = np.broadcast_to(inputs, (blocks, len(inputs)))
        joined = np.concatenate([self._deter.reshape(blocks, -1), shared], -1)
        hidden = active(p["hidden"], block_linear(p["hidden"], joined))
        gates = block_linear(p["gates"], hidden.reshape(blocks, -1)).reshape(blocks, 3, -1)
        reset, proposal, update = (gates[:, i].reshape(-1) for i in range(3))
        update = sigmoid(update - 1)
        return np.asarray(update * np.tanh(sigmoid(reset) * proposal) + (1 - update) * self._deter)

    def _encoded(self) -> np.ndarray:
        """The last action as the model takes it: one-hot or raw, side by side."""
        parts = []
        for key, space in sorted(self.about["act"].items()):
            x = self._action[key]
            parts.append(one_hot(x, space) if is_discrete(space) else np.ravel(x))
        return np.concatenate(parts).astype(np.float32)

    def _tokens(self, obs: Arrays) -> np.ndarray:
        parts, p, spaces = [], self._p["enc"], sorted(self.about["obs"].items())
        vectors = [(key, space) for key, space in spaces if not is_image(space)]
        images = [key for key, space in spaces if is_image(space)]
        if vectors:
            flat = [one_hot(obs[k], s) if is_discrete(s) else symlog(np.ravel(obs[k])) for k, s in vectors]
            parts.append(mlp(p["vector"], np.concatenate(flat).astype(np.float32)))
        if images:
            x = np.concatenate([obs[key] for key in images], -1).astype(np.float32) / 255 - 0.5
            for i in range(len(self.about["nets"]["mults"])):
                x = active(p[f"conv{i}"], pooled(conv(p[f"conv{i}"], x)))
            parts.append(x.reshape(-1))
        return np.concatenate(parts)


def is_image(space: Arrays) -> bool:
    return bool(space["dtype"] == "uint8" and len(space["shape"]) == 3)


def is_discrete(space: Arrays) -> bool:
    return bool(space["dtype"] == "bool" or np.issubdtype(np.dtype(space["dtype"]), np.integer))


def one_hot(x: Any, space: Arrays) -> np.ndarray:
    classes = 2 if space["dtype"] == "bool" else int(space["high"])
    return np.ravel(np.eye(classes, dtype=np.float32)[np.asarray(x).astype(int)])


def symlog(x: Any) -> Any:
    return np.sign(x) * np.log1p(np.abs(x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(x, -80, 80)))


def linear(p: Arrays, x: Any) -> Any:
    return x @ p["kernel"] + p["bias"]


def block_linear(p: Arrays, x: Any) -> Any:
    return np.einsum("gi,gio->go", x, p["kernel"]).reshape(-1) + p["bias"]


def active(p: Arrays, x: Any) -> Any:
    """Root-mean-square norm, then SiLU."""
    x = x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + EPS) * p["scale"]
    return x * sigmoid(x)


def mlp(p: Arrays, x: Any) -> Any:
    for i in range(len(p)):
        x = active(p[f"layer{i}"], linear(p[f"layer{i}"], x))
    return x


def mixed(logits: Any, unimix: float) -> Any:
    """Logarithms of the probabilities, with `unimix` of them spread evenly."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.log((1 - unimix) * powers / powers.sum(-1, keepdims=True) + unimix / logits.shape[-1])


def conv(p: Arrays, x: Any) -> Any:
    """Stride 1, the size kept; height, width, channels."""
    size = p["kernel"].shape[0]
    x = np.pad(x, [(size // 2, size // 2)] * 2 + [(0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (0, 1))
    return np.einsum("hwcij,ijco->hwo", windows, p["kernel"], optimize=True) + p["bias"]


def pooled(x: Any) -> Any:
    """The largest of each 2 x 2 patch."""
    height, width, channels = x.shape
    return x.reshape(height // 2, 2, width // 2, 2, channels).max((1, 3))


def nested(named: Arrays) -> Arrays:
    """`a/b/c` as dicts in dicts; a head's name has a slash of its own: `pol/mean/steer`."""
    tree: Arrays = {}
    for name, array in named.items():
        *path, last = name.split("/")
        if path[1:2] == ["pol"] and path[2] != "body":
            path = [*path[:2], "/".join(path[2:])]
        place = tree
        for part in path:
            place = place.setdefault(part, {})
        place[last] = array.astype(np.float32)
    return tree


def read_safetensors(path: str) -> Arrays:
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header, found = json.loads(data[8 : 8 + length]), {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return found
