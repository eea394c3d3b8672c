"""The agent's parts, each compared with the simplest implementation."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dreamer_worker.agent import convolutions, imagination, observation, optimizer, rssm
from dreamer_worker.agent.config import SIZES, AgentConfig, Learning, Nets, Optimizer, Rssm
from dreamer_worker.agent.distributions import Categorical, Normal, TwoHot, bins_of, symexp, symlog
from dreamer_worker.agent.heads import PolicyHead
from dreamer_worker.agent.layers import Init, count
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.objective import _behaviour_losses, _replay_value_loss
from dreamer_worker.agent.optimizer import Moments
from dreamer_worker.agent.returns import ReturnScale, lambda_returns, percentiles
from dreamer_worker.agent.rssm import State
from dreamer_worker.agent.spaces import Space

pytestmark = pytest.mark.timeout(600)  # compiling on a busy machine
jax.config.update("jax_disable_most_optimizations", True)

FLAGS = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
CRAFTER = {"image": Space("uint8", (64, 64, 3)), "reward": Space("float32"), **FLAGS}
SMALL = Rssm(deter=16, hidden=6, stoch=3, classes=4, blocks=4)


def close(found, wanted, limit=1e-5):
    """Every array of the tree, by relative distance."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        distance = np.linalg.norm(np.ravel(one) - np.ravel(other))
        assert distance <= limit * (1e-6 + np.linalg.norm(np.ravel(other)))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("size", "parameters"),
    [
        ("1m", 687_875),
        ("12m", 10_498_259),
        ("25m", 23_495_475),
        ("50m", 41_658_259),
        ("100m", 93_480_531),
        ("200m", 165_965_075),
        ("400m", 372_920_979),
    ],
)
def test_a_size_has_exactly_the_references_parameters(size, parameters):
    model = Model(CRAFTER, {"action": Space("int32", (), 0, 17)}, AgentConfig.preset(size))

    shapes = jax.eval_shape(model.init, jax.random.key(0))

    assert count(shapes) == parameters


def test_the_smallest_size_is_split_as_in_the_reference():
    model = Model(CRAFTER, {"action": Space("int32", (), 0, 17)}, AgentConfig.preset("1m"))

    shapes = jax.eval_shape(model.init, jax.random.key(0))

    wanted = {"dyn": 377_408, "dec": 80_595, "val": 66_111, "rew": 57_663, "pol": 50_641, "con": 41_153, "enc": 14_304}
    assert {name: count(part) for name, part in shapes.items()} == wanted


def test_symexp_undoes_symlog(rng):
    x = rng.standard_normal(100).astype(np.float32) * 1000

    np.testing.assert_allclose(symexp(symlog(x)), x, rtol=1e-4)


def test_bins_are_symmetric_and_hold_zero():
    bins = bins_of(255)

    assert len(bins) == 255
    assert bins[127] == 0
    np.testing.assert_array_equal(bins, -bins[::-1])
    assert bins[-1] == pytest.approx(math.exp(20) - 1, rel=1e-5)


def test_a_head_of_zeros_predicts_exactly_zero():
    assert float(TwoHot(jnp.zeros(255), bins_of(255)).pred()) == 0.0


@pytest.mark.parametrize("target", [0.0, 1.0, -3.7, 1234.5, 1e6, float(bins_of(255)[200])])
def test_two_hot_weights_have_the_target_as_their_mean(target):
    bins = bins_of(255)

    weights = np.asarray(TwoHot(jnp.zeros(255), bins).weights(jnp.asarray(target)), np.float64)

    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).sum() <= 2
    assert (weights * bins).sum() == pytest.approx(target, rel=1e-4, abs=1e-4)


def test_targets_beyond_the_bins_go_to_the_last_one():
    weights = TwoHot(jnp.zeros(255), bins_of(255)).weights(jnp.asarray([-1e30, 1e30]))

    assert weights[0, 0] == 1
    assert weights[1, -1] == 1


def test_unimix_leaves_no_class_impossible():
    logits = jnp.asarray([100.0, 0.0, 0.0, 0.0])

    mixed, bare = Categorical.mixed(logits, 0.01), Categorical.mixed(logits, 0.0)

    np.testing.assert_allclose(mixed.probs, [0.9925, 0.0025, 0.0025, 0.0025], rtol=1e-3)
    assert bare.probs[1] < 1e-20


