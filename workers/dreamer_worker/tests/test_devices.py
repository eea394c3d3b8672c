"""Several devices that share a batch compute what one does."""

import os
import subprocess
import sys

import pytest

# In a process of its own: how many devices there are is decided when JAX starts.
COMPARE = """
from functools import partial
import jax, numpy as np
jax.config.update("jax_disable_most_optimizations", True)
from dreamer_worker.agent import Space, make_agent, optimizer

assert len(jax.devices()) == 8
flags = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
obs = {"place": Space("float32", (3,)), "image": Space("uint8", (16, 16, 3)), "reward": Space("float32"), **flags}
act = {"steer": Space("float32", (2,), -1, 1)}
found, operations = {}, {}
for devices in (1, 8):
    # Not divided by its own size, a small gradient's rounding stays small.
    linear = {"warmup": 0, "lr": 1e-2, "eps": 1.0}
    settings = {"size": "debug", "nets": {"mults": [1, 2]}, "learning": {"imagined_steps": 2}, "optimizer": linear}
    compute = {"dtype": "float32", "devices": devices, "policy_device": "cpu:1" if devices > 1 else ""}
    agent = make_agent(obs, act, {**settings, "compute": compute})
    fresh, rng = agent.save(), np.random.default_rng(0)
    fresh_params, moments = agent.train_state.params, agent.train_state.moments
    data = {key: space.sample(rng, 16, 4) for key, space in {**obs, **act, **agent.ext_space}.items()}
    data["dyn/deter"] = np.tanh(data["dyn/deter"])
    staged = agent.stage(data, 2)
    with agent.devices.together():
        update = agent._update_often.lower(agent._parts, agent.init_train(8), dict(staged)).compile()
    operations[devices] = update.cost_analysis()["flops"]
    carry, outs, metrics = agent.train(agent.init_train(8), staged)
    assert len(agent.train_state.params["dyn"]["gates"]["kernel"].devices()) == devices
    _, actions, _ = agent.policy(agent.init_policy(2), {key: x[:2, 0] for key, x in data.items()}, "eval")
    found[devices] = agent.save(), jax.tree.map(np.asarray, (outs["priority"], metrics))

# Only what does not depend on the batch, as the optimizer, is computed by all of them. For weights as few as these it
# would be half of all: the compiler counts its table anew for each array that is cut from it.
own = jax.jit(partial(optimizer.step, agent.config.optimizer)).lower(fresh_params, fresh_params, moments).compile()
own = own.cost_analysis()["flops"]
assert operations[8] - own < 0.25 * (operations[1] - own), (operations, own)
assert next(iter(jax.tree.leaves(agent.policy_params)[0].devices())) == jax.devices()[1]
for key, wanted in found[1][0].items():
    if key.startswith("params/"):
        moved, apart = (np.linalg.norm(np.ravel(wanted - one)) for one in (fresh[key], found[8][0][key]))
        assert apart <= 0.01 * moved + 1e-7, (key, moved, apart)
jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4), found[1][1], found[8][1])
try:
    agent.stage({key: x[:12] for key, x in data.items()}, 1)
except ValueError as error:
    assert "12 sequences cannot be shared evenly by 8 devices" in str(error)
else:
    raise AssertionError("an uneven batch was accepted")
print("equal")
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # compiling on a busy machine
def test_eight_devices_update_as_one_does():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

    done = subprocess.run(
        [sys.executable, "-c", COMPARE],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )

    assert done.stdout.strip() == "equal", done.stderr[-3000:]
