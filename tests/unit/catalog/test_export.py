"""A worker's export, run in its own environment."""

import textwrap

import pytest

from mosaic.catalog.environment import own_environment
from mosaic.catalog.export import Exporter
from mosaic.catalog.keywords import unsupported
from mosaic.catalog.workers import Worker
from mosaic.model.errors import MosaicError


@pytest.fixture
def exporter(tmp_path, monkeypatch):
    """An exporter whose module has this text."""

    def make(text):
        (tmp_path / "acme_export.py").write_text(textwrap.dedent(text))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        (tmp_path / "out").mkdir()
        return Exporter(Worker("acme", "acme", "acme.cli", "1", own_environment(), "acme:x"), "acme_export")

    return make


SAYS = """
    import json, sys
    open(sys.argv[2] + "/w", "w").write(open(sys.argv[1]).read())
    json.dump({"library": "acme", "files": %s}, open(sys.argv[2] + "/export.json", "w"))
"""


def test_the_worker_says_what_it_wrote(exporter, tmp_path):
    found = exporter(SAYS % {"w": "weights"}).run(tmp_path / "acme_export.py", tmp_path / "out")

    assert (found.library, found.files) == ("acme", {"w": "weights"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["w"]


def test_the_reason_of_a_failure_is_the_workers_own(exporter, tmp_path):
    broken = exporter("raise SystemExit('the file is damaged')")

    with pytest.raises(MosaicError, match=r"Worker 'acme' could not export .*: the file is damaged"):
        broken.run(tmp_path / "x", tmp_path / "out")


def test_a_file_outside_the_folder_is_not_believed(exporter, tmp_path):
    with pytest.raises(MosaicError, match="no such file"):
        exporter(SAYS % {"../acme_export.py": "?"}).run(tmp_path / "acme_export.py", tmp_path / "out")


def test_a_worker_that_hangs_is_ended(exporter, tmp_path):
    with pytest.raises(MosaicError, match="did not export"):
        exporter("import time; time.sleep(1000)").run(tmp_path / "x", tmp_path / "out", limit_s=0.5)


@pytest.mark.parametrize("name", ["--help", "a/b", "", 3])
def test_what_is_not_the_name_of_a_module_is_refused(name):
    assert "x-mosaic-export is not the name of a module" in unsupported({"x-mosaic-export": name})


def test_a_module_is_accepted():
    assert unsupported({"x-mosaic-export": "acme_worker.export"}) == ""
