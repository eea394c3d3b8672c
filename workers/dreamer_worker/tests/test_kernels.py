"""The hand-written kernels, interpreted on the CPU, beside the compiler's."""

import logging
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dreamer_worker.agent import Space, make_agent, observation, rssm
from dreamer_worker.agent.config import AgentConfig, Compute, Nets, Rssm
from dreamer_worker.agent.heads import PolicyHead
from dreamer_worker.agent.imagination import imagine_fast, noise_of
from dreamer_worker.agent.layers import Init, kernels_by, mlp
from dreamer_worker.agent.observation import Carried, Given, Weights
from dreamer_worker.agent.rssm import State

pytestmark = pytest.mark.timeout(900)  # compiling on a busy machine
kernels = pytest.importorskip("dreamer_worker.agent.kernels")
small_dream = pytest.importorskip("dreamer_worker.agent.small_dream")
small_layers = pytest.importorskip("dreamer_worker.agent.small_layers")
small_scan = pytest.importorskip("dreamer_worker.agent.small_scan")

SMALL = Rssm(deter=64, hidden=16, stoch=4, classes=4, blocks=4)
BATCH, LENGTH = 16, 3


def some_inputs(rng):
    blocks, width, hidden, size = SMALL.blocks, SMALL.deter // SMALL.blocks, SMALL.hidden, SMALL.stoch * SMALL.classes

    def some(*shape, scale=0.3, about=0.0):
        return jnp.asarray(about + scale * rng.standard_normal(shape), jnp.float32)

    weights = Weights(
        some(size, hidden), some(2, 1, hidden), some(2, 1, hidden, about=1), some(blocks, width + 2 * hidden, width),
        some(blocks, 1, width, about=1), some(blocks, width, 3 * width), some(blocks, 1, 3 * width),
        some(blocks, width, 2 * hidden), some(hidden, about=1), some(hidden, size), some(size),
    )  # fmt: skip
    drawn = rng.integers(0, SMALL.classes, (BATCH, SMALL.stoch))
    stoch = jax.nn.one_hot(drawn, SMALL.classes, dtype=jnp.float32).reshape(BATCH, size)
    given = Given(
        some(LENGTH, blocks, BATCH, width),
        some(LENGTH, BATCH, hidden),
        jnp.asarray(rng.random((LENGTH, BATCH, 1)) > 0.2, jnp.float32),
        jnp.asarray(rng.gumbel(size=(LENGTH, BATCH, SMALL.stoch, SMALL.classes)), jnp.float32),
    )
    aims = some(LENGTH, blocks, BATCH, width, scale=1), some(LENGTH, BATCH, size, scale=1)
    return (weights, Carried(some(blocks, BATCH, width), stoch, some(BATCH, hidden)), given), aims


def test_hand_written_kernels_equal_the_compilers_with_all_gradients():
    args, aims = some_inputs(np.random.default_rng(0))

    def loss(kind, *args):
        found = observation._scan(SMALL, 1, kind, *args)
        return sum((one * aim).sum() for one, aim in zip(found, aims, strict=True)), found

    def graded(kind):
        return jax.jit(jax.value_and_grad(partial(loss, kind), argnums=(0, 1, 2), has_aux=True))(*args)

    found, wanted = graded("interpreted"), graded("xla")

    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        distance = np.linalg.norm(np.ravel(one) - np.ravel(other))
        assert distance <= 1e-5 * (1e-6 + np.linalg.norm(np.ravel(other)))


def test_the_hand_written_dream_equals_the_compilers():
    rng = np.random.default_rng(0)
    head = PolicyHead(Nets(units=SMALL.hidden), {"steer": Space("float32", (3,), -1, 1)})
    start, steps, count = rssm.initial(SMALL, 32, jnp.float32), 3, 32
    params = {"dyn": rssm.init_rssm(draws(rng), SMALL, 3, 5), "pol": head.init(draws(rng), 80)}
    params = jax.tree.map(lambda x: x + 0.1 * jnp.asarray(rng.standard_normal(x.shape), jnp.float32), params)
    stoch = jax.nn.one_hot(rng.integers(0, SMALL.classes, (count, SMALL.stoch)), SMALL.classes).reshape(count, -1)
    start = State(jnp.asarray(rng.standard_normal(start.deter.shape), jnp.float32), stoch)
    noise = noise_of(SMALL, head, jax.random.key(1), steps, count)

    assert small_dream.fits(SMALL, head, count)
    found, wanted = (
        jax.jit(lambda p, kind=kind: imagine_fast(SMALL, head, p, start, noise, 1, kind))(params)
        for kind in ("interpreted", "xla")
    )

    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [(3, 16), (64, 128), (7, 16)])
