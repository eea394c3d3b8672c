"""Which parts are started, when, and when no more; on a real registry, with submits and time of the test."""

import asyncio
import json
import sqlite3
import time
from types import SimpleNamespace

import pytest

from mosaic.daemon.auth import Tokens
from mosaic.daemon.parts import DELAYS_S, MOST_FAILURES, Parts, address_in, without_checkpoints
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry
from mosaic.submit.config import read_config
from mosaic.submit.record import record

S = RunState
ALIVE = (S.HANDSHAKE, S.READY, S.EXECUTING)


class Trainer:
    """What `Parts` uses of the daemon's."""

    def __init__(self, home, now):
        self.root = StateRoot(home)
        self.root.make()
        self.db = Registry.open(self.root.registry)
        self.db._now = now
        self.registry = SimpleNamespace(do=self._do)
        self.payload = b'{"address": "10.0.0.1:7000"}'
        self.ingest = SimpleNamespace(parts_wanted=self._wanted)
        self.inspector = SimpleNamespace(descriptor_of=self._descriptor)
        self.nodes = SimpleNamespace(towards=self._towards)
        self.keys = []

    async def _do(self, work):
        return work(self.db)

    async def _wanted(self, rundir):
        return self.payload

    async def _descriptor(self, worker):
        return None

    async def _towards(self, places):
        return "127.0.0.1" if not any(places) else "10.0.0.1"

    def rundir(self, run):
        return self.root.run(run.area, run.run_id)

    async def submit(self, text, key, why=""):
        self.keys.append(key)
        return self.add(json.loads(text), why, key)

    async def cancel(self, run_id, reason=""):
        self.db.request_cancel(run_id, reason)

    def add(self, document, why="", key=""):
        document["metadata"]["run_id"] = new_ulid()
        config = read_config(document, "", key)
        record(self.root, config)
        return self.db.add(config, why)[0]


class Ground:
    def __init__(self, home, monkeypatch):
        self.time = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.time)
        self.trainer = Trainer(home, lambda: self.time)
        self.parts = Parts(self.trainer, Tokens("owner"))
        self.later = []
        self.parts._look_at = lambda run_id, delay_s=0.0: self.later.append(delay_s)
        worker = {"script": "/train.py", "config": {"run_id": "mine", "lr": 1}}
        wanted = [{"name": "env", "count": 2, "on": "slurm:cpu", "resources": {"cpus": 3}}]
        self.main = self.trainer.add({"metadata": {"worker": worker, "run_name": "main"}, "payload": {"parts": wanted}})
        self.start(self.main)

    def look(self):
        asyncio.run(self.parts._look(self.main.run_id))

    def children(self):
        return self.trainer.db.children(self.main.run_id)

    def start(self, run):
        self.trainer.db.claim(run.run_id, ())
        for state in ALIVE[1:]:
            self.trainer.db.move(run.run_id, state)

    def damage(self, run, column):
        """As another program would."""
        with sqlite3.connect(self.trainer.root.registry) as db:
            db.execute(f"UPDATE runs SET {column} = 17 WHERE id = ?", (run.run_id,))

    def fail(self, run, after_s=1.0):
        self.start(run)
        self.time += after_s
        self.trainer.db.move(run.run_id, S.FAULTED, "exit code 1")


@pytest.fixture
def ground(tmp_path, monkeypatch):
    return Ground(tmp_path, monkeypatch)


def test_each_index_gets_one_run_with_the_program_and_the_place_of_its_part(ground):
    ground.look()
    ground.look()

    assert [run.name for run in ground.children()] == ["main env-0", "main env-1"]
    assert {(run.on, run.resources.cpus, run.lineage.relation) for run in ground.children()} == {
        ("slurm:cpu", 3, "part")
    }
    assert ground.trainer.keys == [f"part env-{index} #1 of {ground.main.run_id}" for index in (0, 1)]


def test_nothing_is_started_before_the_worker_takes_up_parts(ground):
    ground.trainer.payload = b""

    ground.look()

    assert ground.children() == []


