"""Every worker of this repository has the layout that docs/howto/new-worker.md describes."""

from pathlib import Path

import pytest
from mosaic_sdk.testing import assert_layout, missing_files

WORKERS = sorted(path.parent for path in (Path(__file__).parents[1] / "workers").glob("*/pyproject.toml"))


@pytest.mark.parametrize("folder", WORKERS, ids=lambda folder: folder.name)
def test_a_worker_has_the_layout_of_the_guide(folder):
    assert_layout(folder)


def test_there_are_workers_to_check():
    assert {"toy_worker", "cleanrl_worker", "dreamer_worker", "eval_worker"} <= {folder.name for folder in WORKERS}


def test_what_is_missing_is_named(tmp_path):
    folder = tmp_path / "acme_worker"
    (folder / "acme_worker").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[project]\n")

    missing = missing_files(folder)

    assert missing[:2] == ["README.md", "tests/test_standardization.py"]
    assert {"acme_worker/cli.py", "requirements/*.txt"} <= set(missing)
    assert missing[-1] == "the entry point acme_worker:get_worker_metadata in pyproject.toml"
    assert "pyproject.toml" not in missing
