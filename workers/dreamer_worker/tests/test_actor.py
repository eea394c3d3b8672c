"""The actor: batches with a time limit, states of envs, steps passed on once and in order."""

import threading

import numpy as np
import pytest
from dreamer_worker.actor import ActorService
from dreamer_worker.agent.spaces import Space
from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import observe
from dreamer_worker.random_agent import RandomAgent
from dreamer_worker.rpc import Client, RpcError, Server

OBS, ACT = {"x": Space("float32", (3,))}, {"action": Space("int32", (), 0, 4)}


class Sink:
    """A replay and a logger that record their calls."""

    def __init__(self, secret):
        self.server = Server("0", secret)
        self.inserted, self.evaluated, self.logged = [], [], []
        self.gate = threading.Event()
        self.gate.set()
        self.server.bind("insert", self.insert)
        self.server.bind("insert_eval", lambda *args: self.evaluated.append(args))
        self.server.bind("steps", lambda *args: self.logged.append(args))
        self.server.start()

    def insert(self, *args):
        self.gate.wait(60)
        self.inserted.append(args)


class RecordingAgent(RandomAgent):
    """Records the size and mode of its batches."""

    def __init__(self):
        super().__init__(OBS, ACT)
        self.calls = []

    def policy(self, carry, obs, mode="train"):
        self.calls.append((mode, len(obs["is_first"]), carry["asked"].copy()))
        return super().policy(carry, obs, mode)


@pytest.fixture
def stage(tmp_path, secret):
    """An actor with a replay and a logger: `stage(envs=2)`."""
    parts = []

    def make(**options):
        sink = Sink(secret)
        config = DreamerConfig(
            run_id="T", secret=secret, replay_addr=sink.server.address, logger_addr=sink.server.address,
            **{"steps": 1_000_000, "envs": 4, "actor_wait_ms": 20, **options},
        )  # fmt: skip
        server = Server("0", secret)
        actor = ActorService(RecordingAgent(), config, Counters(tmp_path / "counters.bin"), server)
        thread = threading.Thread(target=actor.run, daemon=True)
        thread.start()
        parts.extend([actor, sink.server, server])
        actor.sink, actor.address, actor.thread = sink, server.address, thread
        return actor

    yield make
    for part in parts:
        part.close()


@pytest.fixture
def env_of(secret):
    clients = []

    def make(actor):
        clients.append(Client(actor.address, secret, max_inflight=1, resend=False))
        assert clients[-1].wait_connected(30)
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def seen(first=False, reward=0.0):
    return observe({"x": np.zeros(3, np.float32)}, reward, first=first)


def test_an_env_does_not_wait_for_missing_ones(stage, env_of):
    actor = stage(envs=4, actor_batch=4)
    first, second = env_of(actor), env_of(actor)
    both = [first.call("act", 0, seen(True)), second.call("act", 1, seen(True))]
    for future in both:
        future.result(30)

    action = first.ask("act", 0, seen(), timeout_s=30)  # the second one never asks again

    assert 0 <= int(action["action"]) < 4


def test_envs_that_ask_together_are_answered_by_one_call(stage, env_of):
    actor = stage(envs=4, actor_batch=4, actor_wait_ms=30_000)
    envs = [env_of(actor) for _ in range(4)]
    for index, env in enumerate(envs):
        actor._owners[index] = -1  # all four are known, so that the call waits for all
        del env
    futures = [env.call("act", index, seen(True)) for index, env in enumerate(envs)]

    for future in futures:
        future.result(60)

    assert [size for _, size, _ in actor.agent.calls] == [4]


@pytest.mark.parametrize(
    ("index", "change"),
    [(9, {}), (-1, {}), (0, {"x": np.zeros(5, np.float32)}), (0, {"x": None}), (0, {"reward": np.zeros(2)})],
    ids=["no such env", "below zero", "wrong shape", "no value", "two rewards"],
)
def test_an_invalid_observation_is_refused_without_affecting_other_envs(stage, env_of, index, change):
    actor = stage(actor_batch=1)

    with pytest.raises(RpcError, match="ValueError"):
        env_of(actor).ask("act", index, {**seen(True), **change}, timeout_s=30)

    env_of(actor).ask("act", 1, seen(True), timeout_s=30)


def test_each_env_has_a_state_of_its_own(stage, env_of):
    actor = stage(actor_batch=1)
    first, second = env_of(actor), env_of(actor)

    for _ in range(3):
        first.ask("act", 0, seen())
    second.ask("act", 1, seen())
    first.ask("act", 0, seen())

    assert [int(asked[0]) for _, _, asked in actor.agent.calls] == [0, 1, 2, 0, 3]


def test_the_state_of_an_env_goes_with_its_connection(stage, env_of):
    actor = stage(actor_batch=1)
    env = env_of(actor)
    env.ask("act", 0, seen())
    gone = threading.Event()
    leave, actor._server.on_leave = actor.leave, lambda peer: (leave(peer), gone.set())

    env.close()
    assert gone.wait(30)

    assert actor.envs == []
    env_of(actor).ask("act", 0, seen())
    assert int(actor.agent.calls[-1][2][0]) == 0