def test_the_entropy_and_divergence_of_categories_are_correct(rng):
    p, q = (Categorical.mixed(jnp.asarray(rng.standard_normal((2, 3, 4))), 0.01, event=1) for _ in range(2))

    pp, qq = np.asarray(p.probs), np.asarray(q.probs)

    np.testing.assert_allclose(p.entropy(), -(pp * np.log(pp)).sum((-2, -1)), rtol=1e-5)
    np.testing.assert_allclose(p.kl(q), (pp * np.log(pp / qq)).sum((-2, -1)), rtol=1e-4)
    assert p.kl(p).max() < 1e-6


def test_the_policys_unimix_has_an_effect_and_a_switch():
    space = {"action": Space("int32", (), 0, 4)}
    for unimix, least in ((0.01, 0.0025), (0.0, 0.0)):
        head = PolicyHead(Nets(units=4, policy_layers=1, policy_unimix=unimix), space)
        params = head.init(Init(), 3)
        params["logits/action"]["bias"] = jnp.asarray([50.0, 0.0, 0.0, 0.0])

        probs = head(params, jnp.zeros((1, 3)))["action"].probs

        assert float(probs.min()) == pytest.approx(least, abs=1e-6)


def test_the_density_and_entropy_of_a_normal_are_correct(rng):
    mean, x = rng.standard_normal((2, 5, 3))
    std = rng.uniform(0.1, 1, (5, 3))

    normal = Normal(jnp.asarray(mean), jnp.asarray(std), event=1)

    density = np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(normal.log_prob(jnp.asarray(x)), np.log(density).sum(-1), rtol=1e-4)
    np.testing.assert_allclose(normal.entropy(), (np.log(std) + 0.5 * np.log(2 * np.pi * np.e)).sum(-1), rtol=1e-4)


@pytest.mark.parametrize("steps", [2, 9, 40])  # a short recurrence is computed otherwise than a long one
def test_lambda_returns_equal_the_recursion_written_out(rng, steps):
    reward, boot = rng.standard_normal((2, steps, 4))
    live, lam = rng.random((2, steps, 4)) < 0.8

    found = lambda_returns(*(jnp.asarray(x, jnp.float32) for x in (reward, live, boot)), jnp.asarray(0.95 * lam))

    wanted, after = [], boot[-1]
    for t in reversed(range(steps - 1)):
        mixed = (1 - 0.95 * lam[t + 1]) * boot[t + 1] + 0.95 * lam[t + 1] * after
        after = reward[t + 1] + live[t + 1] * mixed
        wanted.insert(0, after)
    np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-5, atol=1e-6)


def test_the_return_scale_follows_percentiles_and_never_falls_below_its_limit(rng):
    learning, returns = Learning(return_rate=0.1), rng.standard_normal(1000) * 100

    scale = ReturnScale.initial()
    assert float(scale.divisor(learning)) == 1.0
    for _ in range(3):
        scale = scale.updated(jnp.asarray(returns), learning)

    span = np.percentile(returns, 95) - np.percentile(returns, 5)
    assert float(scale.divisor(learning)) == pytest.approx(span * (1 - 0.9**3), rel=1e-4)
    debiased = Learning(return_rate=0.1, return_debias=True)
    assert float(scale.divisor(debiased)) == pytest.approx(span, rel=1e-4)