@pytest.mark.parametrize("layers", [1, 3])
def test_hand_written_layers_equal_the_compilers_with_all_gradients(layers, count):
    rng = np.random.default_rng(0)
    params = jax.tree.map(
        lambda x: x + 0.1 * jnp.asarray(rng.standard_normal(x.shape), jnp.float32), draws(rng).mlp(20, 32, layers)
    )
    x, aim = (jnp.asarray(rng.standard_normal((*count, width)), jnp.float32) for width in (20, 32))

    def loss(kind, params, x):
        with kernels_by(kind):
            found = mlp(params, x)
        return (found * aim).sum(), found

    def graded(kind):
        (_, out), gradients = jax.jit(jax.value_and_grad(partial(loss, kind), argnums=(0, 1), has_aux=True))(params, x)
        return out, gradients

    found, wanted = graded("interpreted"), graded("xla")

    assert small_layers.fits(count[0] * count[1], 32)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.linalg.norm(np.ravel(one) - np.ravel(other)) <= 1e-5 * (1e-6 + np.linalg.norm(np.ravel(other)))


@pytest.mark.parametrize(
    ("rows", "units", "fits"), [(1024, 64, True), (16, 16, True), (1020, 64, False), (1024, 48, False),
                                (1024, 8, False), (1024, 256, False)],
)  # fmt: skip
def test_only_small_layers_of_whole_blocks_of_rows_use_them(rows, units, fits):
    assert small_layers.fits(rows, units) is fits


def draws(rng):
    return Init(jnp.asarray(rng.standard_normal(100_000), jnp.float32))


@pytest.mark.parametrize(
    ("space", "count", "fits"),
    [
        ({"steer": Space("float32", (6,), -1, 1)}, 1024, True),
        ({"steer": Space("float32", (6,), -1, 1)}, 1020, False),
        ({"steer": Space("float32", (17,), -1, 1)}, 1024, False),
        ({"press": Space("int32", (), 0, 17)}, 1024, False),
        ({"steer": Space("float32", (2,), -1, 1), "press": Space("int32", (), 0, 3)}, 1024, False),
    ],
)
def test_only_one_continuous_action_is_dreamed_by_hand(space, count, fits):
    config = AgentConfig.preset("1m")
    assert small_dream.fits(config.rssm, PolicyHead(config.nets, space), count) is fits


@pytest.mark.parametrize(
    ("size", "batch", "fits"), [("1m", 16, True), ("1m", 32, True), ("1m", 12, False), ("1m", 8, False),
                                ("12m", 16, False), ("200m", 16, False)],
)  # fmt: skip
def test_only_small_sizes_that_suit_the_tensor_cores_use_them(size, batch, fits):
    assert kernels.fits(AgentConfig.preset(size).rssm, batch) is fits


def test_only_a_gpu_uses_them_by_default():
    assert Compute(kernels="auto").on("gpu").kernels == "triton"
    assert Compute(kernels="auto").on("cpu").kernels == "xla"
    assert Compute(kernels="auto").on("tpu").kernels == "xla"
    with pytest.raises(ValueError, match="choose auto, xla, triton or interpreted"):
        Compute(kernels="cuda")


def small_agent():
    flags = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
    obs = {"place": Space("float32", (3,)), "reward": Space("float32"), **flags}
    act = {"steer": Space("float32", (2,), -1, 1)}
    small = {
        "rssm": {"deter": 64, "hidden": 16, "stoch": 4, "classes": 4, "blocks": 4},
        "learning": {"imagined_steps": 2},
    }
    agent = make_agent(obs, act, {"size": "debug", **small, "compute": {"dtype": "float32", "kernels": "interpreted"}})
    rng = np.random.default_rng(0)
    return agent, {key: space.sample(rng, BATCH, 4) for key, space in {**obs, **act, **agent.ext_space}.items()}


def test_kernels_that_do_not_compile_are_replaced_and_it_is_said(monkeypatch, caplog):
    agent, data = small_agent()

    def broken(*args, **options):
        raise NotImplementedError("no such instruction")

    monkeypatch.setattr(small_scan, "scan_forward", broken)
    with caplog.at_level(logging.WARNING):
        _, _, metrics = agent.train(agent.init_train(BATCH), data)

    assert np.isfinite(metrics["loss/total"])
    assert "The hand-written kernels cannot be used here" in caplog.text
    assert "no such instruction" in caplog.text


def test_compiler_options_that_are_not_known_are_left_out_and_it_is_said(caplog):
    agent, data = small_agent()
    agent._options = {"xla_of_another_version": "1"}
    agent._compile()

    with caplog.at_level(logging.WARNING):
        _, _, metrics = agent.train(agent.init_train(BATCH), data)

    assert np.isfinite(metrics["loss/total"])
    assert "does not know the compiler's options" in caplog.text
    assert "xla_of_another_version" in caplog.text