def test_a_request_of_a_disconnected_env_is_dropped(stage, env_of):
    actor = stage(actor_batch=2, actor_wait_ms=30_000)
    actor._owners.update({0: -1, 1: -1, 2: -1})
    gone = threading.Event()
    leave, actor._server.on_leave = actor.leave, lambda peer: (leave(peer), gone.set())
    dead = env_of(actor)
    dead.call("act", 0, seen(True))
    dead.close()
    assert gone.wait(30)

    futures = [env_of(actor).call("act", index, seen(True)) for index in (1, 2)]
    for future in futures:
        future.result(60)

    assert actor.agent.calls[-1][1] == 2


def test_every_step_is_passed_on_once_numbered_and_in_order(stage, env_of):
    actor = stage(actor_batch=1)
    env = env_of(actor)

    for number in range(20):
        env.ask("act", 0, seen(number == 0, reward=number))
    with actor.turn:
        assert actor.drain(30)

    rewards = [float(rows["reward"][0]) for rows, _, _ in actor.sink.inserted]
    numbers = [int(seqs[0]) for _, _, seqs in actor.sink.inserted]
    assert rewards == list(range(20))
    assert numbers == list(range(20))
    assert {"x", "action", "dyn/deter", "is_first"} <= set(actor.sink.inserted[0][0])
    assert [int(number) for _, number, _, _ in actor.sink.logged] == list(range(1, 21))
    assert "x" not in actor.sink.logged[0][3]  # the logger needs no images
    assert actor.counters["env_steps"] == 20


def test_evaluation_envs_play_the_most_likely_actions_and_fill_the_eval_buffer(stage, env_of):
    actor = stage(envs=1, actor_batch=1)

    env_of(actor).ask("act", 1, seen(True))
    with actor.turn:
        assert actor.drain(30)

    assert actor.agent.calls[0][0] == "eval"
    assert len(actor.sink.evaluated) == 1
    assert not actor.sink.inserted
    assert actor.counters["env_steps"] == 0
    assert bool(actor.sink.logged[0][3]["is_eval"])


def _answers(env):
    try:
        env.ask("act", 0, seen(), timeout_s=1)
    except TimeoutError:
        return False
    return True


def test_a_blocked_replay_stops_the_actor_after_a_few_steps(stage, env_of):
    actor = stage(actor_batch=1)
    actor.sink.gate.clear()
    env = env_of(actor)

    answered = 0
    while _answers(env):
        answered += 1
    actor.sink.gate.set()

    assert 8 <= answered <= 10  # the limit on unanswered calls, and those in progress


def test_the_run_is_done_when_it_has_its_steps(stage, env_of):
    actor = stage(actor_batch=1, steps=5)
    env = env_of(actor)

    for _ in range(5):
        env.ask("act", 0, seen())

    assert actor.done.wait(30)
    actor.thread.join(30)
    assert not actor.thread.is_alive()
    assert actor.counters["env_steps"] == 5


def test_no_step_is_taken_while_another_thread_holds_the_turn(stage, env_of):
    actor = stage(actor_batch=1)
    env = env_of(actor)
    env.ask("act", 0, seen())

    with actor.turn:
        future = env.call("act", 0, seen())
        with pytest.raises(TimeoutError):
            future.result(0.2)

    future.result(30)


def test_an_env_that_is_played_twice_belongs_to_the_newer_process(stage, env_of):
    actor = stage(actor_batch=1)
    older = env_of(actor)
    older.ask("act", 0, seen(True))
    newer = env_of(actor)
    newer.ask("act", 0, seen())

    with pytest.raises(RpcError, match="env 0 is played by another process now"):
        older.ask("act", 0, seen(), timeout_s=30)
    newer.ask("act", 0, seen())

    assert [int(asked[0]) for _, _, asked in actor.agent.calls] == [0, 0, 1]  # and with a state of its own


def test_a_replay_that_rejects_steps_ends_the_actor_with_its_reason(stage, env_of, monkeypatch):
    ends = []
    monkeypatch.setattr(threading, "excepthook", ends.append)
    actor = stage(actor_batch=1)
    actor.sink.server.bind("insert", lambda *args: 1 / 0)
    env = env_of(actor)

    while _answers(env):
        pass
    actor.thread.join(30)

    assert "The replay rejected the steps: " in str(ends[0].exc_value)
    assert "division by zero" in str(ends[0].exc_value)


def test_it_reports_its_traffic_with_envs_replay_and_logger(stage, env_of):
    actor = stage(actor_batch=1)
    env_of(actor).ask("act", 0, seen(True))

    stats = actor.stats()

    assert stats["rpc/envs/connections"] == 1
    assert stats["rpc/envs/received_rate"] > 0
    assert {"rpc/replay/sent_rate", "rpc/replay/inflight", "rpc/logger/sent_rate"} <= set(stats)
