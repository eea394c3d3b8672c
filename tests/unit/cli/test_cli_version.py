"""A daemon of another version is reported by every command, once, and never on stdout."""

import pytest

from mosaic import __version__
from mosaic.cli import connection
from mosaic.model.errors import NoDaemon
from mosaic.wire import mosaic_pb2 as pb


class Client:
    def __init__(self, version, asked=""):
        self.daemon_version = version
        self._asked = asked

    def health(self):
        if not self._asked:
            raise NoDaemon("No daemon answers.")
        return pb.Health(version=self._asked)


@pytest.fixture(autouse=True)
def forgotten():
    connection._report.cache_clear()


def test_another_version_is_reported_once_on_stderr(capsys):
    connection.report_mismatch(Client("9.9"))
    connection.report_mismatch(Client("9.9"))

    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert all(word in err for word in ("9.9", __version__, "mosaic daemon stop && mosaic daemon start"))


def test_the_same_version_is_not_reported(capsys):
    connection.report_mismatch(Client(__version__))
    connection.report_mismatch(Client("", asked=__version__))

    assert capsys.readouterr() == ("", "")


def test_a_daemon_that_did_not_write_its_version_is_asked(capsys):
    connection.report_mismatch(Client("", asked="0.0.1"))
    connection.report_mismatch(Client(""))

    assert "The daemon is version 0.0.1" in capsys.readouterr().err


def test_the_advice_is_for_the_machine_of_the_daemon(capsys):
    connection.report_mismatch(Client("9.9"), "ann@box")

    assert "mosaic --host ann@box daemon stop && ssh ann@box mosaic daemon start" in capsys.readouterr().err


def test_an_escape_sequence_in_a_version_is_not_printed(capsys):
    connection.report_mismatch(Client("9\x1b[2J"))

    assert "\x1b" not in capsys.readouterr().err
