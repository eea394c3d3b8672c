import pytest

from mosaic.gui.app import Options, build_window
from mosaic.gui.connecting import Connector
from mosaic.gui.hub.hub import TelemetryAsyncHub


@pytest.fixture
def open_window(qapp, qtbot, lab):
    """Opens the whole window on the lab's daemon, as app.py does."""
    opened = []

    def open_it(options=Options(theme="light"), is_ready=True):  # noqa: B008
        connector = Connector(lab.root, options.host)
        hub = TelemetryAsyncHub(connector.connect, explain=connector.explain)
        window = build_window(qapp, lab.root, hub, options)
        opened.append((window, hub, connector))
        hub.start()
        window.show()
        window.open_first_place()
        # Shortcuts belong to the active window.
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow, timeout=10000)
        if is_ready:
            qtbot.waitUntil(lambda: hub.connection.state == "ok", timeout=30000)
        return window

    yield open_it
    for window, hub, connector in opened:
        window.close()
        hub.stop()
        connector.close()
        window.deleteLater()
