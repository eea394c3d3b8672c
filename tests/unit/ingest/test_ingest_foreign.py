"""What the store adds to lines of programs that were not written for MOSAIC."""

import pytest
from ingest_batches import RUN, Spool, episode, step

from mosaic.ingest.store import RunStore
from mosaic.model.run import UNNUMBERED
from mosaic.wire import mosaic_pb2 as pb


@pytest.fixture
def path(tmp_path):
    return tmp_path / "telemetry.sqlite"


def lookalikes(count, first=b'{"loss": 1}'):
    return pb.Lookalikes(count=count, first=first, why="it was printed to stderr; print it to stdout")


def test_episodes_without_an_index_are_numbered_in_order_across_batches_and_restarts(path):
    spool = Spool()
    store = RunStore(path, RUN)
    store.commit(spool.batch(episode(UNNUMBERED, 1.0), step(0), episode(UNNUMBERED, 2.0)))
    store.close()
    store = RunStore(path, RUN)

    store.commit(spool.batch(episode(UNNUMBERED, 3.0), episode(7, 4.0), episode(UNNUMBERED, 5.0)))

    stored = [event.episode for event in store.tail(10, ["episode"]).events]
    assert [(it.episode_index, it.total_reward) for it in stored] == [(0, 1.0), (1, 2.0), (2, 3.0), (7, 4.0), (4, 5.0)]


def test_lines_that_look_like_telemetry_are_counted_and_the_first_is_named(path):
    spool = Spool()
    store = RunStore(path, RUN)
    store.commit(spool.batch(text=b"x\n", lookalikes=lookalikes(22)))
    store.commit(spool.batch(text=b"x\n", lookalikes=lookalikes(1, b"another"), stream=pb.STDERR))

    note = store.summary().note
    store.close()

    assert note.startswith('23 lines look like telemetry but are not: {"loss": 1} (it was printed to stderr')
    assert RunStore(path, RUN).summary().note == note


def test_a_long_example_is_cut(path):
    store = RunStore(path, RUN)

    store.commit(Spool().batch(text=b"x\n", lookalikes=lookalikes(1, b"y" * 10**6)))

    assert len(store.summary().note) < 1000
