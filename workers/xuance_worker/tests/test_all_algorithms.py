"""Every algorithm trains, resumes and is evaluated."""

import pytest
from short import short_config
from xuance_worker.algorithms import ALGORITHMS


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algo", list(ALGORITHMS))
def test_it_trains_resumes_and_is_evaluated(launch, algo):
    config = short_config(algo)
    steps = config["total_timesteps"]

    first = launch(config)
    assert first.code == 0, first.err
    assert first.kind("episode"), "no episode"
    assert first.kind("metric"), "its networks were never updated"

    more = {"mode": "resume_training", "policy_path": first.checkpoint}
    second = launch({**short_config(algo, **more), "total_timesteps": 2 * steps})
    assert second.code == 0, second.err
    assert second.events("checkpoint_loaded")[0]["step"] >= steps
    assert second.events("checkpoint_saved")[-1]["step"] >= 2 * steps

    tested = launch(
        {"seed": 1_000_000, "extras": {"mode": "policy_eval", "policy_path": second.checkpoint, "eval_episodes": 2}}
    )
    assert tested.code == 0, tested.err
    assert tested.summary["seeds"] == [1_000_000, 1_000_001]
    assert tested.summary["algo"] == algo