@pytest.mark.parametrize("count", [1, 15, 768, 15360])
def test_percentiles_are_those_of_numpy(rng, count):
    x = rng.standard_normal(count).astype(np.float32)

    found = percentiles(jnp.asarray(x).reshape(-1, 1), [5.0, 95.0])

    np.testing.assert_allclose(found, np.percentile(x, [5, 95]), rtol=1e-6)
    x[count // 2] = np.nan
    assert np.isnan(percentiles(jnp.asarray(x), [5.0, 95.0])).all()


def test_the_optimizer_is_laprop_after_clipping(rng, monkeypatch):
    """Each array for itself: small ones share a table, of which they fill one row or several, and large ones do not."""
    monkeypatch.setattr(optimizer, "SMALL", 300)
    opt = Optimizer(lr=0.01, warmup=2, agc=0.3, smallest_norm=1e-3)
    shapes = {"bias": (3,), "few": (4, 3), "row": (128,), "rows": (20, 13), "large": (20, 20)}
    given = {name: (rng.standard_normal(shape), rng.standard_normal((5, *shape)) * 3) for name, shape in shapes.items()}

    params = {name: jnp.asarray(param, jnp.float32) for name, (param, _) in given.items()}
    moments = Moments.initial(params)
    for t in range(5):
        some = {name: jnp.asarray(grads[t], jnp.float32) for name, (_, grads) in given.items()}
        params, moments, stats = optimizer.step(opt, params, some, moments)

    for name, (param, grads) in given.items():
        np.testing.assert_allclose(params[name], laprop(param, grads), rtol=1e-4, atol=1e-6, err_msg=name)
    norm = math.sqrt(sum(np.square(grads[-1]).sum() for _, grads in given.values()))
    assert float(stats["opt/grad_norm"]) == pytest.approx(norm, rel=1e-5)


def laprop(param, grads):
    mean = square = np.zeros_like(param)
    for t, grad in enumerate(grads, 1):
        grad = grad / max(1, np.linalg.norm(grad) / (0.3 * max(1e-3, np.linalg.norm(param))))
        square = 0.999 * square + 0.001 * grad**2
        mean = 0.9 * mean + 0.1 * grad / (np.sqrt(square / (1 - 0.999**t)) + 1e-20)
        param = param - 0.01 * min(1, (t - 1) / 2) * mean / (1 - 0.9**t)
    return param


@pytest.mark.parametrize("channels", [(3, 8), (4, 6)])
def test_convolutions_by_phase_equal_the_plain_ones_with_their_gradients(rng, channels):
    x = jnp.asarray(rng.standard_normal((2, 8, 6, channels[0])), jnp.float32)
    p = {"kernel": rng.standard_normal((5, 5, *channels)), "bias": rng.standard_normal(channels[1])}
    p = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), p)

    for plain, fast in (
        (convolutions.upsampled, convolutions.upsampled_by_phase),
        (convolutions.pooled, convolutions.pooled_by_phase),
    ):
        wanted, back = jax.vjp(plain, p, x)
        found, fast_back = jax.vjp(fast, p, x)
        close(found, wanted)
        gradient = jnp.asarray(rng.standard_normal(wanted.shape), jnp.float32)
        close(fast_back(gradient), back(gradient))


def test_among_equal_inputs_the_first_gets_the_gradient_of_pooling():
    x = jnp.asarray([[1.0, 5.0], [3.0, 5.0], [3.0, 5.0], [2.0, 5.0]])

    found, back = jax.vjp(convolutions.largest, x)

    np.testing.assert_array_equal(found, [3, 5])
    np.testing.assert_array_equal(back(jnp.asarray([10.0, 20.0]))[0], [[0, 20], [10, 0], [0, 0], [0, 0]])


def world(rng):
    """Weights of a small dynamics, noisy enough that every one matters."""
    blank = Init()
    jax.eval_shape(lambda: rssm.init_rssm(blank, SMALL, 2, 7))
    params = rssm.init_rssm(Init(Init.draw(jax.random.key(0), blank.used)), SMALL, 2, 7)
    return jax.tree.map(lambda x: x + 0.2 * rng.standard_normal(x.shape).astype(np.float32), params)


def some_state(rng, batch):
    stoch = np.eye(4, dtype=np.float32)[rng.integers(0, 4, (batch, 3))].reshape(batch, 12)
    return State(jnp.asarray(0.5 * rng.standard_normal((batch, 16)), jnp.float32), jnp.asarray(stoch))


def test_the_fast_observed_scan_equals_the_plain_one_with_all_gradients(rng):
    params, state = world(rng), some_state(rng, 3)
    actions, tokens = (jnp.asarray(rng.standard_normal((5, 3, n)), jnp.float32) for n in (2, 7))
    first, gumbel = rng.random((5, 3)) < 0.3, jnp.asarray(rng.gumbel(size=(5, 3, 3, 4)), jnp.float32)
    aims = [jnp.asarray(rng.standard_normal((5, 3, n)), jnp.float32) for n in (16, 12, 12)]

    def loss(observe, params, state, actions, tokens):
        seen = observe(SMALL, params, state, actions, tokens, first, gumbel)
        parts = (*seen.state, seen.posterior)
        return sum((part * aim).sum() for part, aim in zip(parts, aims, strict=True)), seen

    def found(observe):
        graded = jax.jit(jax.value_and_grad(loss, argnums=(1, 2, 3, 4), has_aux=True), static_argnums=0)
        return graded(observe, params, state, actions, tokens)

    close(found(observation.observe), found(rssm.observe))


