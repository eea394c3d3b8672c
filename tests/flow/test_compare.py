"""`mosaic compare` with a real daemon and toy runs of experiments."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lab import Lab

from mosaic.cli.main import main
from mosaic.model.states import RunState

LENGTHS = (40, 50)
SEEDS = range(4)


def member(lab, experiment, axes, name="", **config):
    metadata = {
        "worker": {"module": "toy_worker.cli", "config": {**config, **axes}},
        "experiment": {"name": experiment, "axes": axes},
    }
    named = {"run_name": name} if name else {}
    return lab.client.submit_run({"metadata": {**metadata, **named}, "payload": {}})


@pytest.fixture(scope="module")
def lab():
    """An experiment of two groups with four seeds and a FAULTED one, a live run, and runs of one name."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    runs = [
        member(lab, "lengths", {"episode_length": length, "seed": seed}, steps=3000 if seed else 2500)
        for length in LENGTHS
        for seed in SEEDS
    ]
    runs.append(member(lab, "lengths", {"episode_length": 50, "seed": 9}, steps=3000, crash_at=500))
    runs += [lab.submit(name="twins", steps=1000, seed=seed) for seed in (1, 1)]
    runs += [lab.submit(name="silent", steps=1000, no_telemetry=True)]
    for run in runs:
        lab.wait_until_over(run)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mosaic(lab, tmp_path, monkeypatch, capsys):
    """The command line, in this process: an interpreter for each command would take most of the time."""
    monkeypatch.setenv("MOSAIC_HOME", str(lab.root.path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        found = main(words)
        printed = capsys.readouterr()
        assert found == code, f"{printed.out}{printed.err}"
        return printed.out if code == 0 else printed.err

    return run


def test_an_experiment_is_compared_with_intervals_sentences_and_curves(mosaic):
    text = " ".join(mosaic("compare", "lengths", "--last", "10%").split())

    assert "mean of episode/return over the last 10 % of the env steps" in text
    assert "episode_length=40 4 39" in text
    assert "episode_length=50 4 of 5 4" in text
    assert "episode_length=50 beats episode_length=40 by 9." in text
    assert "in IQM with 4 seeds each, probability of improvement 1.00." in text
    assert "episode_length=50: 1 run is left out of 5: seed 9" in text
    assert "FAULTED: exit code 1." in text
    assert "The curves end at step 2,4" in text
    assert "⠉" in text


def test_json_has_every_number_and_every_run(mosaic):
    found = json.loads(mosaic("compare", "lengths", "--json"))

    assert [group["group"] for group in found["groups"]] == ["episode_length=40", "episode_length=50"]
    short, long = found["groups"]
    assert (short["n"], long["n"], long["of"]) == (4, 4, 5)
    assert short["iqm"]["interval"][0] <= short["iqm"]["value"] <= short["iqm"]["interval"][1]
    assert [run["left_out"] for run in long["runs"] if run["state"] == "FAULTED"] == ["FAULTED: exit code 1"]
    assert [run["seed"] for run in short["runs"]] == list(SEEDS)
    assert len(short["curve"]["step"]) == len(short["curve"]["low"]) > 30
    (pair,) = found["comparisons"]
    assert pair["clear"]
    assert pair["difference"] < 0
    assert pair["sentence"].startswith("episode_length=50 beats")


def test_unfinished_runs_count_if_that_is_wanted(mosaic):
    found = json.loads(mosaic("compare", "lengths", "--unfinished", "--json"))

    assert found["groups"][1]["n"] == 5
    assert any("end at different steps" in text for text in found["warnings"])


def test_values_at_a_step_and_areas_use_the_same_steps_for_all(mosaic):
    at_step = json.loads(mosaic("compare", "lengths", "--at-step", "1000", "--last", "5", "--json"))
    area = json.loads(mosaic("compare", "lengths", "--auc", "--json"))
    late = json.loads(mosaic("compare", "lengths", "--at-step", "2800", "--json"))

    assert at_step["value"] == "mean of episode/return over the newest 5 episodes up to step 1,000"
    assert at_step["groups"][0]["mean"]["value"] < area["groups"][0]["mean"]["value"] + 10
    assert area["value"].startswith("area under the curve of episode/return")
    assert "ends at step 2,480, before 2,800" in late["groups"][0]["runs"][0]["left_out"]


def test_the_newest_values_are_exact_also_where_a_curve_has_fewer_points(lab, mosaic):
    run = lab.wait_until_over(lab.submit(name="long", steps=60_000, episode_length=10, metrics_every=0, seed=3))
    returns = [event.total_reward for event in lab.client.stream_episodes(run.run_id)]

    found = json.loads(mosaic("compare", run.run_id, "twins", "--last", "37", "--json"))

    assert found["groups"][0]["group"] == "twins"
    assert found["groups"][1]["runs"][0]["value"] == pytest.approx(sum(returns[-37:]) / 37)


def test_groups_by_a_setting_take_all_runs(mosaic):
    found = json.loads(mosaic("compare", "lengths", "twins", "--by", "episode_length", "--json"))

    assert [(g["group"], g["of"]) for g in found["groups"]] == [("episode_length=40", 4), ("episode_length=50", 7)]
    assert any("2 runs have seed 1. Runs with equal seeds are not independent" in text for text in found["warnings"])
    assert any("it repeats another run: the same seed, the same value" in text for text in found["warnings"])


def test_a_condition_leaves_only_the_runs_that_meet_it(mosaic):
    found = json.loads(mosaic("compare", "lengths", "--where", "seed<2", "--json"))

    assert [run["seed"] for group in found["groups"] for run in group["runs"]] == [0, 1, 0, 1]


def test_runs_with_equal_settings_but_for_the_seed_are_one_group(lab, mosaic):
    ids = [run.run_id for run in lab.client.list_runs().runs if run.experiment == "lengths"]

    found = json.loads(mosaic("compare", *ids, "--json"))

    labels = [group["group"] for group in found["groups"]]
    assert len(labels) == 5  # 2 lengths, of which one seed has fewer steps, and the one that crashes
    assert any("episode_length=40" in label for label in labels)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "lenghts"), "There is no run and no experiment 'lenghts'. Did you mean"),
        (("compare", "twins", "--experiment"), "There is no experiment 'twins' with runs. Known: lengths."),
        (("compare", "lengths", "--by", "episode_lenght"), "has the setting 'episode_lenght'. Did you mean"),
        (("compare", "lengths", "--metric", "nothing"), "do not have the metric 'nothing'. episode_length=40 has"),
        (("compare", "lengths", "silent"), "they do not all have a return."),
        (("compare", "silent"), "There is only one run to compare: silent."),
        (("compare", "lengths", "--where", "seed>900"), "No run of 'lengths' meets the condition seed>900."),
        (("compare", "lengths", "--last", "all"), "'all' is not a number of values"),
        (("compare", "lengths", "--at-step", "9000"), "No run has a value to compare."),
        (("compare", "lengths", "--save", "plot.gif"), "'plot.gif' does not end in .svg, .png or .pdf."),
        (("compare", "lengths", "--report", "no/such/folder.html"), "no/such does not exist. Create it first"),
        (("compare", "lengths", "--normalise"), "is not known. Give the returns that stand for 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_sentence(mosaic, words, told):
    text = mosaic(*words, code=1)

    assert told in text
    assert "Traceback" not in text
    assert len(text.strip().splitlines()) == 1


def test_a_live_run_is_named_and_left_out(lab, mosaic):
    live = lab.submit(name="live", steps=1_000_000, rate=200)
    lab.wait_for(live, RunState.EXECUTING)

    text = " ".join(mosaic("compare", "lengths", "live").split())
    nothing = mosaic("compare", "live", lab.client.get_run("live").run_id, "--by", "seed", code=1)
    lab.client.cancel_run(live.run_id)

    assert "live: 1 run is left out of 1" in text
    assert "not over yet (EXECUTING)" in text
    assert "only one run" in nothing


@pytest.mark.timeout(600)  # the first import of matplotlib and of its fonts, on a busy machine
def test_a_figure_is_saved_as_its_ending_says(mosaic, tmp_path):
    pytest.importorskip("matplotlib")
    for ending, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        mosaic("compare", "lengths", "--save", f"plot.{ending}")

        assert (tmp_path / f"plot.{ending}").read_bytes().startswith(start)
    assert b"episode_length=40 (4 seeds)" in (tmp_path / "plot.svg").read_bytes()


def test_without_matplotlib_the_command_that_installs_it_is_told(mosaic, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    text = mosaic("compare", "lengths", "--save", "plot.svg", code=1)

    assert "pip install 'mosaic-rl[plots]'" in text
    assert not (tmp_path / "plot.svg").exists()


def test_the_report_is_one_page_that_needs_nothing_else(mosaic, tmp_path):
    mosaic("compare", "lengths", "--report", "report.html")

    page = (tmp_path / "report.html").read_text()
    for heading in (
        "Results",
        "Curves",
        "Performance profiles",
        "Settings that differ",
        "Every run",
        "Where this comes",
    ):
        assert f"<h2>{heading}" in page
    assert "seed 9" in page
    assert "FAULTED" in page
    assert "crash_at" in page
    assert not any(word in page for word in ("<script", "src=", "href=", "http:", "https:"))


@pytest.mark.timeout(600)
@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is missing: apt-get install chromium")
def test_a_browser_shows_the_report(mosaic, tmp_path):
    from PIL import Image

    mosaic("compare", "lengths", "--report", "report.html")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
    size = ("--window-size=1000,1400", f"--screenshot={tmp_path / 'report.png'}")
    page = (tmp_path / "report.html").as_uri()
    subprocess.run(["chromium", *options, *size, page], check=True, capture_output=True, timeout=500)

    with Image.open(tmp_path / "report.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert {(0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)} <= colours  # the curves of both groups
