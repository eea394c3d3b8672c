"""In what two runs differ."""

from dataclasses import replace

import pytest

from mosaic.present.run_diff import compare_runs

WHY = "has no provenance.json in its folder"
PROVENANCE = {
    "host": "box",
    "mosaic": {"version": "0.1.0", "git": {"commit": "a" * 40, "dirty": False}},
    "worker": {"name": "toy", "source": "/w", "git": None},
    "python": {"version": "3.11.7", "packages": ["numpy==2.0.0", "Torch==2.13.0"]},
    "hardware": {"cpu": "EPYC", "cores_usable": 4, "gpus": [{"model": "H200", "uuid": "GPU-1"}]},
    "environment": {"A": "1"},
}


@pytest.fixture
def runs(make_run):
    settings = {"lr": 0.1, "seed": 1, "ignore_seed": False, "steps": 10.0}
    one = replace(make_run(), settings=settings, config={"metadata": {"worker": {}}})
    return [one, replace(one, run_id="01B", settings={**settings, "lr": 0.2, "seed": 2, "steps": 10})]


def differing(diff):
    return {
        group.title: [(row.key, *row.values) for row in group.differing] for group in diff.groups if group.differing
    }


def test_only_what_differs_is_listed_in_groups(runs):
    other = {
        **PROVENANCE,
        "python": {"version": "3.11.7", "packages": ["numpy==2.1.0", "torch==2.13.0", "scipy==1.0"]},
        "mosaic": {"version": "0.1.0", "git": {"commit": "b" * 40, "dirty": True}},
        "hardware": {**PROVENANCE["hardware"], "gpus": []},
        "environment": {"A": "2"},
    }

    diff = compare_runs(runs, [PROVENANCE, other], WHY)

    assert differing(diff) == {
        "settings": [("lr", "0.1", "0.2")],
        "seeds": [("seed", "1", "2")],
        "code": [("MOSAIC commit", "a" * 12, "b" * 12), ("MOSAIC uncommitted changes", "false", "true")],
        "packages": [("numpy", "2.0.0", "2.1.0"), ("scipy", "-", "1.0")],
        "variables": [("A", "1", "2")],
        "machine": [("GPUs", "H200", "-")],
    }
    assert diff.problems == ()


def test_equal_runs_have_no_differences_and_say_what_was_compared(runs):
    diff = compare_runs([runs[0], runs[0]], [PROVENANCE, PROVENANCE], WHY)

    assert diff.is_empty
    assert [group.title for group in diff.groups] == [
        *("run", "settings", "seeds", "code", "packages", "variables", "machine")
    ]


def test_what_is_unknown_of_one_run_is_named_and_differs_from_nothing(runs):
    old = replace(runs[1], settings=None)

    diff = compare_runs([runs[0], old], [PROVENANCE, None], WHY)

    assert diff.is_empty
    assert [problem.partition(":")[0].partition(".")[0] for problem in diff.problems] == [
        "Run 01B has no recorded settings",
        "Run 01B has no provenance",
    ]


def test_operators_are_compared_by_what_they_played_with(runs):
    def with_operator(run, step):
        entry = {"kind": "rl", "resolved": {"about": {"worker": "cleanrl", "step": step}}}
        return replace(run, settings={}, config={"metadata": {"operators": {"ppo": entry}}})

    recorded = {**PROVENANCE, "operators": {"ppo": {"python": {"packages": ["torch==2.12.0"]}, "settings": {"t": 1}}}}
    newer = {**PROVENANCE, "operators": {"ppo": {"python": {"packages": ["torch==2.13.0"]}, "settings": {"t": 1}}}}

    diff = compare_runs([with_operator(runs[0], 10), with_operator(runs[1], 20)], [recorded, newer], WHY)

    assert differing(diff) == {"operators": [("ppo.packages.torch", "2.12.0", "2.13.0"), ("ppo.step", "10", "20")]}


@pytest.mark.parametrize(
    "odd", [{"python": 3, "hardware": [], "mosaic": None, "operators": "x"}, {"python": {"packages": 5}}]
)
def test_a_provenance_file_that_a_worker_has_overwritten_is_harmless(runs, odd):
    assert "settings" in differing(compare_runs(runs, [odd, PROVENANCE], WHY))


def test_a_setting_of_an_imported_run_is_compared_with_the_same_one_here(runs):
    here = replace(
        runs[0], settings={"extras.algo_params.gamma": 0.99, "extras.a.lr": 1, "extras.b.lr": 2, "env_id": "X"}
    )
    imported = replace(runs[1], settings={"gamma": 0.99, "lr": 1, "env_id": "Y"}, origin="tensorboard:/runs/x")

    settings = differing(compare_runs([here, imported], [None, None], WHY))["settings"]

    assert settings == [("env_id", "X", "Y"), ("extras.a.lr", "1", "-"), ("extras.b.lr", "2", "-"), ("lr", "-", "1")]