def test_nothing_is_started_for_a_run_that_is_being_cancelled(ground):
    ground.trainer.db.request_cancel(ground.main.run_id)

    ground.look()

    assert ground.children() == []


def test_a_part_that_ran_for_a_while_is_replaced_at_once(ground):
    ground.look()
    ground.fail(ground.children()[1], after_s=500)

    ground.look()

    assert [run.name for run in ground.children()] == ["main env-0", "main env-1", "main env-1"]
    assert ground.trainer.keys[-1] == f"part env-1 #2 of {ground.main.run_id}"


def test_a_part_that_fails_is_replaced_after_growing_delays_and_then_given_up(ground):
    ground.look()
    waited = []
    for _ in range(MOST_FAILURES):
        ground.fail(ground.children()[-1])
        ground.later.clear()
        ground.look()
        if ground.later:
            waited += ground.later
            ground.time += ground.later[0]
            ground.look()

    ground.look()

    assert waited == list(DELAYS_S[1:])
    assert len(ground.children()) == 1 + MOST_FAILURES  # env-0 lives
    told = [move.reason for move in ground.trainer.db.history(ground.main.run_id) if "env-1" in move.reason]
    last = ground.children()[-1].run_id
    assert told == [f"env-1 is not started again: it failed 5 times in a row. See: mosaic show {last}"]


def test_a_part_that_is_replaced_again_and_again_is_given_up_at_last(ground, monkeypatch):
    monkeypatch.setattr("mosaic.daemon.parts.MOST_RUNS", 3)
    ground.look()

    for _ in range(3):
        ground.fail(ground.children()[-1], after_s=500)
        ground.look()
        ground.look()

    assert len(ground.children()) == 1 + 3  # env-0 lives
    told = [move.reason for move in ground.trainer.db.history(ground.main.run_id) if "env-1" in move.reason]
    last = ground.children()[-1].run_id
    assert told == [f"env-1 is not started again: it has had 3 runs. See: mosaic show {last}"]


def test_all_parts_are_ended_with_their_run_and_not_before(ground):
    ground.look()
    ground.trainer.db.request_cancel(ground.main.run_id)
    ground.look()
    asked_before = [run.cancel_requested for run in ground.children()]

    ground.trainer.db.move(ground.main.run_id, S.CANCELLED)
    ground.look()

    assert asked_before == [False, False]
    assert [run.cancel_requested for run in ground.children()] == [True, True]


def test_the_next_daemon_finds_runs_with_parts_and_parts_without_a_run(ground, monkeypatch):
    found = []

    def recovered():
        found.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Parts, "_look_at", lambda parts, run_id: found.append(run_id))
            asyncio.run(Parts(ground.trainer, Tokens("owner")).recover())
        return list(found)

    before_its_parts = recovered()
    ground.look()
    ground.trainer.db.move(ground.main.run_id, S.FAULTED)
    over_with_live_parts = recovered()
    for run in ground.children():
        ground.trainer.db.move(run.run_id, S.CANCELLED)

    assert before_its_parts == over_with_live_parts == [ground.main.run_id]
    assert recovered() == []


@pytest.mark.parametrize("payload", [[], "x", 1, {"parts": {"name": 1}}])
def test_a_run_with_an_odd_config_does_not_stop_the_parts_of_others(ground, monkeypatch, payload):
    odd = ground.trainer.add({"metadata": {"worker": {"script": "/train.py"}, "run_name": "odd"}})
    ground.start(odd)
    path = ground.trainer.root.config_file(odd.run_id)
    path.write_text(json.dumps({**json.loads(path.read_text()), "payload": payload}))
    found = []
    monkeypatch.setattr(Parts, "_look_at", lambda parts, run_id: found.append(run_id))

    asyncio.run(Parts(ground.trainer, Tokens("owner")).recover())

    assert ground.main.run_id in found


