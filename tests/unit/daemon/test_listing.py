"""Pages of runs and of curve names, with a real registry."""

import asyncio
from types import SimpleNamespace

import pytest

from mosaic.daemon.listing import curve_names, list_runs
from mosaic.daemon.watching import Query, watch
from mosaic.model.run import RunConfig, RunSummary, WorkerSpec
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import LISTED_BYTES, PAGE_BYTES, REPLY_BYTES
from mosaic.wire.convert import run_to_wire

LIMIT = 64 << 20  # of gRPC, for one message


class Trainer:
    """Runs in a real registry; each has the same summary."""

    def __init__(self, registry, summary):
        self._registry, self.summary = registry, summary
        self.registry = SimpleNamespace(do=self._do)

    async def _do(self, ask):
        return ask(self._registry)

    async def infos(self, records):
        return [run_to_wire(record, "/runs", self.summary) for record in records]


@pytest.fixture
def registry(tmp_path):
    registry = Registry.open(tmp_path / "registry.db")
    yield registry
    registry.close()


def add_runs(registry, count):
    run_ids = [new_ulid() for _ in range(count)]
    for run_id in run_ids:
        registry.add(RunConfig(run_id, "", "runs", "toy", WorkerSpec(module="toy")))
    return run_ids[::-1]


def page(registry, summary=None, **request):
    return asyncio.run(list_runs(Trainer(registry, summary or RunSummary()), pb.ListRunsRequest(**request)))


def ids(reply):
    return [info.run_id for info in reply.runs]


def test_pages_have_every_run_once_while_runs_are_added_and_deleted(registry):
    newest_first = add_runs(registry, 7)

    first = page(registry, page_runs=3)
    registry.move(newest_first[2], RunState.CANCELLED)
    registry.delete(newest_first[2])  # the run that the first page ended with
    add_runs(registry, 2)
    second = page(registry, page_runs=3, before=first.next)
    third = page(registry, page_runs=3, before=second.next)

    assert ids(first) + ids(second) + ids(third) == newest_first
    assert min(first.next, second.next) > third.next == 0


def test_a_limit_ends_a_listing_without_another_page(registry):
    newest_first = add_runs(registry, 5)

    reply = page(registry, limit=2, page_runs=3)

    assert (ids(reply), reply.total, reply.next) == (newest_first[:2], 5, 0)
    assert page(registry, limit=5, page_runs=3).next
    assert not page(registry).next


def test_a_page_is_limited_in_bytes_and_has_at_least_one_run(registry):
    add_runs(registry, 600)
    many = RunSummary(last_values={f"metric {number}": 0.5 for number in range(1_000)})

    reply = page(registry, many, page_runs=700)

    assert 0 < len(reply.runs) < 600
    assert reply.next
    assert reply.ByteSize() <= PAGE_BYTES + LISTED_BYTES


def test_a_client_that_does_not_ask_for_pages_gets_what_fits_into_one_reply(registry):
    add_runs(registry, 20)
    long_names = RunSummary(last_values={str(number) + "x" * 1_000_000: 0.5 for number in range(100)})

    reply = page(registry, long_names)

    assert len(reply.runs) == 20
    assert reply.ByteSize() < REPLY_BYTES < LIMIT
    assert reply.runs[0].summary.values_left_out == 100


def test_the_first_items_of_a_watch_are_parts_of_one_list(registry):
    newest_first = add_runs(registry, 600)
    many = RunSummary(last_values={f"metric {number}": 0.5 for number in range(1_000)})

    async def first_list():
        replies = watch(Trainer(registry, many), Query(), 0.01)
        parts = [await anext(replies)]
        while parts[-1].continues:
            parts.append(await anext(replies))
        return parts

    parts = asyncio.run(first_list())

    assert len(parts) > 1
    assert [run_id for part in parts for run_id in ids(part)] == newest_first
    assert max(part.ByteSize() for part in parts) < 3 * PAGE_BYTES


def test_names_of_curves_come_in_pages():
    names = sorted(f"{number:03} " + "x" * 1_000_000 for number in range(10))

    got, after = [], ""
    while True:
        reply = curve_names(names, after)
        assert reply.ByteSize() <= PAGE_BYTES + 2_000_000
        got += reply.known_names
        if not reply.has_more_names:
            break
        after = got[-1]

    assert got == names
