"""The agent as its processes use it: act, learn, report, save, load."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dreamer_worker.agent import Space, make_agent
from dreamer_worker.agent.objective import objective
from dreamer_worker.agent.snapshot import Mismatch

pytestmark = pytest.mark.timeout(900)  # compiling on a busy machine
jax.config.update("jax_disable_most_optimizations", True)

FLAGS = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
OBS = {"image": Space("uint8", (16, 16, 3)), "speed": Space("float32", (2,)), "kind": Space("int32", (), 0, 3)}
OBS |= {"reward": Space("float32"), "log/secret": Space("float32"), **FLAGS}
ACT = {"button": Space("int32", (), 0, 4), "steer": Space("float32", (2,), -1, 1)}
SMALL = {
    "size": "debug",
    "nets": {"mults": [1, 2]},
    "rssm": {"free_nats": 0.0},  # so that every loss has a gradient
    "learning": {"imagined_steps": 3},
    "compute": {"dtype": "float32", "phase_convolutions": 1, "policy_sync_every": 1000},
    "optimizer": {"warmup": 0, "lr": 1e-3},
}
BATCH, LENGTH = 3, 5


def agent_with(**changes):
    return make_agent(OBS, ACT, {**SMALL, **changes})


def batch_for(agent, seed=0, length=LENGTH):
    rng = np.random.default_rng(seed)
    spaces = {**OBS, **ACT, **agent.ext_space}
    data = {key: space.sample(rng, BATCH, length) for key, space in spaces.items()}
    data |= {key: rng.random((BATCH, length)) < 0.2 for key in FLAGS}
    data["dyn/deter"] = np.tanh(data["dyn/deter"])
    data["consec"] = np.zeros(BATCH, np.int32)
    data["stepid"] = rng.integers(0, 256, (BATCH, length, 20), np.uint8)
    return data


def observations(count, seed=0, first=False):
    rng = np.random.default_rng(seed)
    found = {key: space.sample(rng, count) for key, space in OBS.items()}
    return {**found, "is_first": np.full(count, first)}


@pytest.fixture(scope="module")
def compiled():
    agent = agent_with()
    return agent, agent.save()


@pytest.fixture
def agent(compiled):
    """A fresh agent that is compiled only once."""
    agent, fresh = compiled
    agent.load(fresh)
    return agent


def test_actions_fit_the_space_and_states_can_be_mixed_row_by_row(agent):
    carry, actions, outs = agent.policy(agent.init_policy(3), observations(3, first=True))

    assert {key: (x.shape, x.dtype) for key, x in actions.items()} == {
        "button": ((3,), np.int32),
        "steer": ((3, 2), np.float32),
    }
    assert set(outs) == set(agent.ext_space)
    assert all(outs[key].dtype == space.dtype for key, space in agent.ext_space.items())
    rows = jax.tree.map(lambda x: np.stack([x[2], x[0]]), carry)
    mixed, _, _ = agent.policy(rows, observations(2))
    assert mixed["deter"].shape == (2, 8)


def test_a_first_observation_forgets_the_state_before_it(agent):
    fresh, seen, empty = agent.save(), observations(4, first=True), agent.init_policy(4)
    junk = {"deter": empty["deter"] + 0.7, "stoch": empty["stoch"] + 1, "prevact": empty["prevact"]}

    found = agent.policy(empty, seen)
    agent.load(fresh)  # for the same random numbers

    assert_same(agent.policy(junk, seen), found)


def test_evaluation_takes_the_likeliest_action_and_training_draws(agent):
    params = jax.tree.map(jnp.zeros_like, agent.policy_params["pol"])
    params["logits/button"]["bias"] = jnp.asarray([0.0, 0.2, 0.0, 0.0])
    kept, agent.policy_params = agent.policy_params, {**agent.policy_params, "pol": params}
    try:
        seen = observations(64, first=True)
        _, drawn, _ = agent.policy(agent.init_policy(64), seen, "train")
        _, best, _ = agent.policy(agent.init_policy(64), seen, "eval")
    finally:
        agent.policy_params = kept

    assert set(drawn["button"]) == {0, 1, 2, 3}
    assert np.abs(drawn["steer"]).max() > 0.5
    assert set(best["button"]) == {1}
    assert not best["steer"].any()


def test_an_unknown_mode_is_refused(agent):
    with pytest.raises(ValueError, match="choose train or eval"):
        agent.policy(agent.init_policy(1), observations(1), "explore")


def test_an_update_moves_every_weight_and_returns_what_replay_keeps(agent):
    before, data = agent.save(), batch_for(agent)

    carry, outs, metrics = agent.train(agent.init_train(BATCH), data)
    for _ in range(3):
        carry, _, _ = agent.train(carry, data)

    after = agent.save()
    still = [k for k in before if k.startswith("params/") and np.array_equal(before[k], after[k])]
    # Heads that start at zero hide what is before them in the first updates; a few move them all.
    assert still == []
    assert set(outs) == {*agent.ext_space, "priority", "stepid"}
    assert outs["dyn/deter"].shape == (BATCH, LENGTH - 1, 8)
    assert np.asarray(outs["dyn/stoch"]).max() < 4
    np.testing.assert_array_equal(outs["stepid"], data["stepid"][:, 1:])
    assert all(np.isfinite(value) for value in metrics.values())
    assert np.asarray(outs["priority"]).min() > 0


def test_learning_observes_a_sequence_as_acting_did():
    """Which action led to which observation, where episodes begin, and where a replayed sequence starts."""
    agent = agent_with(rssm={"free_nats": 0.0, "unimix": 0.0}, optimizer={"warmup": 10})  # whose first rate is zero
    sure = agent.save()
    sure["params/dyn/posterior_out/kernel"] *= 1e4  # so that nothing is random: acting and learning draw differently
    agent.load(sure)
    carry, rows = agent.init_policy(BATCH), []
    for step in range(8):
        obs = observations(BATCH, seed=step) | {"is_first": np.arange(BATCH) == step - 3}
        obs |= {key: np.zeros(BATCH, bool) for key in ("is_last", "is_terminal")}
        carry, actions, outs = agent.policy(carry, obs)
        rows.append({**obs, **actions, **outs})
    data = {key: np.stack([row[key] for row in rows], 1) for key in rows[0]}

    _, outs, _ = agent.train(agent.init_train(BATCH), {key: value[:, 2:] for key, value in data.items()})

    np.testing.assert_array_equal(outs["dyn/stoch"], data["dyn/stoch"][:, 3:])
    np.testing.assert_allclose(
        outs["dyn/deter"], data["dyn/deter"][:, 3:], atol=2e-3
    )  # they are kept in half precision


def test_a_later_chunk_starts_from_the_carry_instead_of_the_stored_latents(agent):
    fresh, data, carry = agent.save(), batch_for(agent), agent.init_train(BATCH)
    state = agent._state(jnp.asarray(data["dyn/deter"][:, 0]), jnp.asarray(data["dyn/stoch"][:, 0]))
    junk = {key: np.zeros_like(data[key]) for key in agent.ext_space}

    _, first, _ = agent.train(carry, data)
    agent.load(fresh)
    _, second, _ = agent.train({**carry, "state": state}, {**data, **junk, "consec": np.ones(BATCH, np.int32)})

    assert_same(first["dyn/deter"], second["dyn/deter"])


def test_several_updates_in_one_call_equal_as_many_calls(agent):
    fresh, batches = agent.save(), [batch_for(agent, seed) for seed in range(4)]
    together = {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}
    carry, latents = agent.init_train(BATCH), []
    for batch in batches:
        carry, outs, metrics = agent.train(carry, batch)
        latents.append(outs)
    wanted, wanted_metrics = agent.save(), {key: float(value) for key, value in metrics.items()}
    agent.load(fresh)

    carry, outs, metrics = agent.train(agent.init_train(BATCH), agent.stage(together, 4))

    found = agent.save()
    assert found["moments/updates"] == 4
    for key in (key for key in wanted if key.startswith("params/")):
        # The optimizer divides by the gradient's size, so the rounding of a tiny gradient shows in full.
        moved, distance = (np.linalg.norm(np.ravel(wanted[key] - one[key])) for one in (fresh, found))
        assert distance <= 0.1 * moved, key
    np.testing.assert_allclose(outs["priority"], np.concatenate([one["priority"] for one in latents]), rtol=1e-2)
    np.testing.assert_array_equal(outs["stepid"], together["stepid"][:, 1:])
    assert {key: float(value) for key, value in metrics.items()} == pytest.approx(wanted_metrics, rel=2e-2, abs=1e-3)


def test_a_batch_that_lacks_a_key_is_refused_by_name(agent):
    data = batch_for(agent)
    del data["dyn/deter"], data["reward"]

    with pytest.raises(KeyError, match="lacks dyn/deter, reward"):
        agent.train(agent.init_train(BATCH), data)


def test_the_policy_uses_new_weights_only_after_a_sync(agent):
    old = np.asarray(agent.policy_params["pol"]["logits/button"]["bias"])

    agent.train(agent.init_train(BATCH), batch_for(agent))
    assert_same(agent.policy_params["pol"]["logits/button"]["bias"], old)

    new = agent.params_for_policy()
    assert not np.array_equal(new["pol"]["logits/button"]["bias"], old)
    assert_same(new["pol"]["logits/button"]["bias"], agent.train_state.params["pol"]["logits/button"]["bias"])


def test_a_loaded_agent_continues_bit_for_bit(agent):
    agent.train(agent.init_train(BATCH), batch_for(agent))
    saved = agent.save()
    agent.train(agent.init_train(BATCH), batch_for(agent, seed=1))
    wanted = agent.save()

    agent.load(saved)
    assert_same(agent.save(), saved)
    agent.train(agent.init_train(BATCH), batch_for(agent, seed=1))

    assert_same(agent.save(), wanted)
    assert not np.array_equal(wanted["params/dyn/gates/kernel"], saved["params/dyn/gates/kernel"])


def test_what_was_frozen_is_not_changed_by_later_updates(agent):
    before, frozen = agent.save(), agent.freeze()
    agent.train(agent.init_train(BATCH), batch_for(agent))

    assert_same(frozen(), before)
    assert np.any(agent.save()["params/dyn/gates/kernel"] != before["params/dyn/gates/kernel"])


def test_weights_move_from_one_agent_to_another(agent):
    other = agent_with(seed=5)
    assert not np.array_equal(other.save()["params/dyn/gates/kernel"], agent.save()["params/dyn/gates/kernel"])

    other.load(agent.save())

    assert_same(other.save(), agent.save())
    assert_same(other.policy_params, agent.policy_params)


def test_weights_of_another_agent_are_refused_with_every_difference(agent):
    saved = agent.save()
    saved["params/more"] = saved.pop("params/con/out/bias")
    saved["slow/out/bias"] = saved["slow/out/bias"][:2]

    before = agent.save()
    with pytest.raises(Mismatch) as error:
        agent.load(saved)

    assert_same(agent.save(), before)
    for part in (
        "params/con/out/bias is missing",
        "params/more is unknown",
        "slow/out/bias is float32[2], not float32[5]",
    ):
        assert part in str(error.value)


def test_a_report_shows_the_dream_beside_what_happened(agent):
    before = agent.save()

    _, found = agent.report(agent.init_report(BATCH), batch_for(agent))

    clip = found["open_loop/image"]
    assert clip.dtype == np.uint8
    assert clip.shape == (LENGTH - 1, 3 * 16, BATCH * 16, 3)
    assert np.isfinite(found["loss/image"])
    real = batch_for(agent)["image"][0, 1]
    np.testing.assert_array_equal(clip[0, :16, 1:16], real[:, 1:])
    assert_same(agent.save(), before)


def test_keys_meant_for_the_log_are_not_encoded(agent):
    assert set(agent.model.sensors) == {"image", "speed", "kind"}


def test_an_agent_without_an_observation_is_refused():
    with pytest.raises(ValueError, match="matches none of the observations"):
        agent_with(encode="nothing")


def test_an_observation_with_the_name_of_a_loss_is_refused():
    with pytest.raises(ValueError, match="must not have the name of one of the agent's losses, 'value'"):
        make_agent({**OBS, "value": Space("float32")}, ACT, SMALL)


def test_each_loss_moves_only_what_it_is_for(agent):
    rng, noisy = np.random.default_rng(0), agent.save()
    noisy |= {key: x + 0.1 * rng.standard_normal(x.shape).astype(x.dtype) for key, x in noisy.items() if "out/" in key}
    agent.load(noisy)  # heads that start at zero would let no gradient through
    batch, _ = agent._batch(agent.init_train(BATCH), dict(agent.stage(batch_for(agent))))
    state = agent.train_state

    def losses(params):
        _, result = objective(agent.model, params, state.slow, state.scale, batch, jax.random.key(3))
        return {key: value for key, value in result.metrics.items() if key.startswith("loss/")}

    slopes = jax.jit(jax.jacrev(losses))(state.params)

    moved = {
        loss.removeprefix("loss/"): {name for name, part in parts.items() if any(map(np.any, jax.tree.leaves(part)))}
        for loss, parts in slopes.items()
    }
    world = {"enc", "dyn"}
    assert moved == {
        **dict.fromkeys(("image", "speed", "kind"), world | {"dec"}),
        "reward": world | {"rew"},
        "continue": world | {"con"},
        **dict.fromkeys(("dynamics", "representation"), world),
        "policy": {"pol"},
        "value": {"val"},
        "replay_value": world | {"val"},
    }
    dyn = {loss: slopes[f"loss/{loss}"]["dyn"] for loss in ("dynamics", "representation")}
    assert np.any(dyn["dynamics"]["prior_out"]["kernel"])
    assert not np.any(dyn["representation"]["prior_out"]["kernel"])


def test_the_actors_gradient_may_pass_through_the_dynamics():
    act = {"steer": ACT["steer"]}
    changes = {"learning": {"imagined_steps": 3, "actor_gradient": "dynamics", "entropy": 0.0}}
    agent = make_agent(OBS, act, {**SMALL, **changes})
    rng, noisy = np.random.default_rng(0), agent.save()
    noisy |= {key: x + 0.1 * rng.standard_normal(x.shape).astype(x.dtype) for key, x in noisy.items() if "out/" in key}
    agent.load(noisy)
    batch, _ = agent._batch(agent.init_train(BATCH), dict(agent.stage(batch_for(agent))))
    state = agent.train_state

    def losses(params):
        _, result = objective(agent.model, params, state.slow, state.scale, batch, jax.random.key(3))
        return {key: result.metrics[f"loss/{key}"] for key in ("policy", "value", "replay_value")}

    slopes = jax.jit(jax.jacrev(losses))(state.params)

    moved = {
        loss: {name for name, part in parts.items() if any(map(np.any, jax.tree.leaves(part)))}
        for loss, parts in slopes.items()
    }
    assert moved == {"policy": {"pol"}, "value": {"val"}, "replay_value": {"enc", "dyn", "val"}}
    with pytest.raises(ValueError, match="'button' is a choice"):
        agent_with(**changes)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-4), ("bfloat16", 0.1)])
def test_the_fast_path_equals_the_plain_path_in_losses_and_gradients(dtype, limit):
    found = {}
    for path in ("fast", "plain"):
        agent = agent_with(
            compute={**SMALL["compute"], "dtype": dtype, "path": path}, rssm={"free_nats": 0.0, "deter": 64}
        )
        batch, _ = agent._batch(agent.init_train(BATCH), dict(agent.stage(batch_for(agent))))
        graded = jax.jit(jax.value_and_grad(partial(objective, agent.model), has_aux=True))
        state = agent.train_state
        (total, result), grads = graded(state.params, state.slow, state.scale, batch, jax.random.key(3))
        found[path] = {"total": total, **result.metrics}, grads

    for name, wanted in found["plain"][0].items():
        assert float(found["fast"][0][name]) == pytest.approx(float(wanted), rel=limit, abs=limit), name
    flat = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(grads)]) for _, grads in found.values()]
    assert np.linalg.norm(flat[0] - flat[1]) <= limit * np.linalg.norm(flat[1])


def assert_same(found, wanted):
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
