"""The curves of a comparison over several environments: one panel for each, wherever they are drawn."""

from dataclasses import replace

import pytest

from mosaic.cli.compare_figure import save_figure
from mosaic.cli.compare_table import render
from mosaic.client.run import Run
from mosaic.present.compare_report import render_report
from mosaic.present.compared_samples import Sample, SampleGroup
from mosaic.present.compared_value import Reading
from mosaic.present.group_comparison import Options, compare_groups
from mosaic.stats.scales import Scale
from mosaic.stats.traces import Trace
from mosaic.wire import mosaic_pb2 as pb

PLAIN = Run.from_wire(pb.RunInfo(run_id="01", name="toy", worker_name="toy", state=pb.TERMINATED))


def compared(*envs):
    def group(label, value):
        runs = [replace(PLAIN, seed=seed, env_id=env) for env in envs for seed in range(3)]
        trace = Trace.of([0, 50, 100], [0.0, value / 2, value])
        return SampleGroup(label, tuple(Sample(run, value + run.seed, trace, "env steps") for run in runs))

    scales = {env: Scale(0, 100 * (1 + at), "") for at, env in enumerate(envs)}
    groups = [group("ppo", 90.0), group("dqn", 40.0)]
    return compare_groups(groups, "episode/return", Reading("newest", 1), Options(scales=scales))


def test_each_environment_has_a_panel_in_the_terminal_and_the_report():
    found = compared("Boxing", "<Pong>")

    text, page = render(found, 100), render_report(found, {})

    assert "episode/return, normalised, over env steps" in text
    assert "Boxing: episode/return over env steps" in text
    assert "<Pong>: episode/return over env steps" in text
    assert "<h3>Boxing</h3>" in page
    assert "<h3>&lt;Pong&gt;</h3>" in page
    assert not any(
        "not independent" in warning for warning in found.warnings
    )  # equal seeds, but not in one environment


def test_a_terminal_shows_the_first_panels_and_counts_the_others():
    text = render(compared(*(f"Env{n}" for n in range(6))), 100)

    assert "Env3: episode/return" in text
    assert "Env4: episode/return" not in text
    assert "… and 2 more environments: --report has all of them" in text


def test_one_environment_has_no_panels():
    found = compared("Pong")

    assert "Pong: episode/return" not in render(found, 100)
    assert "<h3>" not in render_report(found, {})


@pytest.mark.timeout(600)  # the first import of matplotlib and of its fonts, on a busy machine
def test_a_figure_has_the_average_and_a_panel_for_each_environment(tmp_path):
    pytest.importorskip("matplotlib")

    save_figure(compared("A", "B", "C"), str(tmp_path / "plot.svg"))

    text = (tmp_path / "plot.svg").read_text()
    assert [f">{env}: IQM, 95 %" in text for env in "ABC"] == [True] * 3
    assert text.count("ppo (9 seeds)") == 1
    assert text.count("ppo (3 seeds)") == 3
    assert text.count("episode/return (normalised)") == 1
