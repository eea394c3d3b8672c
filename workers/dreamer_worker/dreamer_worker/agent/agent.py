"""The agent: numpy in, numpy out, one object for acting and learning.

Promises:
1. `policy` may be called from another thread than `train`: it works on its own copy of the weights.
2. `train` returns before the device is done; converting what it returned to numpy waits. Fetch one update late.
3. `load` restores what `save` saved, bit for bit; `load` refuses anything that does not fit, and names it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent import heads, optimizer, rssm
from dreamer_worker.agent.config import AgentConfig
from dreamer_worker.agent.devices import Devices
from dreamer_worker.agent.joining import SMALL, Joint, Numbers
from dreamer_worker.agent.layers import Array, Params, cast, kernels_by
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.objective import Batch, objective
from dreamer_worker.agent.optimizer import Moments
from dreamer_worker.agent.packing import packed, unpacked
from dreamer_worker.agent.returns import ReturnScale
from dreamer_worker.agent.rssm import State
from dreamer_worker.agent.snapshot import named, restored
from dreamer_worker.agent.spaces import BOOKKEEPING, Space, Spaces
from dreamer_worker.agent.video import open_loop

log = logging.getLogger(__name__)

# Within one step of a scan, and between two kernels that wait for each other, others have room on the device.
OPTIONS = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT_REGIONS"}

Data = Mapping[str, Any]
Carry = dict[str, Any]


class TrainState(NamedTuple):
    """All that an update changes."""

    params: Params
    slow: Params
    moments: Moments
    scale: ReturnScale


class Staged(dict[str, Any]):
    """A batch on its way to the device, or several, stacked; the steps' ids stay here."""

    ids: Any = None
    updates: int = 1


