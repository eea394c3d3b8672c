"""What the workers of whole libraries share, with a library of twenty lines."""

import json
import signal
import time

import pytest
from mosaic_sdk import checkpoints
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.cli import WorkerStopped
from mosaic_sdk.config import ConfigError
from mosaic_sdk.library import evaluating, saving
from mosaic_sdk.library.playing import EnvPlayer, as_action
from mosaic_sdk.library.schema import library_schema
from mosaic_sdk.library.settings import LibrarySettings, check_params, extra
from mosaic_sdk.library.stopping import StopSignal
from mosaic_sdk.library.training import Training
from mosaic_sdk.player import Agent, CommandError, Request

PARTS = {
    "ppo": {"lr": {"type": "number", "default": 0.1}, "clip": {"type": "number", "default": 0.2}},
    "dqn": {"lr": {"type": "string", "default": "fast"}},
}


class AcmeConfig(LibrarySettings):
    env_kwargs: dict = extra({}, "Arguments of the environment.")

    def check_algorithm(self) -> None:
        check_params(self.algo, self.algo_params, PARTS[self.algo])


class AcmeTraining(Training):
    """Counts its steps; `stop_at` is where SIGTERM arrives."""

    worker, stop_at, count = "acme", 0, 0

    @property
    def steps(self):
        return self.count

    def build(self, start):
        self.count = (start.step or 0) if start else 0
        self.closed = False

    def learn(self):
        while self.count < self.config.total_timesteps:
            self.count += 1
            if self.count == self.stop_at:
                signal.raise_signal(signal.SIGTERM)
            self.at_step()

    def write(self, path):
        with open(f"{path}/weights", "w") as file:
            file.write(str(self.count))

    def close(self):
        self.closed = True


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run folder as MOSAIC has it."""
    run = tmp_path / "trainer" / "runs" / "one"
    run.mkdir(parents=True)
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(run))
    monkeypatch.setenv("MOSAIC_CHECKPOINT_DIR", str(run / "checkpoints"))
    return run


def config(**keys):
    return AcmeConfig.from_dict({"run_id": "one", **keys})


def names(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def printed(capfd):
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_training_saves_on_its_way_and_at_the_end(folder, capfd):
    training = AcmeTraining(config(total_timesteps=25, extras={"checkpoint_every": 10, "keep_checkpoints": 2}))

    summary = training.run()

    assert names(folder) == ["checkpoint-000000000020", "checkpoint-000000000025"]
    assert summary == {"algo": "ppo", "env_id": "CartPole-v1", "total_steps": 25, "episodes": 0}
    saved = [line["payload"]["step"] for line in printed(capfd) if line["event"] == "checkpoint_saved"]
    assert saved == [10, 20, 25]
    assert json.loads((folder / "analytics.json").read_text())["worker_type"] == "acme"
    assert training.closed


def test_a_training_that_is_stopped_is_saved_as_it_is(folder, capfd):
    before = signal.getsignal(signal.SIGTERM)
    training = AcmeTraining(config(total_timesteps=1000))
    training.stop_at = 7
    try:
        with pytest.raises(WorkerStopped):
            training.run()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert names(folder) == ["checkpoint-000000000007"]
    assert training.closed


def test_a_resumed_training_continues_with_the_settings_of_the_first(folder, capfd):
    AcmeTraining(config(total_timesteps=5, extras={"keep_checkpoints": 3, "algo_params": {"clip": 0.5}})).run()
    again = {"mode": "resume_training", "policy_path": str(folder)}

    training = AcmeTraining(config(total_timesteps=9, extras=again))
    training.run()

    assert names(folder)[-1] == "checkpoint-000000000009"
    assert (training.config.keep_checkpoints, training.config.algo_params) == (3, {"clip": 0.5})
    assert [line["payload"]["step"] for line in printed(capfd) if line["event"] == "checkpoint_loaded"] == [5]
    with pytest.raises(CheckpointError, match="nothing is left to train"):
        AcmeTraining(config(total_timesteps=9, extras=again)).run()


def test_a_checkpoint_with_pickles_is_loaded_only_from_run_folders(folder, tmp_path, capfd):
    AcmeTraining(config(total_timesteps=5)).run()
    elsewhere = tmp_path / "checkpoint-000000000005"
    (folder / "checkpoints" / elsewhere.name).rename(elsewhere)
    other = config(extras={"mode": "policy_eval", "policy_path": str(elsewhere)})

    with pytest.raises(CheckpointError, match="contains pickles"):
        saving.find(other, worker="acme", has_pickles=True)

    assert saving.find(other, worker="acme").step == 5  # without pickles there is nothing to fear
    link = folder / "link"
    link.symlink_to(elsewhere)
    with pytest.raises(CheckpointError, match="contains pickles"):
        saving.find(other.replace(policy_path=str(link)), worker="acme", has_pickles=True)


def test_a_checkpoint_that_is_damaged_or_of_another_worker_is_refused(folder, capfd):
    AcmeTraining(config(total_timesteps=5)).run()
    path = folder / "checkpoints" / "checkpoint-000000000005"
    asked = config(extras={"mode": "policy_eval", "policy_path": str(path)})

    with pytest.raises(CheckpointError, match="of the worker acme"):
        saving.find(asked, worker="other")
    with pytest.raises(CheckpointError, match="this run's is Pong"):
        saving.find(asked.replace(env_id="Pong"), worker="acme")
    (path / "weights").write_text("truncated")
    with pytest.raises(CheckpointError, match="is damaged"):
        saving.find(asked, worker="acme")


def test_an_evaluation_plays_unseen_seeds_and_writes_its_summary(folder, capfd):
    AcmeTraining(config(total_timesteps=5)).run()
    asked = config(extras={"mode": "policy_eval", "policy_path": str(folder), "eval_episodes": 2})

    class Stage:
        config, found = asked, checkpoints.find(folder)

        def play(self, seed):
            return evaluating.Played(float(seed), 1, True, False, {"luck": 1})

        def close(self):
            pass

    summary = evaluating.evaluate(asked, "acme", Stage)

    assert summary["mean_return"] == 1_000_000.5
    written = json.loads((folder / "eval_summary.json").read_text())
    assert (written["seeds"], written["rows"][0]["luck"], written["checkpoint_step"]) == ([1_000_000, 1_000_001], 1, 5)


def test_after_sigterm_the_next_check_raises_and_the_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)
    try:
        with StopSignal() as stop:
            stop.check()
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(WorkerStopped):
                stop.check()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN  # what is still to be written is not interrupted
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGTERM, before[0])
    with StopSignal():
        pass
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)) == before


def stop_and_work_on():
    signal.raise_signal(signal.SIGTERM)
    time.sleep(60)  # interrupted


def test_without_a_safe_point_the_training_is_interrupted_after_a_while():
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(WorkerStopped), StopSignal(patience_s=0.01):
            stop_and_work_on()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_modes_checkpoints_and_hyperparameters_are_checked():
    with pytest.raises(ConfigError, match="mode resume_training needs the checkpoint"):
        config(extras={"mode": "resume_training"})
    with pytest.raises(ConfigError, match="starts from scratch"):
        config(extras={"policy_path": "/somewhere"})
    with pytest.raises(ConfigError, match=r"algo_params.clop: ppo has no such setting. Did you mean clip\?"):
        config(extras={"algo_params": {"clop": 1}})
    assert config(extras={"test_mode": True, "policy_path": "/x"}).mode == "policy_eval"


def test_the_schema_has_each_hyperparameter_once_and_each_algorithms_own():
    schema = library_schema(AcmeConfig, title="Acme", lab={}, examples=[], by_algorithm=PARTS)

    params = schema["properties"]["extras"]["properties"]["algo_params"]
    assert params["properties"]["lr"] == {"type": ["number", "string"]}
    assert params["properties"]["clip"] == {"type": "number", "default": 0.2}
    assert schema["properties"]["algo"]["enum"] == ["ppo", "dqn"]
    assert schema["x-mosaic-interactive"]["settings"]["extras.env_kwargs"] == "{env_kwargs}"
    assert "extras.device" not in schema["x-mosaic-eval"]  # it has no such setting


class Space:
    """Gymnasium's Discrete(3), as far as a player needs it."""

    n, start, shape = 3, 0, ()
    dtype = "int64"

    def __init__(self):
        self.seeds = []

    def seed(self, seed):
        self.seeds.append(seed)

    def sample(self, mask=None):
        return 1

    def contains(self, action):
        return 0 <= action < self.n

    def __repr__(self):
        return "Discrete(3)"


