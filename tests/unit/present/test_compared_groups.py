"""Which runs form a group, which metric they have in common, and which number stands for a run."""

from dataclasses import replace

import numpy as np
import pytest

from mosaic.client.run import Run
from mosaic.model.errors import MosaicError
from mosaic.model.run import RunSummary
from mosaic.model.states import RunState
from mosaic.present.compared_groups import RunGroup, divide_runs
from mosaic.present.compared_runs import EXPERIMENT, NAME, RUN, Chosen, choose_runs
from mosaic.present.compared_samples import (
    Sample,
    SampleGroup,
    common_metric,
    last_share,
    why_left_out,
    with_areas,
)
from mosaic.present.compared_value import Reading, parse_last, reading_for
from mosaic.present.group_comparison import Options, compare_groups
from mosaic.stats.scales import Scale
from mosaic.stats.traces import Trace
from mosaic.wire import mosaic_pb2 as pb

PLAIN = Run.from_wire(pb.RunInfo(run_id="01", name="toy", worker_name="toy", state=pb.TERMINATED))


def run(number, settings=None, **more):
    return replace(PLAIN, run_id=f"{number:02}", state=RunState.TERMINATED, settings=settings or {}, **more)


def labels(groups):
    return {group.label: [each.run_id for each in group.runs] for group in groups}


def divide(chosen, by=()):
    return labels(divide_runs(chosen, by, lambda run: run))


class Listing:
    """A client that has these runs."""

    def __init__(self, runs):
        self.runs = tuple(runs)

    def list_runs(self, where=""):
        """As the daemon would, of conditions on the environment."""
        return Listing(run for run in self.runs if where in ("", f"env_id={run.env_id}"))


def test_a_retried_run_its_parent_and_the_driver_of_a_search_are_not_compared():
    driver = run(0, experiment="x", created_at=1.0)
    failed = replace(run(1, experiment="x", axes={"seed": 1}, created_at=2.0), state=RunState.FAULTED)
    retried = run(2, experiment="x", axes={"seed": 1}, created_at=3.0)
    parent = run(3, experiment="x", axes={"seed": 2}, created_at=2.0)
    resumed = run(4, experiment="x", axes={"seed": 2}, created_at=3.0, parent_run_id="03", relation="resume")

    (chosen,) = choose_runs(Listing([driver, failed, retried, parent, resumed]), ["x"])

    assert [each.run_id for each in chosen.runs] == ["02", "04"]