def test_the_fast_dream_equals_the_plain_one(rng):
    head = PolicyHead(Nets(units=5, policy_layers=2), {"a": Space("int32", (), 0, 2)})
    blank = Init()
    head.init(blank, 28)
    params = {"dyn": world(rng), "pol": head.init(Init(Init.draw(jax.random.key(1), blank.used)), 28)}
    start = some_state(rng, 6)
    noise = imagination.noise_of(SMALL, head, jax.random.key(2), 4, 6)

    plain = jax.jit(lambda p: imagination.imagine(SMALL, head, p, start, noise))(params)
    fast = jax.jit(lambda p: imagination.imagine_fast(SMALL, head, p, start, noise, 2))(params)

    close(fast, plain)


def test_the_divergence_is_free_up_to_a_nat_and_pulls_each_side_by_its_own_loss(rng):
    size = Rssm(stoch=3, classes=4, free_nats=1.0)
    near, far, prior = (jnp.asarray(rng.standard_normal(12) * scale, jnp.float32) for scale in (0.1, 5.0, 0.1))

    for posterior, is_free in ((near, True), (far, False)):
        dynamics, representation = rssm.kl_losses(size, posterior, prior)
        slopes = [jax.grad(lambda q, p, i=i: rssm.kl_losses(size, q, p)[i], (0, 1))(posterior, prior) for i in (0, 1)]

        assert float(dynamics) == float(representation)
        assert (float(dynamics) == 1.0) == is_free
        moves = [[bool(np.any(side)) for side in slope] for slope in slopes]
        assert moves == ([[False, False]] * 2 if is_free else [[False, True], [True, False]])


def small_model(rng, **learning):
    """A model whose weights are all far from zero, another critic, and some states."""
    spaces = {"speed": Space("float32", (3,)), "reward": Space("float32"), **FLAGS}
    config = AgentConfig.preset("debug", learning=learning, nets={"bins": 41}, compute={"dtype": "float32"})
    model = Model(spaces, {"turn": Space("int32", (), 0, 3), "push": Space("float32", (2,), -1, 1)}, config)
    params, other = (
        jax.tree.map(lambda x: x + 0.3 * rng.standard_normal(x.shape).astype(np.float32), model.init(jax.random.key(0)))
        for _ in range(2)
    )
    stoch = np.eye(4, dtype=np.float32)[rng.integers(0, 4, (5, 6, 2))].reshape(5, 6, 8)
    return model, params, other["val"], State(jnp.asarray(np.tanh(rng.standard_normal((5, 6, 8))), jnp.float32), stoch)