Space.__name__ = "Discrete"


class Env:
    """Three steps; the second action of the space gives a reward."""

    def __init__(self):
        self.observation_space = self.action_space = Space()
        self.unwrapped = self

    def reset(self, seed=None, options=None):
        self.count = 0
        return 2, {}

    def step(self, action):
        self.count += 1
        return 0, float(action == 1), self.count == 3, False, {"success": True}

    def close(self):
        self.count = -1


def test_a_player_without_a_policy_plays_at_random():
    env = Env()
    player = EnvPlayer(config(), env)

    ready = player.reset(5, None)
    steps = [player.step(None) for _ in range(3)]

    assert ready["action_space"]["n"] == 3
    assert env.action_space.seeds == [5]
    assert [step.terminated for step in steps] == [False, False, True]
    assert (steps[0].fields, steps[2].fields) == ({}, {"success": True})
    assert player.describe()["policy"] == "random"
    assert player.select_action(Request(2)) == 1


def test_a_player_refuses_foreign_spaces():
    player = EnvPlayer(config(), Env())

    with pytest.raises(CommandError, match="action_space"):
        player.begin_agent(Agent("a", action_space={"type": "Discrete", "n": 5, "start": 0}))


@pytest.mark.parametrize("given", [3, -1, True, "left", 0.5])
def test_what_is_not_an_action_of_the_space_is_refused(given):
    pytest.importorskip("numpy")

    with pytest.raises(CommandError, match=r"is not an action of Discrete\(3\)"):
        as_action(given, Space())


def test_an_action_of_floats_is_rounded_to_the_dtype_of_its_space():
    numpy = pytest.importorskip("numpy")

    class Box:
        shape, dtype = (1,), numpy.float32

        def contains(self, action):
            return action.dtype == self.dtype

    assert as_action([0.1], Box()).tolist() == [pytest.approx(0.1)]