class Agent:
    def __init__(self, obs_space: Spaces, act_space: Spaces, config: AgentConfig) -> None:
        self.obs_space, self.act_space, self.config = obs_space, act_space, config
        self.model = Model(obs_space, act_space, config)
        self.devices = Devices(config.compute)
        # An update donates the memory of its inputs, so no other thread may read them meanwhile.
        self._lock = threading.Lock()
        self._swap = threading.Lock()
        # Whether acting goes on with older weights while newer ones are computed. If so, a run is not reproducible.
        self.never_waits = False
        self._seed = jax.random.key(config.seed)
        self._acted = 0
        # What several devices share keeps its shape.
        self._joint = Joint(jax.eval_shape(self._fresh), SMALL if self.devices.count == 1 else 0)
        self._join, self._split = jax.jit(self._joint.join), jax.jit(self._joint.split)
        self._options = dict(OPTIONS) if config.compute.side_by_side and jax.default_backend() == "gpu" else None
        self._compile()
        self._act = jax.jit(self._acting, static_argnames="greedy")
        self._copy = jax.jit(self._policy_share)
        self._duplicate = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))
        self._parts: list[Array] = self.devices.everywhere(jax.jit(lambda: self._joint.join(self._fresh()))())
        self.policy_params: Params = self._copied()
        self._newer: Params | None = None  # weights on their way to the policy
        self._updates = 0

    def _compile(self) -> None:
        """Forget what was compiled. Functions of their own each time: JAX remembers by function."""
        update = partial(jax.jit, donate_argnums=0, compiler_options=self._options)
        self._update = update(self._between(self._updated))
        self._update_often = update(self._between(self._updated_often))
        self._look = jax.jit(lambda parts, *args: self._reported(self._joint.split(parts), *args))

    def _between(self, update: Callable[..., Any]) -> Callable[..., Any]:
        """`update` with few arrays going in and coming out."""

        def joined(parts: list[Array], *args: Any) -> Any:
            train_state, carry, outs, metrics = update(self._joint.split(parts), *args)
            return self._joint.join(train_state), carry, outs, Numbers.of(metrics)

        return joined

    @property
    def train_state(self) -> TrainState:
        """A copy."""
        state: TrainState = self._split(self._parts)
        return state

    @cached_property  # read for every batch
    def ext_space(self) -> Spaces:
        """Extra keys that replay keeps for the agent: the latent state, the categories as their index."""
        size = self.config.rssm
        if not self.config.learning.replay_context:
            return {}
        return {
            "dyn/deter": Space("float16", (size.deter,)),
            "dyn/stoch": Space("uint8", (size.stoch,), 0, size.classes),
        }

    @property
    def needs_first(self) -> dict[str, int]:
        """Keys of which an update uses only the first steps of a sequence, and how many: replay need not send more."""
        return dict.fromkeys(self.ext_space, self.config.learning.replay_context)

    # Acting

    def init_policy(self, batch: int) -> Carry:
        """The state of `batch` envs, stacked on axis 0, in numpy: rows may be removed, stored and mixed."""
        size = self.config.rssm
        return {
            "deter": np.zeros((batch, size.deter), np.float32),
            "stoch": np.zeros((batch, size.stoch), np.uint8),
            "prevact": {key: space.zeros(batch) for key, space in self.act_space.items()},
        }

    def policy(self, carry: Carry, obs: Data, mode: str = "train") -> tuple[Carry, dict[str, Any], dict[str, Any]]:
        """Actions for a batch of observations: drawn in `train`, the most likely in `eval`.

        Continuous actions are for an env that takes -1 .. 1 and clips. `outs` are the extra keys for replay.
        """
        if mode not in ("train", "eval"):
            raise ValueError(f"mode is {mode!r}; choose train or eval.")
        seen = {key: np.asarray(obs[key]) for key in (*self.model.sensors, "is_first")}
        count = len(seen["is_first"])
        # Padded to powers of two, so that few batch sizes are ever compiled.
        padded = _padded({"carry": carry, "obs": seen}, 1 << (count - 1).bit_length())
        self._acted += 1
        greedy = mode == "eval" and not self.config.eval_samples
        found = self._act(self._acting_params(), padded["carry"], padded["obs"], self._acted, greedy=greedy)
        state, actions = jax.tree.map(lambda x: np.asarray(x)[:count], found)
        actions = {key: actions[key].astype(self.act_space[key].dtype) for key in actions}
        outs = {"dyn/deter": state["deter"].astype(np.float16), "dyn/stoch": state["stoch"]}
        return {**state, "prevact": actions}, actions, outs if self.ext_space else {}

    def _acting(self, params: Params, carry: Carry, obs: Data, count: Array, greedy: bool) -> Any:
        size = self.config.rssm
        latent_key, action_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(self._seed, 1), count))
        state = self._state(carry["deter"], carry["stoch"])
        batch = len(carry["deter"])
        gumbel = jax.random.gumbel(latent_key, (batch, size.stoch, size.classes))
        tokens = self.model.encoder(params["enc"], dict(obs))
        encoded = self.model.policy.encode(carry["prevact"], self.model.dtype.name)
        seen = rssm.observe_step(size, params["dyn"], state, encoded, tokens, obs["is_first"], gumbel)
        policy = self.model.policy(params["pol"], seen.state.feature)
        noise = self.model.policy.noise(action_key, batch)
        actions = heads.mode(policy) if greedy else heads.sample(policy, noise)
        deter, stoch = self._stored(seen.state)
        return {"deter": deter.astype(jnp.float32), "stoch": stoch}, actions

    def params_for_policy(self) -> Params:
        """Let `policy` use the newest weights from now on; returns them."""
        with self._lock:
            self._refresh(self._copied())
        with self._swap:
            self.policy_params, self._newer = self._newer or self.policy_params, None
        return self.policy_params

    def _acting_params(self) -> Params:
        """The newest weights; with `never_waits` the newest that have arrived: an update may still compute others."""
        with self._swap:
            newer = self._newer
            if newer is not None and (not self.never_waits or all(x.is_ready() for x in jax.tree.leaves(newer))):
                self.policy_params, self._newer = newer, None
            return self.policy_params

    def _refresh(self, copy: Params) -> None:
        with self._swap:
            self._newer = copy

    def _copied(self) -> Params:
        copy: Params = self.devices.for_policy(self._copy(self._parts))
        return copy

    def _policy_share(self, parts: list[Array]) -> Any:
        params = self._joint.split(parts).params
        return cast({key: params[key] for key in ("enc", "dyn", "pol")}, self.model.dtype)

    # Learning

    def init_train(self, batch: int) -> Carry:
        """What a sequence that continues another starts from."""
        state = rssm.initial(self.config.rssm, batch, self.model.dtype)
        prevact = {key: jnp.asarray(space.zeros(batch)) for key, space in self.act_space.items()}
        carry: Carry = self.devices.split({"state": state, "prevact": prevact})
        return carry

    def train(self, carry: Carry, data: Data) -> tuple[Carry, dict[str, Any], dict[str, Any]]:
        """One update on sequences of `replay_context` + length steps, batch on axis 0.

        `data` holds the obs_space, the act_space and the ext_space; also, if replay has them, `consec` (which chunk of
        a longer sequence: the first starts from the stored latents, others from `carry`) and `stepid` (returned).
        `outs` are for replay: per trained step the new latents and a priority.

        Of batches staged together, one after the other is used, in one call of the device: `outs` are those of all
        of them, `metrics` those of the last.
        """
        staged = self.stage(data)
        update = "_update" if staged.updates == 1 else "_update_often"
        every = self.config.compute.policy_sync_every
        with self._lock:
            with self.devices.together():
                self._parts, carry, outs, metrics = self._tried(update, carry, staged)
            before, self._updates = self._updates, self._updates + staged.updates
            if self._updates // every > before // every:
                self._refresh(self._copied())
        if staged.ids is not None:
            outs = {**outs, "stepid": staged.ids}
        return carry, outs, metrics

    def _tried(self, update: str, carry: Carry, staged: Staged) -> Any:
        """An update. What a device or a JAX refuses before the first one is done is left out from then on."""
        while True:
            try:
                return getattr(self, update)(self._parts, carry, dict(staged))
            except Exception as error:  # whatever a compiler that does not know them says
                if self._updates or not self._does_without(error, len(carry["state"].deter)):
                    raise
                self._compile()

    def _does_without(self, error: Exception, batch: int) -> bool:
        """Leave out what is only faster, and say so; False if nothing is left."""
        if self._options and "compile option" in str(error):
            log.warning("This JAX does not know the compiler's options that are used here. %s", error)
            self._options = None
        elif self.model.has_own_kernels(batch):
            log.warning("The hand-written kernels cannot be used here; the compiler's are slower. %s", error)
            self.model.kernels = "xla"
        else:
            return False
        return True

    def stage(self, data: Data, updates: int = 1) -> Staged:
        """What `train` and `report` need of `data`. Calling it ahead hides the transfer; a second call is harmless.

        `updates`: for how many updates `data` is; its sequences are split evenly, in order.
        """
        if isinstance(data, Staged):
            return data
        context = self.config.learning.replay_context
        names = {*self.model.sensors, *self.act_space, *BOOKKEEPING, *self.ext_space} | ({"consec"} & set(data))
        if missing := sorted(names - set(data)):
            raise KeyError(f"The batch lacks {', '.join(missing)}.")
        # Of the stored latents only those before the first trained step are used.
        cut = {key: data[key][:, :context] if key in self.ext_space else data[key] for key in sorted(names)}
        if updates > 1:
            cut = {key: np.asarray(x).reshape((updates, -1, *np.shape(x)[1:])) for key, x in cut.items()}
        if self.devices.count == 1:
            cut = packed(cut, lead=int(updates > 1))
        staged = Staged(self.devices.split(cut, axis=int(updates > 1)))
        staged.updates = updates
        if "stepid" in data:
            staged.ids = data["stepid"][:, context:]
        return staged

    def _updated_often(self, train_state: TrainState, carry: Carry, data: dict[str, Array]) -> Any:
        """One update after the other without the host: to start a small one takes it as long as the device to do it."""

        def one(before: tuple[TrainState, Carry], batch: dict[str, Array]) -> Any:
            train_state, carry, outs, metrics = self._updated(*before, batch)
            return (train_state, carry), (outs, metrics)

        (train_state, carry), (outs, metrics) = jax.lax.scan(one, (train_state, carry), data)
        outs = jax.tree.map(lambda x: x.reshape((-1, *x.shape[2:])), outs)
        return train_state, carry, outs, jax.tree.map(lambda x: x[-1], metrics)

    def _updated(self, train_state: TrainState, carry: Carry, data: dict[str, Array]) -> Any:
        config, model = self.config, self.model
        key = jax.random.fold_in(jax.random.fold_in(self._seed, 2), train_state.moments.updates)
        batch, last = self._batch(carry, data)
        loss = jax.value_and_grad(partial(objective, model), has_aux=True)
        with kernels_by(model.kernels if model.fast else "xla"):
            (total, result), grads = loss(train_state.params, train_state.slow, train_state.scale, batch, key)
        params, moments, stats = optimizer.step(config.optimizer, train_state.params, grads, train_state.moments)
        rate = config.learning.slow_rate
        slow = jax.tree.map(lambda fast, slow: rate * fast + (1 - rate) * slow, params["val"], train_state.slow)
        outs = {**self._latents(result.seen.state), "priority": result.priority.T}
        carry = {"state": jax.tree.map(lambda x: x[-1], result.seen.state), "prevact": last}
        metrics = {**result.metrics, **stats, "loss/total": total}
        after = self.devices.keep_everywhere(TrainState(params, slow, moments, result.scale))
        return after, carry, outs, metrics

    def _batch(self, carry: Carry, data: dict[str, Array]) -> tuple[Batch, dict[str, Array]]:
        """Time first, the context cut off; and each sequence's last action."""
        context = self.config.learning.replay_context
        data = {k: v if k == "consec" else jnp.swapaxes(v, 0, 1) for k, v in unpacked(data).items()}
        obs = {key: data[key][context:] for key in (*self.model.sensors, *BOOKKEEPING)}
        last = {key: data[key][-1] for key in self.act_space}
        if not context:
            prior = {k: jnp.concatenate([carry["prevact"][k][None], data[k][:-1]]) for k in self.act_space}
            return Batch(obs, prior, carry["state"]), last
        actions = {key: data[key][context - 1 : -1] for key in self.act_space}
        stored = self._state(data["dyn/deter"][context - 1], data["dyn/stoch"][context - 1])
        if "consec" not in data:
            return Batch(obs, actions, stored), last
        consec = data["consec"]
        starts = (consec.reshape(len(consec), -1)[:, :1] == 0).astype(self.model.dtype)
        state = jax.tree.map(lambda old, new: starts * old + (1 - starts) * new, stored, carry["state"])
        return Batch(obs, actions, State(*state)), last

    def _state(self, deter: Array, stoch: Array) -> State:
        onehot = jax.nn.one_hot(stoch, self.config.rssm.classes, dtype=self.model.dtype)
        return State(deter.astype(self.model.dtype), onehot.reshape((*stoch.shape[:-1], -1)))

    def _stored(self, state: State) -> tuple[Array, Array]:
        size = self.config.rssm
        shaped = state.stoch.reshape((*state.stoch.shape[:-1], size.stoch, size.classes))
        return state.deter, shaped.argmax(-1).astype(jnp.uint8)

    def _latents(self, state: State) -> dict[str, Array]:
        if not self.ext_space:
            return {}
        deter, stoch = self._stored(state)
        return {"dyn/deter": deter.swapaxes(0, 1).astype(jnp.float16), "dyn/stoch": stoch.swapaxes(0, 1)}

    # Reporting

    def init_report(self, batch: int) -> Carry:
        return self.init_train(batch)

    def report(self, carry: Carry, data: Data) -> tuple[Carry, dict[str, Any]]:
        """The losses on `data` without learning from it, and for each image a clip: real, dreamed, difference.

        The model sees the first half and dreams the rest, given the real actions: `open_loop/<key>`, uint8,
        time x height x width x channels, up to six sequences side by side.
        """
        with self._lock, self.devices.together():
            carry, found = self._look(self._parts, carry, dict(self.stage(data)))
            return carry, jax.tree.map(np.asarray, found)

    def _reported(self, train_state: TrainState, carry: Carry, data: dict[str, Array]) -> Any:
        key = jax.random.fold_in(jax.random.fold_in(self._seed, 3), train_state.moments.updates)
        batch, last = self._batch(carry, data)
        total, result = objective(self.model, train_state.params, train_state.slow, train_state.scale, batch, key)
        clips = open_loop(self.model, cast(train_state.params, self.model.dtype), batch, key)
        carry = {"state": jax.tree.map(lambda x: x[-1], result.seen.state), "prevact": last}
        return carry, {**result.metrics, "loss/total": total, **clips}

    # Saving

    def _fresh(self) -> TrainState:
        params = self.model.init(jax.random.fold_in(self._seed, 0))
        slow = jax.tree.map(jnp.copy, params["val"])
        return TrainState(params, slow, Moments.initial(params), ReturnScale.initial())

    def save(self) -> dict[str, np.ndarray]:
        """Everything learned, by name."""
        with self._lock:
            return {**named(self.train_state), "acted": np.asarray(self._acted)}

    def freeze(self) -> Callable[[], dict[str, np.ndarray]]:
        """What `save` would return now, to be fetched later: the device keeps a copy, and learning goes on at once."""
        with self._lock:
            kept, acted = self._duplicate(self._parts), np.asarray(self._acted)
        return lambda: {**named(self._split(kept)), "acted": acted}

    def load(self, saved: Mapping[str, np.ndarray]) -> None:
        """The inverse of `save`. On a mismatch nothing changes and the error lists every difference."""
        with self._lock:
            template = {"learner": self.train_state, "acted": np.asarray(0)}
            found = restored(template, {k if k == "acted" else f"learner/{k}": v for k, v in saved.items()})
            self._parts = self.devices.everywhere(self._join(found["learner"]))
            self._acted = int(found["acted"])
            self._updates = int(found["learner"].moments.updates)
            self.policy_params, self._newer = self._copied(), None


def _padded(tree: Any, rows: int) -> Any:
    def pad(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return np.pad(x, [(0, rows - len(x))] + [(0, 0)] * (x.ndim - 1)) if len(x) < rows else x

    return jax.tree.map(pad, tree)