def test_a_part_whose_config_is_lost_is_known_all_the_same(ground):
    ground.look()
    for run in ground.children():
        ground.trainer.root.config_file(run.run_id).unlink()
    ground.fail(ground.children()[1], after_s=500)

    ground.look()

    assert [run.name for run in ground.children()] == ["main env-0", "main env-1", "main env-1"]
    assert ground.trainer.keys[-1] == f"part env-1 #2 of {ground.main.run_id}"


def test_a_part_that_cannot_be_submitted_does_not_keep_the_others_from_being_started(ground, monkeypatch):
    submit = ground.trainer.submit

    async def refuse_the_first(text, key, why=""):
        if "env-0" in key:
            raise BadConfig("payload.on", "there is no cluster 'slurm'")
        return await submit(text, key, why)

    monkeypatch.setattr(ground.trainer, "submit", refuse_the_first)
    with pytest.raises(BadConfig, match="no cluster"):
        ground.look()

    assert [run.name for run in ground.children()] == ["main env-1"]


@pytest.mark.parametrize("column", ["state", "attempt"])
def test_a_live_part_whose_row_is_damaged_gets_no_second_run(ground, column):
    ground.look()
    ground.start(ground.children()[0])
    ground.damage(ground.children()[0], column)
    ground.time += 500

    ground.look()

    assert len(ground.children()) == 2


def test_the_parts_of_a_run_whose_row_is_damaged_live_on(ground):
    ground.look()
    ground.damage(ground.main, "state")

    ground.look()

    assert not any(run.cancel_requested for run in ground.children())


def test_many_reports_about_a_run_are_one_look(tmp_path):
    async def scene():
        parts = Parts(SimpleNamespace(), Tokens("owner"))
        looks, may_end = [], asyncio.Event()

        async def look(run_id):
            looks.append(run_id)
            await may_end.wait()

        parts._look = look
        for _ in range(50):
            parts.wanted("run")
        await asyncio.sleep(0.01)
        during = len(looks)
        for _ in range(50):
            parts.wanted("run")
            parts._look_at("run", 60.0)
            await asyncio.sleep(0)
        may_end.set()
        while len(looks) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        return during, len(looks), len(parts._planned) + len(parts._looking)

    during, after, left = asyncio.run(scene())

    assert (during, after, left) == (1, 2, 0)


def test_a_run_and_its_parts_get_the_same_secret_and_others_another(ground):
    ground.look()
    configs = [
        read_config(json.loads(ground.trainer.root.config_file(run.run_id).read_text())) for run in ground.children()
    ]
    main = read_config(json.loads(ground.trainer.root.config_file(ground.main.run_id).read_text()))
    of_main, of_part = (asyncio.run(ground.parts.variables(config)) for config in (main, configs[1]))

    assert of_main["MOSAIC_PARTS_SECRET"] == of_part["MOSAIC_PARTS_SECRET"] != Tokens("owner").parts("another")
    assert json.loads(of_main["MOSAIC_PARTS"]) == {"towards": "10.0.0.1", "parts": [{"name": "env", "count": 2}]}
    assert json.loads(of_part["MOSAIC_PART"]) == {"name": "env", "index": 1, "count": 2}
    assert of_part["MOSAIC_PART_ADDRESS"] == "10.0.0.1:7000"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b'{"address": 1}',
        b'{"address": "a b:1"}',
        b'{"address": "a:x"}',
        b'{"address": "a:1", "x": "%s"}' % (b"x" * 9999),
    ],
)
def test_what_is_no_address_is_none(payload):
    assert address_in(payload) == ""


def test_checkpoints_and_ids_are_not_carried_over():
    schema = {
        "properties": {
            "checkpoint": {"x-mosaic-checkpoint": True},
            "extras": {"properties": {"policy_path": {"x-mosaic-checkpoint": True}}},
        }
    }
    settings = {"checkpoint": "/a", "run_id": "x", "lr": 1, "extras": {"policy_path": "/b", "cuda": True}}

    assert without_checkpoints(settings, schema) == {"lr": 1, "extras": {"cuda": True}}
    assert settings["checkpoint"] == "/a"
