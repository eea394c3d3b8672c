"""The daemon's end of the links to nodes: who may report, what is asked of a node, what a viewer gets."""

import asyncio

import pytest

from mosaic.daemon.node_links import LARGEST_FRAME, MOST_HZ, NodeLinks
from mosaic.model.errors import BadConfig, NoFrames, NotAllowed
from mosaic.wire import mosaic_pb2 as pb

RUN = "01JCQ00000000000000000000A"


class Sessions:
    async def allow(self, run_id, token):
        if token != f"token of {run_id}":
            raise NotAllowed("no")


class Node:
    """One connected node: what it sends, and the orders that it gets."""

    def __init__(self, links, token=f"token of {RUN}"):
        self._queue = asyncio.Queue()
        self._orders = links.serve(self._reports(), token, Sessions())

    async def _reports(self):
        while (report := await self._queue.get()) is not None:
            yield report

    async def send(self, **parts):
        """Send a report; its answer."""
        await self._queue.put(pb.NodeReport(**{"run_id": RUN, **parts}))
        return await self.order()

    async def order(self):
        return await asyncio.wait_for(anext(self._orders), 10)

    async def leave(self):
        await self._queue.put(None)
        await anext(self._orders, None)


def viewer(links, lane=None):
    return links.viewer(RUN, hz=10, for_s=2, wait_s=5, max_dim=0, lane=lane)


def test_cpu_time_is_known_only_while_its_node_is_connected():
    async def scene():
        links = NodeLinks()
        node = Node(links)
        await node.send(cpu_s=3.5)
        connected = links.cpu_s(RUN)
        await node.leave()
        return connected, links.cpu_s(RUN)

    assert asyncio.run(scene()) == (3.5, None)


def test_a_watch_is_ordered_at_once_and_its_frame_is_returned_once():
    async def scene():
        links = NodeLinks()
        node, view = Node(links), viewer(links, lane=2)
        before = await node.send(cpu_s=1)
        assert await view.look() is None
        asked = (await node.order()).watches[0]
        await node.send(watch=asked, frame=pb.Frame(number=7, age_ns=5))
        return before, asked, await view.look(), await view.look()

    before, asked, frame, again = asyncio.run(scene())

    assert not before.watches
    assert (asked.lane, asked.hz) == (2, 10)
    assert (frame.number, frame.age_ns >= 5) == (7, True)
    assert again is None


def test_a_frame_for_which_nobody_asked_is_dropped():
    async def scene():
        links = NodeLinks()
        node = Node(links)
        await node.send(watch=pb.NodeWatch(lane=1), frame=pb.Frame(number=1))
        return await viewer(links, lane=1).look()

    assert asyncio.run(scene()) is None


def test_a_report_of_another_run_or_with_a_huge_frame_ends_the_link():
    async def scene(**parts):
        node = Node(NodeLinks())
        await node.send(cpu_s=1)
        await node.send(**parts)

    for parts in ({"run_id": "another"}, {"frame": pb.Frame(png=bytes(LARGEST_FRAME + 1))}):
        with pytest.raises(BadConfig):
            asyncio.run(scene(**parts))


def test_a_node_that_only_reports_is_slowed_down_too(monkeypatch):
    async def scene():
        pauses, sleep = [], asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", lambda s: pauses.append(s) or sleep(0))
        node = Node(NodeLinks())
        for _ in range(3):
            await node.send(cpu_s=1)
        return pauses

    assert asyncio.run(scene()) == [1 / MOST_HZ] * 2  # the first one is waited for


def test_a_wrong_token_is_refused():
    with pytest.raises(NotAllowed):
        asyncio.run(Node(NodeLinks(), "another").send(cpu_s=1))


def test_a_viewer_of_a_node_that_is_not_connected_is_told_so():
    async def scene():
        await NodeLinks().viewer(RUN, hz=10, for_s=2, wait_s=-1, max_dim=0, lane=None).look()

    with pytest.raises(NoFrames, match="not connected"):
        asyncio.run(scene())
