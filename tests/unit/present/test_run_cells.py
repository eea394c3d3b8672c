"""The cells of the list of runs, for every state and for hostile names."""

import time

import pytest

from mosaic.model.states import RunState
from mosaic.present.run_cells import COLUMNS, GLYPH, KIND, Surroundings, column, name_of

EVIL = "\x1b[2J<b>bold</b>\r\n\u202egnp.exe"


def text(key, run, **around):
    return column(key).text(run, Surroundings(**around))


@pytest.mark.parametrize("state", [state.value for state in RunState])
def test_every_state_has_a_glyph_and_a_word(make_run, state):
    run = make_run(state)

    shown = text("state", run)

    assert shown.startswith(GLYPH[KIND[run.state]] + " ")
    assert column("state").spoken(run, Surroundings()) == f"State: {shown[2:]}"


def test_a_run_that_is_being_cancelled_says_so(make_run):
    assert text("state", make_run(cancel_requested=True)) == "▶ cancelling"
    assert text("state", make_run("CANCELLED", cancel_requested=True)) == "⊘ cancelled"


@pytest.mark.parametrize(
    ("fields", "summary", "expected"),
    [
        ({"total_steps": 100}, {"env_steps": 62, "steps_per_s": 2}, "62% 19s"),
        ({"total_steps": 100}, {"env_steps": 62}, "62%"),
        ({}, {"env_steps": 12345}, "12,345 steps"),
        ({}, {}, ""),
        ({"state": "TERMINATED", "total_steps": 100}, {"env_steps": 98}, "100%"),
    ],
)
def test_progress_is_a_share_with_the_time_left_or_a_number_of_steps(make_run, fields, summary, expected):
    assert text("progress", make_run(summary=summary, **fields)) == expected


def test_numbers_are_short_and_exact_enough(make_run):
    training = make_run(summary={"mean_return": 212.345, "mean_over": 10, "steps_per_s": 4310.2})
    evaluation = make_run(
        "TERMINATED", area="evals", summary={"eval_mean": 481.2, "eval_interval": 12.1, "eval_episodes": 20}
    )

    assert (text("return", training), text("rate", training)) == ("212.3", "4,310")
    assert (text("return", evaluation), text("rate", evaluation)) == ("481.2 ±12", "")
    assert text("seed", make_run(seed=0)) == "0"
    assert text("seed", make_run()) == ""


def test_a_gpu_has_its_number_if_it_is_known(make_run):
    run = make_run(granted=["GPU-a", "GPU-b"])

    assert text("gpu", run) == "×2"
    assert text("gpu", run, gpus={"GPU-a": "0: H200", "GPU-b": "3: H200"}) == "0, 3"
    assert text("gpu", make_run()) == ""


def test_age_and_size_come_from_the_surroundings(make_run):
    run = make_run(created_at=1000.0)

    assert text("age", run, now=1133.0) == "2m13s"
    assert (text("size", run), text("size", run, sizes={run.run_id: 41_200_000})) == ("", "41.2 MB")


@pytest.mark.parametrize("shown", COLUMNS, ids=lambda shown: shown.key)
@pytest.mark.parametrize("state", ["EXECUTING", "FAULTED"])
def test_no_cell_contains_control_characters_or_a_second_line(make_run, shown, state):
    run = make_run(
        state,
        name=EVIL,
        worker_name=EVIL,
        algo=EVIL,
        env_id=EVIL,
        reason=EVIL,
        tags=[EVIL],
        waiting_for=EVIL,
        life=EVIL,
    )
    around = Surroundings(sizes={run.run_id: 5})

    for said in (shown.text(run, around), shown.spoken(run, around)):
        assert said.isprintable()
    assert all(line.isprintable() for line in shown.tip(run, around).split("\n"))


def test_a_name_of_500_letters_is_whole_and_its_tooltip_is_not_endless(make_run):
    run = make_run("FAULTED", name="n" * 500, reason="r" * 100_000)

    assert text("name", run) == "n" * 500
    assert len(column("note").tip(run, Surroundings())) < 1000


@pytest.mark.parametrize(
    ("name", "worker", "expected"), [("a", "toy", "a"), ("", "toy", "toy"), ("\n \t", "toy", "ID")]
)
def test_a_run_is_called_by_its_name_its_worker_or_its_id(make_run, name, worker, expected):
    assert name_of(make_run(run_id="ID", name=name, worker_name=worker)) == expected


def test_keys_are_unique_and_the_four_that_always_stay_have_rank_0():
    keys = [shown.key for shown in COLUMNS]

    assert len(set(keys)) == len(keys)
    assert {shown.key for shown in COLUMNS if shown.rank == 0} == {"name", "state", "progress", "return"}


def test_the_return_of_an_evaluation_of_several_operators_is_empty(make_run):
    run = make_run("TERMINATED", area="evals", summary={"eval_episodes": 60})

    assert text("return", run) == ""
    assert "without a common mean" in column("return").tip(run, Surroundings(now=time.time()))
