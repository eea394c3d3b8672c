import os
import subprocess
import sys

import pytest

from mosaic.model.errors import BadRoot
from mosaic.model.owner import refuse_foreign, user_name


def test_the_users_own_folder_and_a_missing_one_are_accepted(tmp_path):
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "not" / "there")


def test_the_error_for_a_folder_of_another_user_names_both_users(foreign_folder):
    with pytest.raises(BadRoot) as refused:
        refuse_foreign(foreign_folder)

    owner, me = user_name(foreign_folder.stat().st_uid), user_name(os.geteuid())
    assert f"{foreign_folder} belongs to {owner}, and you are {me}. Set MOSAIC_HOME to" in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_error_for_a_folder_that_cannot_be_entered_names_it_and_its_owner(home):
    inside = home / "deep" / "state"
    inside.mkdir(parents=True)

    shown = subprocess.run(
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

    assert f"is inside {home}, which belongs to root and which you" in shown.stderr


def test_a_user_without_a_name_is_shown_by_number():
    assert user_name(4_000_000_000) == "user 4000000000"
