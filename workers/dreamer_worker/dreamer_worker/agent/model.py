"""All networks of an agent, put together from its spaces and settings."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp

from dreamer_worker.agent import observation, rssm
from dreamer_worker.agent.config import AgentConfig
from dreamer_worker.agent.decoder import Decoder
from dreamer_worker.agent.devices import shared
from dreamer_worker.agent.encoder import Encoder
from dreamer_worker.agent.heads import Chance, Number, PolicyHead
from dreamer_worker.agent.imagination import Dream, imagine, imagine_fast, noise_of
from dreamer_worker.agent.layers import Array, Init, Params
from dreamer_worker.agent.rssm import Seen, State
from dreamer_worker.agent.spaces import BOOKKEEPING, Spaces

# Of the objective, beside one for each observation, which has its name.
LOSSES = {"continue", "dynamics", "representation", "policy", "value", "replay_value"}


class Model:
    """Encoder, dynamics, decoder and heads. It holds no weights: they are passed in."""

    def __init__(self, obs_space: Spaces, act_space: Spaces, config: AgentConfig) -> None:
        self.config = config
        self.sensors = sensors_of(obs_space, config.encode)
        nets, compute = config.nets, config.compute.on(jax.default_backend())
        self.compute = compute
        self.encoder = Encoder(self.sensors, nets, compute)
        self.decoder = Decoder(self.sensors, config.rssm, nets, compute)
        self.reward = Number(nets, nets.reward_layers)
        self.carries_on = Chance(nets, nets.continue_layers)
        self.value = Number(nets, nets.value_layers)
        self.policy = PolicyHead(nets, act_space)
        self.through = config.learning.actor_gradient == "dynamics"
        if self.through and (choices := [key for key, space in act_space.items() if space.discrete]):
            raise ValueError(
                f"learning.actor_gradient=dynamics needs continuous actions; {choices[0]!r} is a choice. Use reinforce."
            )
        self.dtype = jnp.dtype(compute.dtype)
        self.fast = compute.path == "fast"
        # A hand-written kernel has no rule for being shared by devices.
        self.kernels = compute.kernels if compute.devices == 1 else "xla"

    def has_own_kernels(self, batch: int) -> bool:
        """Whether hand-written kernels are used for such a batch, or would be if this JAX had what they need."""
        if not self.fast or self.kernels == "xla":
            return False
        try:
            from dreamer_worker.agent import kernels
        except ImportError:
            return True
        return kernels.fits(self.config.rssm, batch) or self.config.nets.units <= kernels.LARGEST

    def init(self, key: Array) -> Params:
        blank = Init()
        jax.eval_shape(lambda: self._init(blank))
        return self._init(Init(Init.draw(key, blank.used)))

    def _init(self, init: Init) -> Params:
        size = self.config.rssm
        feature = size.deter + size.stoch * size.classes
        return {
            "enc": self.encoder.init(init),
            "dyn": rssm.init_rssm(init, size, self.policy.width, self.encoder.tokens),
            "dec": self.decoder.init(init),
            "rew": self.reward.init(init, feature),
            "con": self.carries_on.init(init, feature),
            "pol": self.policy.init(init, feature),
            "val": self.value.init(init, feature),
        }

    @jax.named_scope("observe")
    def observe(self, p: Params, state: State, actions: dict[str, Array], obs: dict[str, Array], gumbel: Array) -> Seen:
        """A sequence seen, time on axis 0; `actions[t]` led to `obs[t]`."""
        tokens = self.encoder(p["enc"], obs)
        encoded = self.policy.encode(actions, self.dtype.name)
        args = (self.config.rssm, p["dyn"], state, encoded, tokens, obs["is_first"], gumbel)
        if self.fast:
            seen = observation.observe(*args, unroll=self.compute.observe_unroll, kernels=self.kernels)
        else:
            seen = rssm.observe(*args)
        shares: Seen = jax.tree.map(lambda x: shared(x, axis=1), seen)
        return shares

    @jax.named_scope("imagine")
    def imagine(self, p: Params, start: State, key: Array, steps: int) -> Dream:
        """`steps` steps of acting in the model. No gradient leaves it."""
        p, start = jax.lax.stop_gradient((p, start))
        size = self.config.rssm
        noise = noise_of(size, self.policy, key, steps, len(start.deter))
        if self.fast:
            return imagine_fast(size, self.policy, p, start, noise, self.compute.imagine_unroll, self.kernels)
        return imagine(size, self.policy, p, start, noise)

    @jax.named_scope("imagine")
    def imagine_through(self, p: Params, start: State, key: Array, steps: int) -> Dream:
        """As `imagine`; the gradients of its states reach the policy's weights, and no others."""
        start, size = jax.lax.stop_gradient(start), self.config.rssm
        noise = noise_of(size, self.policy, key, steps, len(start.deter))
        return imagine(size, self.policy, {**jax.lax.stop_gradient(p), "pol": p["pol"]}, start, noise)

    def predict_next(self, p: Params, state: State, actions: dict[str, Array], gumbel: Array) -> State:
        """The next state, drawn from the prior."""
        size, encoded = self.config.rssm, self.policy.encode(actions, self.dtype.name)
        if self.fast:
            deter = observation.advance(size, p["dyn"], state, encoded)
        else:
            deter = rssm.advance(size, p["dyn"], state, encoded)
        return State(deter, rssm.draw(size, rssm.prior(p["dyn"], deter), gumbel))


def sensors_of(obs_space: Spaces, pattern: str) -> Spaces:
    """The parts of an observation that the agent encodes: neither bookkeeping nor keys meant for the log."""
    names = [key for key in obs_space if key not in BOOKKEEPING and not key.startswith("log/")]
    kept = {key: obs_space[key] for key in sorted(names) if re.fullmatch(pattern, key)}
    if not kept:
        raise ValueError(f"encode={pattern!r} matches none of the observations {sorted(names)}.")
    if taken := sorted(LOSSES & kept.keys()):
        raise ValueError(
            f"An observation must not have the name of one of the agent's losses, {taken[0]!r}. Rename it."
        )
    return kept