def test_a_condition_chooses_among_the_runs_of_each_reference():
    runs = [run(n, experiment="xy"[n % 2], axes={"seed": n}, env_id="AB"[n // 2 % 2]) for n in range(8)]

    chosen = choose_runs(Listing(runs), ["x", "y"], where="env_id=B")

    assert [[each.run_id for each in one.runs] for one in chosen] == [["02", "06"], ["03", "07"]]
    with pytest.raises(MosaicError, match="No run of 'x' meets the condition env_id=C"):
        choose_runs(Listing(runs), ["x", "y"], where="env_id=C")


def test_two_finished_runs_with_equal_axes_both_count():
    runs = [run(n, experiment="x", axes={"seed": 1}, created_at=float(n)) for n in range(2)]

    (chosen,) = choose_runs(Listing(runs), ["x"])

    assert len(chosen.runs) == 2


def test_the_groups_of_an_experiment_have_equal_axes_but_for_the_seed():
    runs = [run(n, axes={"algo_params.lr": 0.1 * (1 + n // 2), "seed": n % 2}) for n in range(4)]

    assert divide([Chosen("sweep", EXPERIMENT, tuple(runs))]) == {"lr=0.1": ["00", "01"], "lr=0.2": ["02", "03"]}
    both = divide([Chosen("a", EXPERIMENT, tuple(runs[:2])), Chosen("b", EXPERIMENT, tuple(runs[1:]))])
    assert list(both) == ["a", "b lr=0.1", "b lr=0.2"]


def test_runs_that_share_a_name_are_a_group_and_single_ones_are_grouped_by_their_settings():
    named = Chosen("ppo", NAME, (run(1), run(2)))
    singles = [Chosen(str(n), RUN, (run(n, {"lr": n // 6, "seed": n}, name="dqn"),)) for n in (4, 5, 6, 7)]

    assert divide([named, *singles]) == {"ppo": ["01", "02"], "lr=0": ["04", "05"], "lr=1": ["06", "07"]}


def test_groups_by_settings_are_sorted_as_numbers():
    runs = tuple(run(n, {"extras.lr": lr}, algo="ppo") for n, lr in enumerate((0.1, 1e-5, 20)))

    assert list(divide([Chosen("x", NAME, runs)], ["lr"])) == ["lr=1e-05", "lr=0.1", "lr=20"]
    assert "ppo lr=1e-05" in divide([Chosen("x", NAME, runs)], ["algo", "lr"])


def test_a_setting_that_may_mean_two_is_refused():
    runs = (run(1, {"actor.lr": 1, "critic.lr": 2}),)

    with pytest.raises(MosaicError, match=r"'lr' may mean several settings: actor\.lr, critic\.lr"):
        divide([Chosen("x", NAME, runs)], ["lr"])


def test_the_return_of_evaluations_comes_before_that_of_training():
    trained = run(1, summary=RunSummary(episodes=10))
    evaluated = run(2, summary=RunSummary(episodes=10, eval_episodes=5))

    assert common_metric([RunGroup("a", (evaluated,))], lambda run: []) == "eval/return"
    assert common_metric([RunGroup("a", (evaluated, trained))], lambda run: []) == "episode/return"
    assert common_metric([], lambda run: []) == "episode/return"


def test_other_returns_are_found_by_their_names_and_else_each_group_is_listed():
    groups = [RunGroup("a", (run(1),)), RunGroup("b", (run(2),))]
    names = {"01": ["losses/value", "rollout/ep_rew_mean"], "02": ["rollout/ep_rew_mean", "lr"]}

    assert common_metric(groups, lambda run: names[run.run_id]) == "rollout/ep_rew_mean"
    with pytest.raises(MosaicError, match=r"b does not have the metric 'losses/value'. a has .*; b has lr, rollout"):
        common_metric(groups, lambda run: names[run.run_id], "losses/value")


def test_the_number_of_a_run_is_said_in_words():
    assert reading_for("eval/return").words("eval/return") == "mean return of the newest evaluation"
    assert (
        reading_for("episode/return").words("episode/return") == "mean of episode/return over the newest 100 episodes"
    )
    assert "last 10 % of the steps" in reading_for("losses/value").words("losses/value")
    assert parse_last("5%") == Reading("last", 5.0)
    for bad in ("0", "0%", "101%", "-3", "x"):
        with pytest.raises(MosaicError, match="is not a number of values"):
            parse_last(bad)


def test_the_last_percents_are_those_of_the_steps():
    trace = Trace.of([10, 50, 95, 100], [1.0, 2.0, 30.0, 40.0], [1, 1, 3, 1])

    assert last_share(trace, Reading("last", 10.0)) == pytest.approx(32.5)


def test_a_run_that_did_not_finish_says_why_it_does_not_count():
    failed = run(1, summary=RunSummary(events=5))
    failed = replace(failed, state=RunState.FAULTED, reason="exit code 1\nTraceback …")

    assert why_left_out(failed, False) == "FAULTED: exit code 1"
    assert why_left_out(failed, True) == ""
    assert why_left_out(replace(failed, state=RunState.EXECUTING), False) == "not over yet (EXECUTING)"


def group(label, values, env="", axis="env steps", last=10):
    trace = Trace.of([0, last], [0.0, 1.0])
    samples = [Sample(run(n, seed=n, env_id=env), value, trace, axis) for n, value in enumerate(values)]
    return SampleGroup(label, tuple(samples))


def compare(*groups, **options):
    return compare_groups(groups, "episode/return", Reading("newest", 1), Options(**options))


def test_returns_of_different_environments_are_not_put_together():
    groups = group("a", [1, 2], "Pong"), group("b", [1, 2], "Boxing")

    with pytest.raises(
        MosaicError, match=r"put together: Boxing, Pong\. Compare those of one with --where 'env_id=Boxing'"
    ):
        compare(*groups)
    with pytest.raises(MosaicError, match="The scale of Pong is not known"):
        compare(*groups, scales={"Boxing": Scale(0, 1, "")})


def test_on_a_common_scale_each_environment_is_a_stratum():
    def both(label, low, high):
        easy, hard = group(label, low, "Easy"), group(label, high, "Hard")
        return SampleGroup(label, (*easy.samples, *hard.samples))

    scales = {"Easy": Scale(0, 1000, ""), "Hard": Scale(0, 10, "")}
    found = compare(both("a", [900, 950, 1000], [5, 6, 7]), both("b", [800, 700, 600], [1, 2, 3]), scales=scales)

    assert found.groups[0].estimates["mean"].value == pytest.approx((0.95 + 0.6) / 2)
    assert found.groups[0].estimates["optimality_gap"].value == pytest.approx(1 - (0.95 + 0.6) / 2)
    assert found.pairs[0].is_clear  # 2 / (20 × 20)
    band = found.groups[0].band
    assert set(band.runs) == {6}
    assert band.middle[-1] == pytest.approx(0.0505)  # curves end at 1: 0.001 of Easy and 0.1 of Hard
    assert found.curve_words == ""
    assert [panel.env for panel in found.panels] == ["Easy", "Hard"]
    assert [panel.bands[1].middle[-1] for panel in found.panels] == [1, 1]  # as they are, not normalised
    assert set(found.panels[0].bands[0].runs) == {3}
    assert list(found.to_dict()["panels"][1]["curves"]) == ["a", "b"]


def test_a_run_that_repeats_another_one_makes_no_difference_clear():
    def repeated(label, value):
        return SampleGroup(label, tuple(Sample(run(n, seed=1), value) for n in range(6)))

    found = compare(repeated("a", 10.0), repeated("b", 5.0))

    assert [len(each.counted) for each in found.groups] == [1, 1]
    assert found.sentences() == ["a and b: +5 with 1 seed each. One seed says nothing about others."]
    assert "a: 5 runs are left out of 6: seed 1 (01) it repeats another run: the same seed" in " ".join(found.warnings)


def test_runs_with_equal_seeds_and_other_values_count_with_a_warning():
    found = compare(SampleGroup("a", tuple(Sample(run(n, seed=1), float(n)) for n in range(4))), group("b", [1, 2]))

    assert len(found.groups[0].counted) == 4
    assert "4 runs have seed 1" in " ".join(found.warnings)


def test_runs_without_seeds_are_no_repeats_of_each_other():
    found = compare(SampleGroup("a", tuple(Sample(run(n), 10.0) for n in range(4))), group("b", [1, 2]))

    assert len(found.groups[0].counted) == 4


def test_curves_over_different_axes_are_not_drawn_together():
    found = compare(group("a", [1, 2]), group("b", [1, 2], axis="episodes"))

    assert found.groups[0].band is None
    assert found.curve_words == "No curves: the steps of some runs count env steps and those of others episodes."


def test_different_axes_have_no_common_step_and_no_comparable_area():
    groups = group("a", [1, 2], last=1000), group("b", [1, 2], axis="episodes", last=10)

    for reading, told in ((Reading("area"), "their areas cannot"), (Reading("newest", 1, 5), "at one step")):
        with pytest.raises(MosaicError, match=f"count env steps and those of others episodes, so .*{told}"):
            compare_groups(groups, "episode/return", reading, Options())
    assert not any("--at-step" in text for text in compare(*groups).warnings)


def test_a_step_at_which_some_runs_have_not_begun_is_not_suggested():
    late = [replace(sample, trace=Trace.of([500, 600], [0.0, 1.0])) for sample in group("b", [1, 2]).samples]

    found = compare(group("a", [1, 2], last=100), SampleGroup("b", tuple(late)))

    assert "The runs end at different steps, from 100 to 600; each value is of the run's own end." in found.warnings
    assert found.curve_words.startswith("No curves: the runs have no steps in common.")


def test_runs_that_count_without_their_nans_are_named():
    some = [replace(sample, has_gaps=sample.run.seed == 1) for sample in group("a", [1, 2]).samples]

    told = compare(SampleGroup("a", tuple(some)), group("b", [1, 2])).warnings

    assert "a: 1 run has values that are NaN or infinite, which do not count: seed 1 (01)." in told
    assert not any(text.startswith("b: 1 run has") for text in told)


def test_groups_without_any_common_metric_are_told_so():
    groups = [RunGroup("a", (run(1),)), RunGroup("b", (run(2),))]

    with pytest.raises(MosaicError, match=r"a has loss; b has lr\. No metric is common to all of them\."):
        common_metric(groups, lambda run: {"01": ["loss"], "02": ["lr"]}[run.run_id])


def test_runs_of_unequal_length_are_told_apart():
    found = compare(group("a", [1, 2], last=100), group("b", [1, 2], last=60))
    longest = compare(group("a", [1, 2], last=100), group("b", [1, 2], last=60), is_longest=True)

    assert found.groups[0].band.step[-1] == 60
    assert longest.groups[0].band.step[-1] == 100
    assert np.isnan(longest.groups[1].band.middle[-1])
    assert "The curves end at step 60, where the shortest run (b, seed 0) ends" in found.curve_words
    assert any("--at-step 60" in text for text in found.warnings)
    assert not any("--" in note.text for note in (*found.notes, found.curve_note))


def test_areas_are_those_of_the_steps_that_all_have():
    long, short = with_areas([group("a", [None], last=100), group("b", [None], last=50)])

    assert long.samples[0].value == pytest.approx(0.25)
    assert short.samples[0].value == pytest.approx(0.5)
