"""Run references: an id, the start of one, a name, or `last`."""

import pytest

from mosaic.model.errors import AmbiguousRun, UnknownRun
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry

FIRST, SECOND, THIRD = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW", "01BRZ3NDEKTSV4RRFFQ69G5FAX"


@pytest.mark.parametrize("start", [THIRD, THIRD.lower(), "01B", "01b", THIRD[:-1]])
def test_an_id_or_a_unique_start_of_one_is_accepted_in_either_case(registry, add, start):
    add(FIRST), add(SECOND), add(THIRD)

    assert registry.find(start).run_id == THIRD


def test_an_exact_name_is_accepted_and_a_part_of_one_is_not(registry, add):
    run = add(name="cartpole seed 1")
    add(name="cartpole seed 2")

    assert registry.find("cartpole seed 1").run_id == run
    for part in ("cartpole", "Cartpole seed 1", "cartpole seed 1 "):
        with pytest.raises(UnknownRun):
            registry.find(part)


def test_last_is_the_run_submitted_last_whatever_its_id_or_state(registry, add):
    # These ids do not sort by time: users may choose their own.
    third, second, first = add(THIRD), add(FIRST), add(SECOND)
    registry.move(first, RunState.FAULTED)

    assert registry.find("last").run_id == first
    assert [registry.find(f"last~{n}").run_id for n in range(3)] == [first, second, third]


def test_last_of_too_few_runs_says_how_many_there_are(registry, add):
    with pytest.raises(UnknownRun, match=r"'last'\. No run has been submitted yet\. Start one with: mosaic run"):
        registry.find("last")

    add(), add()

    with pytest.raises(UnknownRun, match=r"'last~2'. There are 2 runs: the oldest is last~1"):
        registry.find("last~2")


def test_of_two_meanings_the_first_rule_decides(registry, add):
    a_prefix = add(THIRD, name="whatever")
    a_name = add(FIRST, name="01B")
    an_id = add(SECOND, name=THIRD)
    named_last, newest = add(name="last"), add(name="last~1")

    assert registry.find(THIRD).run_id == a_prefix  # an id before the name that looks like it
    assert registry.find("01B").run_id == a_name  # a name before the start of an id
    assert registry.find("last").run_id == newest  # `last` before a name
    assert registry.find("last~1").run_id == named_last
    for run in (an_id, named_last, newest):
        assert registry.find(run).run_id == run  # and everything by its id


def test_a_shared_start_lists_the_runs_with_name_state_and_age(tmp_path, make_config):
    now = 1000.0
    registry = Registry(tmp_path / "registry.db", now=lambda: now)
    registry.add(make_config(FIRST, name="old one"))
    now += 7200
    registry.add(make_config(SECOND, name="new one"))
    registry.move(SECOND, RunState.CANCELLED)

    with pytest.raises(AmbiguousRun, match="Several runs") as refusal:
        registry.find("01ARZ")

    registry.close()
    head, *lines = str(refusal.value).splitlines()
    assert "'01ARZ'" in head
    assert [line.split() for line in lines] == [
        [SECOND, "new", "one", "CANCELLED", "0", "s", "ago"],
        [FIRST, "old", "one", "INIT", "2", "h", "ago"],
    ]


def test_a_shared_name_is_refused_and_the_newest_does_not_win(registry, add):
    runs = [add(name="toy") for _ in range(12)]

    with pytest.raises(AmbiguousRun, match="Several runs have the name 'toy'") as refusal:
        registry.find("toy")

    lines = str(refusal.value).splitlines()[1:]
    assert [line.split()[0] for line in lines] == [*runs[:-9:-1], "…"]


def test_a_list_of_candidates_with_long_names_fits_into_a_grpc_status(registry, add):
    for _ in range(12):
        add(name="漢" * 120)

    with pytest.raises(AmbiguousRun) as refusal:
        registry.find("漢" * 120)

    assert len(str(refusal.value).encode()) < 2000


@pytest.mark.parametrize(
    ("reference", "near"),
    [("cartpol", "'cartpole-1' or 'cartpole-2'"), ("pendlum", "'pendulum'"), ("PEND", "'pendulum'")],
)
def test_an_unknown_reference_suggests_names_and_the_listing(registry, add, reference, near):
    for name in ("pendulum", "cartpole-2", "cartpole-1"):
        add(name=name)

    with pytest.raises(UnknownRun, match=f"no run '{reference}'. Did you mean {near}.*mosaic runs"):
        registry.find(reference)


@pytest.mark.parametrize("reference", ["", "02", "%", "01ARZ_", "last~", "last~-1", "last~1x", "LAST", "x" * 1_000_000])
def test_a_reference_that_matches_nothing_is_refused(registry, add, reference):
    add(FIRST)

    with pytest.raises(UnknownRun):
        registry.find(reference)
