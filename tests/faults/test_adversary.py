"""The adversary's chosen cases: damaged files of one run, or of the root, are not noticed by other runs."""

import json
import os
import stat

import pytest
from adversary import CHOSEN, Case, chosen_cases, make_case, walked
from adversary_session import Session, users
from adversary_trial import ABSENT, IMPOSSIBLE, file_in, is_left
from damage import DAMAGES, inflict

SEED = 2026
SLICES = 4  # each has a MOSAIC of its own
CASES = chosen_cases(SEED)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", range(SLICES))
def test_other_runs_do_not_notice_damaged_files(number):
    user = users()[number % len(users())]

    verdicts = list(Session(user).verdicts(CASES[number::SLICES]))

    assert [said(verdict) for verdict in verdicts if verdict["violations"]] == []
    assert sum(verdict["outcome"] not in (ABSENT, IMPOSSIBLE) for verdict in verdicts) > len(verdicts) / 3


def said(verdict):
    case = Case(**verdict["case"])
    again = f"benchmarks/adversary.py --seed {case.seed} --case {case.number} --user '{verdict['user']}'"
    return f"{case}: {verdict['violations']} again: {again}"


# ---- the adversary itself


def test_the_same_number_gives_the_same_case_and_the_walk_has_all_pairs():
    assert make_case(1, 5) == make_case(1, 5)
    assert {(case.place, case.damage) for case in (make_case(1, n) for n in range(len(walked())))} == set(walked())
    assert len({str(make_case(1, number)) for number in range(2_000)}) > len(walked())


def test_the_chosen_cases_are_part_of_the_walk():
    assert 50 <= len(CASES) <= 66
    assert len(CASES) == sum(map(len, CHOSEN.values()))
    assert {case.then for case in CASES} == {"finish", "cancel", "restart", "kill holder"}
    assert {case.by for case in CASES} == {"worker", "outsider"}


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_damage_is_proven(tmp_path, kind):
    path, donor = tmp_path / "file.json", tmp_path / "donor"
    path.write_text('{"attempt": 1, "words": "of this run"}')
    donor.write_text('{"attempt": 1, "words": "of another"}')

    proof = inflict(kind, path, donor)

    if kind == "other owner" and os.geteuid():
        assert proof["refused"] == "only root can give a file away"
    else:
        assert proof["refused"] == ""
        assert proof["before"] != proof["after"]


def test_a_damage_that_does_not_apply_is_refused_in_words(tmp_path):
    assert inflict("truncated", tmp_path / "nothing", tmp_path)["refused"] == "it does not exist"
    assert inflict("huge", tmp_path, tmp_path)["refused"] == "it is not a regular file"


def test_no_damage_follows_a_link(tmp_path):
    precious = tmp_path / "precious"
    for kind in DAMAGES:
        precious.write_text("unharmed")
        path = tmp_path / kind.replace("/", " ")
        path.symlink_to(precious)

        inflict(kind, path, tmp_path / "no donor")

        assert precious.read_text() == "unharmed", kind
        assert stat.S_IMODE(precious.stat().st_mode) & 0o400, kind
        assert precious.stat().st_uid == os.geteuid(), kind


def test_the_bytes_of_a_folder_are_those_of_its_first_file(tmp_path):
    for name in ("1", "0"):
        (tmp_path / name).write_text("a piece of the reserve")

    assert file_in(tmp_path, "truncated") == tmp_path / "0"
    assert file_in(tmp_path, "missing") == tmp_path
    assert file_in(tmp_path / "0", "truncated") == tmp_path / "0"


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link to /dev/zero", "huge", "mode 000"])
def test_damage_that_is_still_there_uses_up_the_ground(tmp_path, kind):
    path = tmp_path / "file"
    path.write_text("whole")
    case = Case(0, 0, "root.pid", kind, "outsider", "restart")

    after = inflict(kind, path, tmp_path)["after"]
    assert is_left(case, after, path)

    path.rename(tmp_path / "aside")
    path.write_text("whole again")
    assert not is_left(case, after, path)


def test_a_case_survives_its_journal():
    case = make_case(3, 4)

    assert Case(**json.loads(json.dumps(case.to_dict()))) == case
