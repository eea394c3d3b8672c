"""The parameters of an agent as safetensors, and its policy in numpy."""

import json
import subprocess
import sys

import numpy as np
import pytest
from dreamer_worker.agent.spaces import Space
from dreamer_worker.checkpoint import Epochs, write_arrays
from dreamer_worker.export import about, export, write_policy
from mosaic_sdk.checkpoints import read
from mosaic_sdk.export import write_safetensors


def test_only_the_parameters_are_exported(tmp_path):
    epochs = Epochs(tmp_path)
    folder = epochs.begin(1)
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_arrays(folder / "agent.npz", {"params/dyn/kernel": kernel, "moments/mean": kernel, "acted": np.array(3)})
    epochs.commit(1, {"env_steps": 10}, {"env": "gym_CartPole-v1"})

    found = export(read(folder), str(tmp_path))

    data = (tmp_path / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert [name for name in header if name != "__metadata__"] == ["params/dyn/kernel"]
    assert data[8 + length :] == kernel.tobytes()
    assert found.library == "dreamer"


def test_the_policy_in_numpy_acts_as_the_agent_does(tmp_path):
    import jax
    from dreamer_worker.agent import make_agent
    from dreamer_worker.numpy_policy import Policy

    flags = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
    obs_space = {
        "image": Space("uint8", (16, 16, 3)),
        "speed": Space("float32", (2,)),
        "kind": Space("int32", (), 0, 3),
    }
    obs_space |= {"reward": Space("float32"), "log/secret": Space("float32"), **flags}
    act_space = {"button": Space("int32", (), 0, 4), "steer": Space("float32", (2,), -1, 1)}
    compute = {"dtype": "float32", "path": "plain"}
    agent = make_agent(obs_space, act_space, {"size": "debug", "nets": {"mults": [1, 2]}, "compute": compute})
    rng = np.random.default_rng(0)
    saved = agent.save()
    saved |= {
        key: x + 0.3 * rng.standard_normal(x.shape).astype("f") for key, x in saved.items() if key[:6] == "params"
    }
    agent.load(saved)
    params = {key: x for key, x in saved.items() if key.startswith("params/")}
    write_safetensors(str(tmp_path / "model.safetensors"), params)
    write_policy(str(tmp_path), about(agent.config, obs_space, act_space))
    policy, carry, size = Policy(tmp_path), agent.init_policy(1), agent.config.rssm

    for step in range(6):
        obs = {key: space.sample(rng) for key, space in obs_space.items()} | {"is_first": np.bool_(step in (0, 4))}
        if obs["is_first"]:
            policy.reset()
        key = jax.random.fold_in(jax.random.fold_in(agent._seed, 1), agent._acted + 1)
        dice = jax.random.gumbel(jax.random.split(key)[0], (1, size.stoch, size.classes))[0]
        carry, wanted, _ = agent.policy(carry, {name: x[None] for name, x in obs.items()}, "eval")
        found = policy.act(obs, dice=np.asarray(dice))

        assert found["button"] == wanted["button"][0]
        np.testing.assert_allclose(found["steer"], wanted["steer"][0], atol=2e-5)
        np.testing.assert_allclose(policy._deter, carry["deter"][0], atol=2e-5)


def test_the_exported_policy_needs_numpy_alone(tmp_path):
    pytest.importorskip("jax")
    import jax
    from dreamer_worker.agent.config import AgentConfig
    from dreamer_worker.agent.model import Model
    from dreamer_worker.agent.snapshot import named

    spaces = {"place": Space("float32", (3,))}, {"action": Space("int32", (), 0, 4)}
    config = AgentConfig.preset("debug")
    params = named({"params": Model(*spaces, config).init(jax.random.key(0))})
    write_safetensors(str(tmp_path / "model.safetensors"), params)
    write_policy(str(tmp_path), about(config, *spaces))
    program = "import sys; from policy import Policy; print(Policy('.').act({'place': [1, 2, 3]})['action'])"
    program += "; assert not [name for name in sys.modules if name.split('.')[0] in ('jax', 'mosaic_sdk')]"

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) in range(4)
