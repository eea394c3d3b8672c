"""The orders that a node follows: which lanes it looks at, how often, and until when."""

import pytest

from mosaic.tail import node_link
from mosaic.wire import mosaic_pb2 as pb


class Lane:
    """Stands for shared memory: a new frame at every look."""

    looks = 0

    @classmethod
    def attach(cls, run_id, lease_s, max_dim, lane):
        return cls()

    def look(self):
        Lane.looks += 1
        return pb.Frame(number=Lane.looks)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(node_link.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(node_link, "FrameWatcher", Lane)
    return now


def order(**watch):
    return pb.NodeOrder(watches=[pb.NodeWatch(**watch)]) if watch else pb.NodeOrder()


def test_nothing_is_read_while_nobody_watches(clock):
    view, before = node_link._View("run"), Lane.looks
    view.follow(order())

    assert view.look() is None
    assert Lane.looks == before


def test_frames_come_at_the_ordered_rate_until_the_watch_ends(clock):
    view = node_link._View("run")
    view.follow(order(for_s=1.0, hz=10, max_dim=84))

    first, too_early = view.look(), view.look()
    clock[0] += 0.1
    second = view.look()
    clock[0] += 1.0
    after = view.look()

    assert first.watch.max_dim == 84
    assert second.frame.number > first.frame.number
    assert (too_early, after) == (None, None)


def test_an_order_replaces_the_one_before(clock):
    view = node_link._View("run")
    view.follow(order(for_s=10.0, hz=10))
    view.follow(order())

    assert view.look() is None


def test_a_node_without_numpy_says_so(clock, monkeypatch):
    def attach(*_):
        raise ModuleNotFoundError("No module named 'numpy'")

    monkeypatch.setattr(Lane, "attach", attach)
    view = node_link._View("run")
    view.follow(order(for_s=1.0, hz=10))

    assert "need numpy" in view.look().no_frame
