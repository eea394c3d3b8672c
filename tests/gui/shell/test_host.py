"""`mosaic --host me@box gui`: the window on the runs of another machine."""

import pytest
from far_box import FarBox
from lab import alive

from mosaic.gui import connecting
from mosaic.gui.app import Options
from mosaic.gui.connection_banner import ConnectionBanner
from mosaic.gui.hub import link

LONG = 60_000


@pytest.fixture
def box(tmp_path, home, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(connecting, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.05)
    return FarBox(tmp_path, home)


def hub_of(window):
    return window.findChild(ConnectionBanner)._context.hub


def sentence(window):
    return window.findChild(ConnectionBanner).sentence.text()


def test_the_window_comes_back_after_ssh_has_ended(qtbot, lab, box, open_window, capfd):
    run = lab.submit("far", steps=100_000, rate=50)
    window = open_window(Options(theme="light", host=box.host))
    hub, seqs = hub_of(window), []
    feed = hub.follow(run.run_id)
    feed.received.connect(lambda batch: seqs.extend(event.seq for event in batch.events))
    qtbot.waitUntil(lambda: run.run_id in hub.runs and bool(seqs), timeout=LONG)

    box.refuse("ssh: connect to host box port 22: Connection refused")
    box.hang_up()
    qtbot.waitUntil(lambda: "Connection refused" in sentence(window), timeout=LONG)
    said = sentence(window)
    box.welcome()
    qtbot.waitUntil(lambda: hub.connection.state == "ok" and not sentence(window), timeout=LONG)
    seen = seqs[-1]
    qtbot.waitUntil(lambda: seqs[-1] > seen, timeout=LONG)

    assert "ssh cannot reach me@box" in said
    assert "ssh me@box true" in said
    assert "mosaic-ssh-" not in said
    assert seqs == list(range(seqs[0], seqs[-1] + 1))
    assert "ssh cannot reach me@box" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words", ["Permission denied (publickey).", "Host key verification failed.", "ssh: Could not resolve hostname box"]
)
def test_an_ssh_that_refuses_is_quoted_in_the_window_and_the_terminal(qtbot, lab, box, open_window, capfd, words):
    box.refuse(words)
    window = open_window(Options(theme="light", host=box.host), is_ready=False)

    reason = words.removeprefix("ssh: ").rstrip(".")
    qtbot.waitUntil(lambda: f"ssh cannot reach me@box: {reason}." in sentence(window), timeout=LONG)

    terminal = capfd.readouterr().err
    assert terminal.count(reason) == 1
    assert "Traceback" not in terminal


def test_a_machine_without_a_daemon_is_told_how_to_start_it(qtbot, lab, box, open_window, tmp_path):
    window = open_window(Options(theme="light", host=f"me@box:{tmp_path}/none"), is_ready=False)

    command = f"ssh me@box MOSAIC_HOME={tmp_path}/none mosaic daemon start"
    qtbot.waitUntil(lambda: command in sentence(window), timeout=LONG)


def test_a_daemon_that_stops_there_is_started_there(qtbot, lab, box, open_window):
    window = open_window(Options(theme="light", host=box.host))

    lab.stop_daemon()
    qtbot.waitUntil(lambda: "mosaic daemon start" in sentence(window), timeout=LONG)
    said = sentence(window)
    lab.restart_daemon()
    qtbot.waitUntil(lambda: hub_of(window).connection.state == "ok", timeout=LONG)

    assert f"ssh me@box MOSAIC_HOME={lab.root.path} mosaic daemon start" in said


def test_no_ssh_is_left_after_the_window(qtbot, lab, box, home):
    connector = connecting.Connector(lab.root, box.host)
    from mosaic.gui.hub.hub import TelemetryAsyncHub

    hub = TelemetryAsyncHub(connector.connect, explain=connector.explain)
    hub.start()
    qtbot.waitUntil(lambda: hub.connection.state == "ok", timeout=LONG)

    hub.stop()
    connector.close()

    assert not [pid for pid in box.pids() if alive(pid)]