@pytest.mark.parametrize("discount", [1.0, 1 - 1 / 333])
def test_the_losses_of_policy_and_value_are_those_of_the_dream_written_out(rng, discount):
    model, p, slow, state = small_model(rng, imagined_steps=4, entropy=0.1, continue_carries_discount=discount == 1)
    key, before = jax.random.key(7), ReturnScale(jnp.asarray(-30.0), jnp.asarray(40.0), jnp.asarray(9))

    losses, first, after, _ = jax.jit(partial(_behaviour_losses, model))(p, slow, before, state, key)

    flat = State(*(x.reshape(30, -1) for x in state))
    dream = model.imagine(p, flat, key, 4)
    value, feature = model.value(p["val"], dream.feature), dream.feature
    reward, v = np.asarray(model.reward(p["rew"], feature).pred()), np.asarray(value.pred())
    c = 1 / (1 + np.exp(-np.asarray(model.carries_on(p["con"], feature))))
    returns, later = np.zeros((4, 30)), v[4]
    for t in (3, 2, 1, 0):
        returns[t] = later = reward[t + 1] + discount * c[t + 1] * (0.05 * v[t + 1] + 0.95 * later)
    low, high = 0.99 * -30 + 0.01 * np.percentile(returns, 5), 0.99 * 40 + 0.01 * np.percentile(returns, 95)
    advantage = (returns - v[:4]) / max(1, high - low)
    weight = (np.cumprod(discount * c, 0) / discount)[:4]
    policy = model.policy(p["pol"], feature[:4])
    log_prob, entropy = (
        sum(np.asarray(f(k)) for k in policy)
        for f in (lambda k: policy[k].log_prob(dream.actions[k]), lambda k: policy[k].entropy())
    )
    online, kept = TwoHot(value.logits[:4], value.bins), model.value(slow, feature[:4]).pred()
    np.testing.assert_allclose(losses["policy"], -weight * (log_prob * advantage + 0.1 * entropy), rtol=1e-3, atol=1e-5)
    wanted = weight * np.asarray(online.loss(jnp.asarray(returns, jnp.float32)) + online.loss(kept))
    np.testing.assert_allclose(losses["value"], wanted, rtol=1e-3)
    np.testing.assert_allclose(first, returns[0].reshape(5, 6), rtol=1e-3)
    np.testing.assert_allclose([after.low, after.high], [low, high], rtol=1e-4)


def test_the_value_of_replayed_states_begins_with_what_was_seen_and_ends_in_the_dream(rng):
    model, p, slow, state = small_model(rng)
    obs = {"reward": rng.standard_normal((5, 6)), "is_terminal": rng.random((5, 6)) < 0.2}
    obs["is_last"] = obs["is_terminal"] | (rng.random((5, 6)) < 0.2)
    boot = rng.standard_normal((5, 6))

    found = jax.jit(partial(_replay_value_loss, model))(
        p, slow, jax.tree.map(jnp.asarray, obs), state, jnp.asarray(boot)
    )

    returns, later = np.zeros((4, 6)), boot[4]
    for t in (3, 2, 1, 0):
        lam = 0.95 * ~obs["is_last"][t + 1]
        later = (1 - lam) * boot[t + 1] + lam * later
        returns[t] = later = obs["reward"][t + 1] + (1 - 1 / 333) * ~obs["is_terminal"][t + 1] * later
    value = model.value(p["val"], state.feature[:4])
    wanted = np.asarray(value.loss(jnp.asarray(returns)) + value.loss(model.value(slow, state.feature[:4]).pred()))
    np.testing.assert_allclose(found, wanted * ~obs["is_last"][:4], rtol=1e-3, atol=1e-6)


def test_a_config_survives_being_a_plain_dict():
    config = AgentConfig.preset("12m", nets={"bins": 41}, seed=3)

    assert AgentConfig.from_dict(config.to_dict()) == config
    assert AgentConfig.from_dict({"size": "12m", "nets": {"bins": 41}, "seed": 3}) == config


def test_a_suite_sets_its_size_and_what_it_encodes():
    config = AgentConfig.from_dict({"suite": "dmc_proprio"})

    assert config.rssm.deter == SIZES["1m"]["rssm"]["deter"]
    assert config.encode == "(?!image$).*"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"nets": {"bin": 3}}, "Nets has no bin"),
        ({"sized": "1m"}, "AgentConfig has no sized"),
        ({"size": "2m"}, "There is no size '2m'"),
        ({"suite": "doom"}, "There is no suite 'doom'"),
        ({"compute": {"dtype": "float16"}}, "choose bfloat16 or float32"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused_by_name(settings, text):
    with pytest.raises(ValueError, match=text):
        AgentConfig.from_dict(settings)


def test_a_space_survives_being_a_plain_dict_and_draws_within_its_bounds(rng):
    for space in (Space("int32", (2,), 0, 5), Space("float32", (3,), -1, 1), Space("uint8", (4, 4, 3)), Space("bool")):
        drawn = space.sample(rng, 100)

        assert Space.from_dict(space.to_dict()) == space
        assert drawn.dtype == space.dtype
        assert drawn.shape == (100, *space.shape)
        assert space.low is None or drawn.min() >= space.low


def test_a_discrete_space_without_bounds_is_refused():
    with pytest.raises(ValueError, match="needs bounds"):
        Space("int32")
