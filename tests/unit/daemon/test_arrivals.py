"""A launch is handed out once for each attempt, and a report counts with the secret of the attempt."""

import asyncio
import contextlib
import json
import sys
from types import SimpleNamespace

import pytest

from mosaic.daemon.arrivals import Arrivals
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.model import node_paths
from mosaic.model.durable import read_json, write_json
from mosaic.model.errors import BadConfig, MosaicError, NotAllowed
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.wire import mosaic_pb2 as pb


class OneRun:
    """A registry with one run."""

    def __init__(self, run_id):
        self.record = SimpleNamespace(
            run_id=run_id, area="runs", attempt=1, state=RunState.INIT, cancel_requested=False
        )
        self.asked = 0
        self.then = {}  # what changes after the first question

    async def do(self, _):
        record = SimpleNamespace(**vars(self.record))
        self.asked += 1
        vars(self.record).update(self.then)
        return record


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "home")
    root.make()
    return root


@pytest.fixture
def rundir(root):
    rundir = root.run("runs", new_ulid())
    rundir.make()
    node = {"environments": "same", "environment": sys.prefix, "worker": "toy", "ticket": "t"}
    launch = {"run_id": rundir.run_id, "attempt": 1, "secret": "s", "home": True, "node": node}
    write_json(rundir.launch, {**launch, "cwd": str(rundir.path), "argv": [f"{root.envs}/a/bin/python"]})
    write_json(root.worker_file(rundir.run_id), {"folder": str(rundir.checkpoints)})
    (rundir.path / "config").mkdir()
    (rundir.path / "config" / "base_config.json").write_text("{}")
    (rundir.path / "telemetry.sqlite").write_bytes(b"x")
    return rundir


@pytest.fixture
def registry(rundir):
    return OneRun(rundir.run_id)


@pytest.fixture
def arrivals(root, registry):
    return Arrivals(root, registry, LiveRuns())


def take(arrivals, rundir, taker="a", attempt=1):
    request = pb.TakeLaunchRequest(run_id=rundir.run_id, attempt=attempt, taker=taker, node="n1")
    return asyncio.run(arrivals.take(request))


def report(arrivals, rundir, **texts):
    asyncio.run(arrivals.report(rundir, pb.ReportRunRequest(run_id=rundir.run_id, **texts)))


def test_the_first_process_gets_the_launch_also_when_it_asks_again(arrivals, rundir):
    first, again = take(arrivals, rundir), take(arrivals, rundir)

    assert first == again
    assert read_json(rundir.started)["taker"] == "a"
    with pytest.raises(NotAllowed, match="started by another process"):
        take(arrivals, rundir, taker="b")


def test_paths_lead_to_the_nodes_own_folders(arrivals, rundir, root):
    reply = take(arrivals, rundir)

    launch = json.loads(reply.launch_json)
    assert launch["cwd"] == f"{node_paths.ROOT}/trainer/runs/{rundir.run_id}"
    assert launch["argv"] == [f"{root.envs}/a/bin/python"]
    assert "node" not in launch
    files = {file.path: file.data.decode() for file in reply.files}
    assert sorted(files) == [
        f"trainer/configs/worker-{rundir.run_id}.json",
        f"trainer/runs/{rundir.run_id}/config/base_config.json",
    ]
    assert node_paths.ROOT in files[f"trainer/configs/worker-{rundir.run_id}.json"]


def test_environments_of_the_node_are_used_if_the_cluster_says_so(arrivals, rundir):
    launch = read_json(rundir.launch)
    write_json(rundir.launch, {**launch, "node": {**launch["node"], "environments": "node"}, "own": sys.prefix})

    sent = json.loads(take(arrivals, rundir).launch_json)

    assert sent["argv"] == [f"{node_paths.ROOT}/envs/a/bin/python"]
    assert sent["own"] == f"{node_paths.ROOT}/envs/toy"


@pytest.mark.parametrize(
    ("change", "attempt"),
    [({"attempt": 2}, 1), ({"cancel_requested": True}, 1), ({"state": RunState.CANCELLED}, 1), ({}, 2)],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_no_launch_for_an_attempt_that_may_not_start(arrivals, registry, rundir, change, attempt, when):
    if when == "before":
        vars(registry.record).update(change)
    registry.then = change

    with pytest.raises(NotAllowed):
        take(arrivals, rundir, attempt=attempt)


@pytest.mark.parametrize("words", [{"taker": ""}, {"taker": "a" * 2_000_000}, {"taker": "a", "node": "n" * 2_000_000}])
def test_what_a_process_says_of_itself_is_short(arrivals, rundir, words):
    # A started.json that is too large to be read would not keep the next process from starting the worker.
    with pytest.raises(BadConfig, match="characters"):
        asyncio.run(arrivals.take(pb.TakeLaunchRequest(run_id=rundir.run_id, attempt=1, **words)))

    assert not rundir.started.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"attempt": "1"}'])
def test_a_damaged_record_of_a_start_counts_as_one(arrivals, rundir, text):
    rundir.started.write_text(text)

    with pytest.raises(NotAllowed, match="started by another process"):
        take(arrivals, rundir)


