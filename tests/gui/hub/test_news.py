from dataclasses import dataclass

from mosaic.gui.hub.connection import RunsChange


@dataclass(frozen=True)
class Run:
    run_id: str
    step: int = 0


A, A2, B, C = Run("a"), Run("a", 2), Run("b"), Run("c")


def test_two_changes_become_one():
    both = RunsChange((A, B)).followed_by(RunsChange((A2, C), deleted=("b",)))

    assert both == RunsChange((A2, C), ("b",))


def test_a_whole_list_replaces_what_waited():
    assert RunsChange((A, B), ("c",)).followed_by(RunsChange((C,), is_whole=True)) == RunsChange((C,), is_whole=True)


def test_a_change_after_a_whole_list_is_still_whole():
    both = RunsChange((A, B), is_whole=True).followed_by(RunsChange((A2,), ("b",)))

    assert both == RunsChange((A2,), ("b",), is_whole=True)


def test_a_whole_list_names_the_runs_that_disappeared():
    runs = {"a": A, "b": B}

    change = RunsChange((A2, C), is_whole=True).applied_to(runs)

    assert runs == {"a": A2, "c": C}
    assert change.deleted == ("b",)


def test_an_empty_change_is_nothing():
    assert not RunsChange()
    assert RunsChange(is_whole=True)
