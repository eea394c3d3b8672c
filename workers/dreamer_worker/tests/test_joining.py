"""A state's small arrays as one, and named numbers as one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dreamer_worker.agent.joining import Joint, Numbers


@pytest.fixture
def tree():
    rng = np.random.default_rng(0)
    return {
        "large": jnp.asarray(rng.standard_normal((5, 5)), jnp.float32),
        "small": [jnp.asarray(rng.standard_normal((2, 3)), jnp.float32), jnp.float32(7)],
        "updates": jnp.int32(3),
    }


def test_splitting_restores_the_tree(tree):
    joint = Joint(jax.eval_shape(lambda: tree), small=10)

    parts = jax.jit(joint.join)(tree)

    assert [part.shape for part in parts] == [(7,), (5, 5), ()]
    jax.tree.map(np.testing.assert_array_equal, jax.jit(joint.split)(parts), tree)


def test_nothing_is_joined_where_all_arrays_are_large(tree):
    joint = Joint(jax.eval_shape(lambda: tree), small=0)

    parts = joint.join(tree)

    assert [part.shape for part in parts] == [(0,), (5, 5), (2, 3), (), ()]
    jax.tree.map(np.testing.assert_array_equal, joint.split(parts), tree)


def test_numbers_are_read_by_name():
    found = jax.jit(lambda: Numbers.of({"loss/total": jnp.float32(2.5), "entropy": 1}))()

    assert dict(found) == {"entropy": 1.0, "loss/total": 2.5}
    with pytest.raises(KeyError):
        found["loss"]