def test_the_record_of_an_older_attempt_is_none_of_this_one(arrivals, rundir):
    write_json(rundir.started, {"attempt": 0, "taker": "b"})

    assert take(arrivals, rundir).launch_json


def test_files_that_its_node_has_sent_do_not_fill_the_memory(arrivals, rundir, monkeypatch):
    monkeypatch.setattr("mosaic.daemon.arrivals.LARGEST_FILES", 1000)
    launch, read = read_json(rundir.launch), []
    monkeypatch.setattr(
        "mosaic.daemon.arrivals.durable.read_bytes", lambda path, limit: read.append(path) or bytes(limit)
    )
    for number in range(20):
        (rundir.path / f"{number}.txt").write_bytes(b"x")

    with pytest.raises(MosaicError, match="have more than"):
        arrivals._reply(arrivals._registry.record, launch)
    assert len(read) == 2


def test_reports_need_the_secret(arrivals, rundir):
    take(arrivals, rundir)
    report(arrivals, rundir, started_json=json.dumps({"attempt": 1, "secret": "s", "held_by": "x"}))
    assert read_json(rundir.started)["taker"] == "a"
    assert read_json(rundir.started)["held_by"] == "x"

    for facts in ({"attempt": 1, "secret": "wrong"}, {"attempt": 2, "secret": "s"}, {"attempt": 1}):
        with pytest.raises(NotAllowed):
            report(arrivals, rundir, exit_json=json.dumps(facts))
    with pytest.raises(BadConfig):
        report(arrivals, rundir, exit_json="[1]")
    with pytest.raises(BadConfig, match="64 KiB"):
        report(arrivals, rundir, exit_json=json.dumps({"attempt": 1, "secret": "s", "error": "x" * 70_000}))
    assert not rundir.exit.exists()

    report(arrivals, rundir, exit_json=json.dumps({"attempt": 1, "secret": "s", "exit_code": 0}))
    assert read_json(rundir.exit)["exit_code"] == 0


@pytest.mark.parametrize(
    "lie",
    [
        *({"exit_code": "0"}, {"signal": 9}, {"stdout_bytes": 1 << 70}, {"max_rss_kb": []}),
        *({"unkillable": "no"}, {"ended_at": float("nan")}, {"cpu_s": True}, {"stderr_bytes": {}}),
    ],
    ids=str,
)
def test_a_report_with_values_of_another_type_is_refused(arrivals, rundir, lie):
    with pytest.raises(BadConfig, match=f"'{next(iter(lie))}' is not valid"):
        report(arrivals, rundir, exit_json=json.dumps({"attempt": 1, "secret": "s", **lie}))

    assert not rundir.exit.exists()


def test_of_a_report_only_what_a_holder_writes_is_kept(arrivals, rundir):
    facts = {"attempt": 1, "secret": "s", "exit_code": 1, "signal": None, "error": "x" * 10_000, "taker": "b", "own": 1}
    report(arrivals, rundir, started_json=json.dumps(facts | {"node": "n" * 10_000}), exit_json=json.dumps(facts))

    assert read_json(rundir.exit) == {"attempt": 1, "secret": "s", "exit_code": 1, "error": "x" * 2000}
    assert read_json(rundir.started) == {"attempt": 1, "secret": "s", "node": "n" * 2000}


def test_a_report_about_a_run_that_is_over_changes_nothing(arrivals, registry, rundir):
    registry.record.state = RunState.FAULTED

    report(arrivals, rundir, exit_json=json.dumps({"attempt": 1, "secret": "s", "exit_code": 0}))

    assert not rundir.exit.exists()


@pytest.mark.parametrize(
    ("state", "telemetry", "is_refused"),
    [(RunState.EXECUTING, "", False), (RunState.FAULTED, "incomplete", False), (RunState.FAULTED, "", True)],
)
def test_files_are_taken_until_a_run_is_over_and_complete(arrivals, registry, rundir, state, telemetry, is_refused):
    registry.record.state, registry.record.telemetry = state, telemetry
    refused = pytest.raises(BadConfig, match="is over") if is_refused else contextlib.nullcontext()

    with refused:
        asyncio.run(arrivals.refuse_complete(rundir.run_id))


def test_a_taker_cannot_make_the_record_of_its_start_unreadable(arrivals, rundir):
    for names in (
        {"node": "n" * (2 << 20), "taker": "a"},
        {"node": "n", "taker": "a" * 300},
        {"node": "n", "taker": ""},
    ):
        with pytest.raises(BadConfig):
            asyncio.run(arrivals.take(pb.TakeLaunchRequest(run_id=rundir.run_id, attempt=1, **names)))

    assert not rundir.started.exists()


def test_a_run_with_its_folder_here_reports_nothing(arrivals, rundir):
    write_json(rundir.launch, {**read_json(rundir.launch), "home": False})

    with pytest.raises(NotAllowed):
        report(arrivals, rundir, exit_json=json.dumps({"attempt": 1, "secret": "s"}))
