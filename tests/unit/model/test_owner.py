import os
import subprocess
import sys

import pytest

from mosaic.model.errors import BadRoot
from mosaic.model.owner import refuse_foreign, user_name


def test_a_folder_of_ones_own_and_one_that_is_not_there_yet_are_fine(tmp_path):
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "not" / "there")


def test_a_folder_of_another_user_is_named_with_both_users(foreign_folder):
    with pytest.raises(BadRoot) as refused:
        refuse_foreign(foreign_folder)

    owner, me = user_name(foreign_folder.stat().st_uid), user_name(os.geteuid())
    assert f"{foreign_folder} belongs to {owner}, and you are {me}. Set MOSAIC_HOME to" in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_is_closed_above_says_which_one_and_whose(home):
    inside = home / "deep" / "state"
    inside.mkdir(parents=True)

    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; from pathlib import Path; from mosaic.model.owner import refuse_foreign; "
            f"os.setuid(65534); refuse_foreign(Path({str(inside)!r}))",
        ],
        capture_output=True,
        text=True,
        cwd="/",
    )

    assert f"lies in {home}, which belongs to root and is closed to you" in told.stderr


def test_a_user_without_a_name_is_told_by_number():
    assert user_name(4_000_000_000) == "user 4000000000"
