"""The small arrays of a batch travel as one."""

import jax
import numpy as np
import pytest
from dreamer_worker.agent.packing import NAME, SMALL, packed, unpacked


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    return {
        "action": rng.standard_normal((4, 5, 3)),  # float64: becomes float32, as JAX has it
        "dyn/deter": rng.standard_normal((4, 1, 8)).astype(np.float16),
        "dyn/stoch": rng.integers(0, 255, (4, 1, 7), np.uint8),
        "consec": rng.integers(-9, 9, (4, 5), np.int32),
        "is_first": rng.random((4, 5)) < 0.5,
        "image": rng.integers(0, 255, (4, SMALL), np.uint8),
    }


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, x in wanted.items():
        assert found[key].dtype == jax.dtypes.canonicalize_dtype(x.dtype)
        np.testing.assert_array_equal(found[key], x.astype(found[key].dtype))


def test_unpacking_restores_every_array(batch):
    together = packed(batch)

    assert together.keys() == {NAME, "image"}
    same(jax.jit(unpacked)(together), batch)


def test_batches_of_several_updates_stay_apart(batch):
    stacked = {key: np.stack([x, x[::-1]]) for key, x in batch.items()}

    together = packed(stacked, lead=1)
    second = jax.jit(lambda tree: unpacked(jax.tree.map(lambda x: x[1], tree)))(together)

    same(second, {key: x[::-1] for key, x in batch.items()})


def test_a_single_small_array_is_sent_as_it_is():
    assert packed({"image": np.zeros(3, np.uint8)}).keys() == {"image"}
