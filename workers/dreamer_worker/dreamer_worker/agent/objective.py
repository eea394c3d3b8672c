"""What one update minimises: the world model's errors, the policy's and the value's, in one sum."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dreamer_worker.agent import rssm
from dreamer_worker.agent.devices import shared
from dreamer_worker.agent.distributions import TwoHot
from dreamer_worker.agent.heads import entropy, log_prob
from dreamer_worker.agent.layers import Array, Params, cast
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.returns import ReturnScale, lambda_returns
from dreamer_worker.agent.rssm import Seen, State

still = jax.lax.stop_gradient


class Batch(NamedTuple):
    """Replayed steps, time on axis 0, and the state and action before each sequence's first step."""

    obs: dict[str, Array]
    actions: dict[str, Array]  # the one that led to each step
    state: State


class Result(NamedTuple):
    seen: Seen
    scale: ReturnScale
    priority: Array
    metrics: dict[str, Array]


def objective(
    model: Model, params: Params, slow: Params, scale: ReturnScale, batch: Batch, key: Array
) -> tuple[Array, Result]:
    """The sum to minimise, and the intermediate results."""
    # Rounded once, here; norms and losses work in float32.
    p, slow = cast(params, model.dtype), cast(slow, model.dtype)
    observe_key, imagine_key = jax.random.split(key)
    seen, losses, metrics = _world_losses(model, p, batch, observe_key)
    priority = jnp.stack(list(losses.values())).sum(0)
    acting, returns, scale, stats = _behaviour_losses(model, p, slow, scale, seen.state, imagine_key)
    replayed = _replay_value_loss(model, p, slow, batch.obs, seen.state, returns)
    losses = {**losses, **acting, "replay_value": replayed}
    scales = _scales(model)
    total = sum(scales.get(name, scales["reconstruction"]) * loss.mean() for name, loss in losses.items())
    metrics |= stats | {f"loss/{name}": loss.mean() for name, loss in losses.items()}
    return jnp.asarray(total), Result(seen, scale, still(priority), metrics)


def _scales(model: Model) -> dict[str, float]:
    learning = model.config.learning
    names = "reconstruction reward continue dynamics representation policy value replay_value"
    return {name: getattr(learning, f"scale_{name}") for name in names.split()}


@jax.named_scope("world")
def _world_losses(model: Model, p: Params, batch: Batch, key: Array) -> tuple[Seen, dict[str, Array], dict[str, Array]]:
    size, obs, learning = model.config.rssm, batch.obs, model.config.learning
    gumbel = jax.random.gumbel(key, (*obs["is_first"].shape, size.stoch, size.classes))
    seen = model.observe(p, batch.state, batch.actions, obs, gumbel)
    expected = rssm.prior(p["dyn"], seen.state.deter)
    dynamics, representation = rssm.kl_losses(size, seen.posterior, expected)
    found = model.decoder(p["dec"], seen.state.deter, seen.state.stoch)
    feature = seen.state.feature
    goes_on = 1.0 - obs["is_terminal"].astype(jnp.float32)
    if learning.continue_carries_discount:
        goes_on *= 1 - 1 / learning.horizon
    logit = model.carries_on(p["con"], feature)
    losses = {
        **model.decoder.losses(found, obs),
        "reward": model.reward(p["rew"], feature).loss(obs["reward"]),
        "continue": -(goes_on * jax.nn.log_sigmoid(logit) + (1 - goes_on) * jax.nn.log_sigmoid(-logit)),
        "dynamics": dynamics,
        "representation": representation,
    }
    metrics = {
        "entropy/prior": rssm.distribution(size, expected).entropy().mean(),
        "entropy/posterior": rssm.distribution(size, seen.posterior).entropy().mean(),
    }
    return seen, losses, metrics


@jax.named_scope("behaviour")
def _behaviour_losses(
    model: Model, p: Params, slow: Params, scale: ReturnScale, state: State, key: Array
) -> tuple[dict[str, Array], Array, ReturnScale, dict[str, Array]]:
    """Losses of policy and value in the dream; the returns of its first states, shaped as `state`; the new scale."""
    learning = model.config.learning
    start = State(*(shared(x.reshape(-1, x.shape[-1])) for x in state))
    dream = (model.imagine_through if model.through else model.imagine)(p, start, key, learning.imagined_steps)
    frozen, feature = still(p), still(dream.feature)
    value = model.value(p["val"], feature)
    lived = dream.feature if model.through else feature
    values = model.value(frozen["val"], lived).pred() if model.through else still(value.pred())
    reward = model.reward(frozen["rew"], lived).pred()
    goes_on = jax.nn.sigmoid(model.carries_on(frozen["con"], lived))
    discount = 1.0 if learning.continue_carries_discount else 1 - 1 / learning.horizon
    returns = lambda_returns(reward, discount * goes_on, values, learning.lam)
    weight = still(jnp.cumprod(discount * goes_on, 0) / discount)[:-1]
    scale = scale.updated(still(returns), learning)
    advantage = (returns - values[:-1]) / scale.divisor(learning)
    policy = model.policy(p["pol"], feature)
    surprise = entropy(policy)[:-1]
    # The last state's value closes the return; nothing was done in it. Results are cheaper to cut than features.
    actions = {key: jnp.concatenate([x, x[-1:]]) for key, x in dream.actions.items()}
    chosen = log_prob(policy, actions)[:-1]
    slow_value = model.value(slow, feature)
    ends = still(jnp.concatenate([returns, values[-1:]]))
    losses = {
        "policy": -weight * ((advantage if model.through else chosen * still(advantage)) + learning.entropy * surprise),
        "value": weight * _value_loss(model, value, ends, slow_value)[:-1],
    }
    metrics = {
        "entropy/policy": surprise.mean(),
        "dream/reward": reward.mean(),
        "dream/continue": goes_on.mean(),
        "dream/value": values.mean(),
        "dream/return": returns.mean(),
        "dream/return_scale": scale.divisor(learning),
        "dream/advantage": advantage.mean(),
        "dream/advantage_size": jnp.abs(advantage).mean(),
    }
    return losses, still(returns[0]).reshape(state.deter.shape[:-1]), scale, metrics


@jax.named_scope("replay_value")
def _replay_value_loss(
    model: Model, p: Params, slow: Params, obs: dict[str, Array], state: State, boot: Array
) -> Array:
    """The value of replayed states, whose gradient also shapes the world model."""
    learning = model.config.learning
    last, terminal = (obs[key].astype(jnp.float32) for key in ("is_last", "is_terminal"))
    live = (1 - 1 / learning.horizon) * (1 - terminal)
    returns = lambda_returns(obs["reward"].astype(jnp.float32), live, boot, learning.lam * (1 - last))
    feature = state.feature[:-1]
    loss = _value_loss(model, model.value(p["val"], feature), returns, model.value(slow, still(feature)))
    return (1 - last[:-1]) * loss


def _value_loss(model: Model, value: TwoHot, returns: Array, slow: TwoHot) -> Array:
    """Towards the return, and not too fast away from the slow copy."""
    return value.loss(still(returns)) + model.config.learning.slow_weight * value.loss(still(slow.pred()))
