"""Asking for runs, editing them and comparing them, as a user does it: the real command and a real daemon."""

import csv
import io
import json

import pytest

from mosaic.cli.main import main
from mosaic.model.errors import BadConfig, BadQuery, UnknownRun
from mosaic.model.states import RunState


@pytest.fixture(scope="module")
def lab(shared_lab):
    """Four runs that are over, two of them in an experiment."""
    for seed in (1, 2, 3):
        worker = {"module": "toy_worker.cli", "config": {"steps": 60, "episode_length": 20, "seed": seed}}
        member = {"experiment": {"name": "lengths", "axes": {"seed": seed}}} if seed < 3 else {}
        shared_lab.client.submit_run(
            {"metadata": {"worker": worker, "run_name": f"run-{seed}", "tags": ["t"], **member}}
        )
    shared_lab.submit("short", steps=10, metrics_every=5)
    for run in shared_lab.client.list_runs().runs:
        shared_lab.wait_for(run, RunState.TERMINATED)
    return shared_lab


@pytest.fixture
def mosaic(lab, monkeypatch, capsys):
    monkeypatch.setenv("MOSAIC_HOME", str(lab.root.path))

    def call(*words, code=0):
        assert main(words) == code
        output = capsys.readouterr()
        return output.out if code == 0 else output.err

    return call


def names(listed):
    return [run["name"] for run in json.loads(listed)]


def test_runs_are_listed_by_condition_order_and_columns(mosaic):
    listed = mosaic(
        "runs", "--where", "steps>50 and seed!=2", "--sort", "-seed", "--columns", "name,seed,episode_length"
    )

    rows = [line.split() for line in listed.splitlines()]
    assert rows[0] == ["RUN", "NAME", "SEED", "EPISODE_LENGTH"]
    assert [row[1:] for row in rows[1:]] == [["run-3", "3", "20"], ["run-1", "1", "20"]]


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_a_setting_that_a_field_hides_is_named_when_nothing_matches(mosaic, lab, capsys, output):
    main(["runs", "--where", "steps=10000 and seed=1", *output])
    said = capsys.readouterr().err

    assert said == "mosaic: steps is a field here; the setting is setting.steps\n"
    main(["runs", "--where", "steps>=60", *output])
    assert capsys.readouterr().err == ""
    assert len(names(mosaic("runs", "--where", "setting.steps=60", "--json"))) == 3


def test_an_experiment_and_a_condition_select_together(mosaic):
    assert names(mosaic("runs", "--experiment", "lengths", "--json")) == ["run-2", "run-1"]
    assert names(mosaic("runs", "--experiment", "lengths", "--where", "seed=1 or seed=3", "--json")) == ["run-1"]
    assert "There is no experiment 'lenths'. Did you mean 'lengths'?" in mosaic(
        "runs", "--experiment", "lenths", code=1
    )


def test_csv_and_json_have_the_plain_values(mosaic):
    rows = list(
        csv.reader(
            io.StringIO(
                mosaic("runs", "--csv", "--columns", "seed,tags,experiment", "--sort", "seed", "--where", "seed>0")
            )
        )
    )
    found = json.loads(mosaic("runs", "--json", "--columns", "seed,tags", "--where", "name=run-1"))

    assert rows[0] == ["run_id", "seed", "tags", "experiment"]
    assert [row[1:] for row in rows[1:4]] == [["1", "t", "lengths"], ["2", "t", "lengths"], ["3", "t", ""]]
    assert found == [{"run_id": rows[1][0], "seed": 1, "tags": ["t"]}]


def test_a_table_for_programs_says_that_runs_are_left_out(lab, mosaic, monkeypatch, capsys):
    assert main(["runs", "--csv", "--limit", "1"]) == 0

    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 2
    assert output.err == "mosaic: 1 of 4 runs. Add --all for the others.\n"


def test_a_condition_that_does_not_parse_gets_a_caret_and_exit_code_2(mosaic):
    assert mosaic("runs", "--where", "seed=1 and return>", code=2) == (
        "mosaic: The condition is not valid: expected a value after >, not the end.\n"
        "  seed=1 and return>\n"
        "                    ^\n"
    )
    assert "Did you mean 'episode_length'" in mosaic("runs", "--where", "episode_lenght=2", code=2)


