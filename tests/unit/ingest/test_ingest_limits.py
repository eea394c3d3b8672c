"""What one run can add to listings and to the daemon's memory is limited, and the user is told."""

import json

import pytest
from ingest_batches import RUN, Spool, lifecycle, metric, step

from mosaic.ingest import names
from mosaic.ingest.index import Index
from mosaic.ingest.store import RunStore
from mosaic.model.errors import BadBatch, NoCurve
from mosaic.model.run import LONGEST_NAME, MOST_CURVES, MOST_LAST_VALUES, MOST_OBSERVED, RunSummary
from mosaic.tail.parse import Parser
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import summary_to_wire


def parsed(*lines):
    request = pb.PublishTelemetryRequest(run_id=RUN)
    Parser(RUN).parse(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 0, 0, request)
    return request


@pytest.mark.parametrize("line", [{"name": "n" * 1_000_000, "value": 1}, {"values": {"n" * (LONGEST_NAME + 1): 1.0}}])
def test_a_metric_with_a_very_long_name_is_a_reject_with_a_reason(line):
    request = parsed({"type": "metric", **line}, {"type": "metric", "name": "n" * LONGEST_NAME, "value": 1})

    assert [event.metric.names[0] for event in request.events] == ["n" * LONGEST_NAME]
    assert "characters; at most 256" in request.rejects[0].reason


def test_a_worker_that_publishes_itself_cannot_store_a_long_name_either(store, spool):
    with pytest.raises(BadBatch, match="more than 256 characters"):
        store.commit(spool.batch(metric(1, **{"n" * 1_000_000: 1.0})))


def test_names_beyond_the_limit_have_no_curve_and_the_run_tells(path, store, spool):
    values = {f"m{i}": 1.0 for i in range(MOST_CURVES)}
    store.commit(spool.batch(metric(1, **values)))
    before = store.summary().note
    store.commit(spool.batch(metric(2, one_more=1.0), step(1, 0.5)))

    assert before == ""
    for reopened in (store, RunStore(path, RUN)):
        assert reopened.summary().note == "only its first 4,096 metrics have curves"
        assert len(reopened.curve("m7").step) == 1
        with pytest.raises(NoCurve, match=r"no curve of 'one_more'.*mosaic export"):
            reopened.curve("one_more")
        reopened.close()


def test_a_summary_has_a_limited_size(store, spool):
    store.commit(spool.batch(metric(1, **{f"{i:04}" + "x" * 250: 1.0 for i in range(4000)})))

    summary = store.summary()

    assert len(summary.last_values) == MOST_LAST_VALUES
    assert summary_to_wire(summary).ByteSize() < 100_000


def test_a_large_summary_in_the_index_of_an_older_mosaic_is_limited(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    index.put("run", RunSummary(events=3, last_values={f"{i}" + "n" * 1_000_000: 1.0 for i in range(3)} | {"x": 2.0}))

    assert index.get(["run"])["run"] == RunSummary(events=3, last_values={"x": 2.0})
    index.close()


def test_large_sets_of_names_are_stored_with_their_rows(store, spool, monkeypatch):
    monkeypatch.setattr(names, "MOST_BYTES", 100)
    store.commit(spool.batch(*(metric(i, **{f"{i}" + "n" * 60: 1.0}) for i in range(5))))

    assert len(store._memory.names._names) == 1
    assert [event.metric.names[0][0] for event in store.tail(5).events] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("total", ["-1", "-1e300", "NaN", '"many"', "1e400", "[]", "true"])
def test_an_impossible_total_is_ignored_and_told(store, total):
    spool = Spool()
    store.commit(spool.batch(lifecycle("heartbeat", b'{"progress": 5, "total": 100}')))
    store.commit(spool.batch(lifecycle("heartbeat", b'{"progress": -7, "total": %s}' % total.encode())))

    summary = store.summary()

    assert (summary.total_steps, summary.env_steps, summary.last_step) == (100, 5, 5)
    assert "which is not a number of steps and is ignored" in summary.note
    summary_to_wire(summary)


def test_the_largest_step_number_does_not_break_a_listing(store, spool):
    store.commit(spool.batch(step(2**63 - 1), lifecycle("heartbeat", b'{"total": 9223372036854775807}')))

    summary_to_wire(store.summary())


def test_hooks_and_checkpoints_are_counted_once_and_at_most_so_many(store):
    spool = Spool()
    heard = [b'{"what": "metrics", "by": "hook %d"}' % number for number in (0, 0, *range(MOST_OBSERVED + 5))]
    nonsense = (b'{"what": "metrics"}', b"[]", b'{"what": {}, "by": ""}')

    store.commit(spool.batch(*(lifecycle("observing", payload) for payload in (*nonsense, *heard))))
    store.commit(spool.batch(lifecycle("checkpoint_saved", b'{"path": "x"}'), lifecycle("checkpoint_saved")))

    summary = store.summary()
    assert summary.checkpoints == 2
    assert len(summary.observed) == MOST_OBSERVED
    assert summary.observed[:2] == [("metrics", "hook 0"), ("metrics", "hook 1")]
