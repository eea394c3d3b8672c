"""The parts of a search that need no daemon: windows of a curve, the configs of trials, the study's file."""

from types import SimpleNamespace

import pytest
from mosaic_sdk.config import ConfigError
from optuna.trial import Trial, TrialState
from search_worker.config import SearchConfig
from search_worker.curve import Progress, final_value
from search_worker.study import make_pruner, open_study, suggest
from search_worker.trial import plan_runs

CONFIG = SearchConfig(
    run_id="test-001",
    experiment="s",
    worker={"module": "toy_worker.cli", "name": "toy", "config": {"steps": 100, "extras": {"mode": "train"}}},
    space={"lr": "log:1e-5:1e-2", "layers": "int:1:4", "act": "choice:tanh,relu"},
    places={"lr": "extras.algo_params.lr"},
    seed=1,
)


def curve(*points):
    """Points are (step, mean) or (step, mean, count)."""
    whole = [(*point, 1)[:3] for point in points]
    return SimpleNamespace(
        **{name: [point[at] for point in whole] for at, name in enumerate(("step", "mean", "count"))}
    )


def test_windows_are_the_same_for_all_trials_whenever_their_episodes_end():
    progress = Progress(every=100)

    progress.add(curve((30, 1.0), (90, 3.0), (140, 10.0)))
    progress.add(curve((140, 10.0), (180, 30.0), (450, 50.0)))

    assert progress.means == {100: 2.0, 200: 20.0, 300: 20.0, 400: 20.0}


def test_a_window_before_the_first_point_has_no_value():
    progress = Progress(every=10)

    progress.add(curve((25, 7.0), (31, 8.0)))

    assert progress.means == {30: 7.0}


def test_the_final_value_is_the_mean_of_the_last_twentieth():
    assert final_value(curve((500, 1.0), (960, 10.0, 1), (1000, 40.0, 2))) == 30.0
    assert final_value(curve((3, 5.0))) == 5.0
    assert final_value(curve()) is None


def test_a_trial_has_a_run_for_each_seed_with_its_settings_in_place():
    config = SearchConfig.from_dict({**CONFIG.to_dict(), "seeds": [0, 1]})

    first, second = plan_runs(config, 7, {"lr": 0.1, "layers": 2})

    assert (first.key, second.key) == ("experiment/s/trial-7/seed-0", "experiment/s/trial-7/seed-1")
    own = first.config["metadata"]["worker"]["config"]
    assert own == {"steps": 100, "layers": 2, "seed": 0, "extras": {"mode": "train", "algo_params": {"lr": 0.1}}}
    assert first.config["metadata"]["experiment"] == {
        "name": "s",
        "axes": {"extras.algo_params.lr": 0.1, "layers": 2, "seed": 0},
    }
    assert CONFIG.worker["config"] == {"steps": 100, "extras": {"mode": "train"}}


def test_a_resumed_study_has_the_settings_of_a_trial_that_was_running_and_drops_half_a_line(tmp_path):
    before, after = tmp_path / "before.log", tmp_path / "after.log"
    study = open_study(CONFIG, str(before))
    trial = study.ask()
    chosen = suggest(trial, CONFIG.dimensions)
    with before.open("a") as file:
        file.write('{"op_code":6,"worker')  # the driver was killed here

    resumed = open_study(SearchConfig.from_dict({**CONFIG.to_dict(), "resume_from": str(before)}), str(after))
    (running,) = resumed.get_trials()
    again = Trial(resumed, running._trial_id)

    assert running.state is TrialState.RUNNING
    assert suggest(again, CONFIG.dimensions) == chosen
    resumed.tell(again, 1.0)
    assert suggest(resumed.ask(), CONFIG.dimensions) != chosen


@pytest.mark.parametrize("pruner", ["none", "median", "asha", "hyperband"])
def test_every_pruner_is_made_for_steps_of_the_trials(pruner):
    config = SearchConfig.from_dict({**CONFIG.to_dict(), "pruner": pruner})

    assert (
        type(make_pruner(config, 5_000, 100_000))
        .__name__.lower()
        .startswith({"none": "nop", "asha": "successivehalving"}.get(pruner, pruner))
    )


def test_an_option_that_optuna_does_not_know_is_named():
    config = SearchConfig.from_dict({**CONFIG.to_dict(), "pruner": "median", "pruner_options": {"n_startup": 1}})

    with pytest.raises(ConfigError, match=r"pruner_options: MedianPruner does not accept them: .*n_startup"):
        make_pruner(config, 1, 1)


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "random"])
def test_every_sampler_chooses_within_the_space(tmp_path, sampler):
    study = open_study(SearchConfig.from_dict({**CONFIG.to_dict(), "sampler": sampler}), str(tmp_path / "study.log"))

    for number in range(4):
        trial = study.ask()
        chosen = suggest(trial, CONFIG.dimensions)
        study.tell(trial, float(number))
        assert 1e-5 <= chosen["lr"] <= 1e-2
        assert chosen["layers"] in (1, 2, 3, 4)
        assert chosen["act"] in ("tanh", "relu")