def test_the_client_sorts_more_runs_than_one_reply_has_as_the_daemon_does(lab):
    few = lab.client.list_runs(limit=4, where="worker=toy", sort="-return,seed", columns=["seed"])
    every = lab.client.list_runs(where="worker=toy", sort="-return,seed", columns=["seed"])

    assert [run.run_id for run in few.runs] == [run.run_id for run in every.runs]
    assert few.runs[0].chosen == {"seed": every.runs[0].chosen["seed"]}
    with pytest.raises(BadQuery):
        lab.client.list_runs(where="seed=")


def test_metrics_of_a_live_run_can_be_asked_for(lab, mosaic):
    live = lab.submit("live", steps=100_000, rate=50, metrics_every=1)
    lab.wait_until_run(live, lambda run: bool(run.summary.last_values), "a metric")
    name = next(iter(lab.client.get_run(live.run_id).summary.last_values))

    found = names(mosaic("runs", "--where", f'state=live and "{name}" is not missing', "--json"))

    lab.client.cancel_run(live.run_id)
    lab.wait_until_over(live)
    lab.client.delete_run(live.run_id)
    assert found == ["live"]


def test_a_run_is_renamed_noted_and_tagged_and_watchers_see_it(lab, mosaic):
    run = lab.client.get_run("short")
    watching = lab.client.watch_runs(run_ids=[run.run_id], interval_ms=50)
    next(watching)

    mosaic("rename", "short", "shorter")
    mosaic("note", "shorter", "two", "words")
    mosaic("tag", "shorter", "run-1", "+paper", "-t")

    seen = next(item.runs[0] for item in watching if item.runs and item.runs[0].tags)
    assert (seen.name, seen.note, seen.tags) == ("shorter", "two words", ("paper",))
    assert mosaic("note", "shorter") == "two words\n"
    assert names(mosaic("runs", "--where", "tag=paper", "--json")) == ["shorter", "run-1"]
    assert "\nnote         two words\n" in mosaic("show", "shorter")
    assert "\nexperiment   lengths: seed=1\n" in mosaic("show", "run-1")
    mosaic("note", "shorter", "")
    assert mosaic("note", "shorter") == ""


def test_of_an_edit_that_is_refused_nothing_is_done(lab):
    before = [run.to_dict() for run in lab.client.list_runs().runs]

    with pytest.raises(UnknownRun):
        lab.client.edit_run(["run-1", "nosuch"], add_tags=["x"])
    with pytest.raises(BadConfig, match="one run at a time"):
        lab.client.edit_run(["run-1", "run-2"], name="x")
    with pytest.raises(BadConfig, match="1 to 120 printable"):
        lab.client.edit_run("run-1", name="\x1b[31m")
    with pytest.raises(BadConfig, match="control characters"):
        lab.client.edit_run("run-1", note="\x1b]0;title\x07")
    with pytest.raises(BadConfig, match="added and removed"):
        lab.client.edit_run("run-1", add_tags=["a"], remove_tags=["a"])
    with pytest.raises(BadConfig, match="the maximum is 32"):
        lab.client.edit_run("run-1", add_tags=[f"t{n}" for n in range(40)])

    assert [run.to_dict() for run in lab.client.list_runs().runs] == before


def test_two_runs_are_compared(mosaic):
    text = mosaic("diff", "run-1", "run-2")
    found = json.loads(mosaic("diff", "run-1", "run-2", "--json", "--all"))

    assert [line.split() for line in text.splitlines()][1:] == [["seed", "1", "2"]]
    assert found["differ"]
    keys = {row["key"]: row for row in found["groups"]["packages"]}
    assert (keys["Python"]["differs"], found["problems"]) == (False, [])
    assert mosaic("diff", "run-1", "run-1").startswith("Both are run 01")
    assert "name two runs" in mosaic("diff", "run-1", code=2)
