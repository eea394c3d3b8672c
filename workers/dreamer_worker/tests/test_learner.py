"""The learner: the next batch is staged during an update, and findings are sent back in order."""

import threading

import numpy as np
import pytest
from dreamer_worker.agent.spaces import Space
from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.findings import LateFindings, ThreadedFindings
from dreamer_worker.learner import Learner
from dreamer_worker.random_agent import RandomAgent
from dreamer_worker.rpc import Client, LocalClient, Server
from dreamer_worker.timers import Timers

BATCH, LENGTH, PATIENCE_S = 2, 4, 60


class Replay:
    """Numbers its batches and records the updates it receives."""

    def __init__(self, secret):
        self.server = Server("0", secret)
        self.sampled, self.updates, self.asked = 0, [], []
        self.changed = threading.Condition()
        self.server.bind("sample", self.sample)
        self.server.bind("update", self.update)
        self.server.start()

    def sample(self, count, first):
        self.asked.append(first)
        self.sampled += 1
        ids = np.full((int(count), LENGTH + 1), self.sampled)
        return {"stepid": ids, "dyn/deter": np.zeros((*ids.shape, 8), np.float16)}

    def update(self, ids, values, starts, priority):
        with self.changed:
            self.updates.append(int(ids[0, 0]))
            self.changed.notify_all()

    def await_updates(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.updates) >= count, PATIENCE_S)


class RecordingAgent(RandomAgent):
    """Records the order of its calls."""

    def __init__(self):
        super().__init__({"x": Space("float32", (3,))}, {"action": Space("int32", (), 0, 4)})
        self.needs_first = {"dyn/deter": LENGTH + 1}
        self.calls = []

    def stage(self, data, updates=1):
        self.calls.append(("stage", int(data["stepid"][0, 0])))
        return data

    def train(self, carry, data):
        self.calls.append(("train", int(data["stepid"][0, 0])))
        return super().train(carry, data)


class Slow:
    """An array that the device is still computing."""

    def __init__(self):
        self.is_done = threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.is_done.wait(PATIENCE_S)
        return np.zeros(3)


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("out of memory")


@pytest.fixture
def replay(secret):
    replay = Replay(secret)
    yield replay
    replay.server.close()


@pytest.fixture
def findings(replay, secret):
    findings = ThreadedFindings(Client(replay.server.address, secret, max_inflight=4), Timers())
    yield findings
    findings.close()


def found(number, **more):
    return {"stepid": np.full((1, 1), number), "start": np.zeros(1, np.int64), **more}


def test_every_batch_is_used_once_in_order_and_its_findings_are_sent_back(replay, secret, tmp_path):
    config = DreamerConfig(
        run_id="T", secret=secret, replay_addr=replay.server.address, logger_addr=replay.server.address,
        batch_size=BATCH, batch_length=LENGTH, log_every_s=1e6, report_every_s=1e6, save_every_s=1e6,
    )  # fmt: skip
    agent = RecordingAgent()
    learner = Learner.connect(agent, config, Counters(tmp_path / "counters.bin"))
    thread = threading.Thread(target=learner.run, args=(lambda: None,))
    thread.start()
    replay.await_updates(50)
    learner.close()
    thread.join(PATIENCE_S)

    assert not thread.is_alive()
    trained = [number for kind, number in agent.calls if kind == "train"]
    assert trained == list(range(1, len(trained) + 1))
    assert replay.updates == trained[: len(replay.updates)]
    assert replay.asked[0] == agent.needs_first


def test_the_learner_is_at_most_one_update_ahead_of_the_device(findings, replay):
    first, waits = Slow(), threading.Event()
    findings.give_back(found(1, latent=first))

    def give_another():
        findings.give_back(found(2))
        waits.set()

    thread = threading.Thread(target=give_another)
    thread.start()
    assert not waits.wait(0.2)

    first.is_done.set()
    assert waits.wait(PATIENCE_S)
    thread.join()
    replay.await_updates(2)
    assert replay.updates == [1, 2]


def test_in_one_thread_a_finding_is_sent_when_the_next_update_has_started():
    sent = []
    findings = LateFindings(LocalClient({"update": lambda ids, values, starts, priority: sent.append(int(ids[0, 0]))}))

    findings.give_back(found(1))
    assert sent == []
    findings.give_back(found(2))

    assert sent == [1]


def test_a_failure_of_the_device_fails_the_learner(findings):
    findings.give_back(found(1, latent=Broken()))

    with pytest.raises(RuntimeError, match="out of memory"):
        findings.give_back(found(2))


def test_closing_releases_a_learner_that_waits_for_a_missing_replay(secret):
    nowhere = Client("127.0.0.1:9", secret, max_inflight=1)
    findings = ThreadedFindings(nowhere, Timers())
    findings.give_back(found(1))
    findings.give_back(found(2))  # the first fills what may be under way, this one waits for it
    thread = threading.Thread(target=findings.give_back, args=(found(3),))
    thread.start()
    findings.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
