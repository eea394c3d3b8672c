"""The logger: episodes from steps, averages, counters that never decrease."""

import json
import threading
from itertools import pairwise

import numpy as np
import pytest
from dreamer_worker.checkpoint import Counters, Epochs
from dreamer_worker.logger import Episodes, Logger, LoggerService, thin_out
from dreamer_worker.outputs import Jsonl, Mosaic, TensorBoard
from dreamer_worker.rpc import Client, Server
from dreamer_worker.telemetry import Telemetry


class RecordingOutput:
    """An output that records its calls."""

    def __init__(self):
        self.written, self.episodes = [], []

    def scalars(self, step, values):
        self.written.append((step, values))

    def episode(self, step, number, episode):
        self.episodes.append((step, number, episode))

    def close(self):
        pass


@pytest.fixture
def recorder():
    return RecordingOutput()


@pytest.fixture
def make_logger(tmp_path, recorder):
    return lambda timeout_s=180.0: Logger([recorder], Counters(tmp_path / "counters.bin"), str(tmp_path), timeout_s)


def step(reward=0.0, first=False, last=False, env=0, is_eval=False, **logs):
    sent = {
        "reward": np.asarray([reward]),
        "is_first": np.asarray([first]),
        "is_last": np.asarray([last]),
        "is_terminal": np.asarray([last]),
        "env": np.asarray([env]),
        "is_eval": is_eval,
    }
    return sent | {f"log/{name}": np.asarray([value]) for name, value in logs.items()}


def play(logger, rewards, env=0, actor="a", number=0, env_steps=0, **more):
    for index, reward in enumerate([0.0, *rewards]):
        flags = {"first": index == 0, "last": index == len(rewards)}
        logger.steps(actor, number + index + 1, env_steps + index, step(reward, env=env, **flags, **more))


def test_an_episode_is_assembled_from_its_steps(make_logger, recorder):
    logger = make_logger()

    play(logger, [1.0, 2.0, 4.0], env=3)

    (_, number, episode) = recorder.episodes[0]
    assert number == 0
    assert episode == {"env": 3, "eval": False, "score": 7.0, "length": 3, "terminated": True}


def test_an_abandoned_episode_is_not_reported(make_logger, recorder):
    logger = make_logger()

    logger.steps("a", 1, 1, step(5.0, first=True))
    play(logger, [1.0], number=1)

    assert [episode["score"] for _, _, episode in recorder.episodes] == [1.0]


def test_steps_that_are_sent_twice_count_once(make_logger, recorder):
    logger = make_logger()

    logger.steps("a", 1, 1, step(first=True))
    for _ in range(2):
        logger.steps("a", 2, 2, step(1.0))
    logger.steps("a", 3, 3, step(1.0, last=True))

    assert recorder.episodes[0][2]["score"] == 2.0


def test_the_step_never_goes_back(make_logger, recorder, tmp_path):
    logger = make_logger()
    play(logger, [1.0] * 5, env_steps=100)
    logger.counters.raise_to("env_steps", 105)

    logger.steps("b", 1, 50, step(first=True))  # an actor that was restored to an older checkpoint
    logger.write()
    again = make_logger()  # and a logger that was killed
    again.write()

    assert [step for step, _ in recorder.written] == [105, 105]


def test_numbers_are_averaged_under_the_prefix_of_their_process(make_logger, recorder):
    logger = make_logger()
    logger.metrics("train", {"loss": 1.0})
    logger.metrics("train", {"loss": np.float32(3.0)})
    logger.metrics("replay", {"loss": 9.0})

    logger.write()

    assert recorder.written[0][1]["train/loss"] == 2.0
    assert recorder.written[0][1]["replay/loss"] == 9.0


def test_the_episode_of_an_env_that_is_silent_while_others_play_is_dropped():
    episodes = Episodes(timeout_s=0.0)  # everything before the newest step is too old
    episodes.step(0, 1.0, True, False, {})
    episodes.step(1, 1.0, True, False, {})

    assert episodes.forget_silent() == 1
    assert len(episodes) == 1


def test_no_episode_is_dropped_while_all_envs_wait():
    episodes = Episodes(timeout_s=60.0)
    for env in (0, 1):
        episodes.step(env, 1.0, True, False, {})
    for episode in episodes._playing.values():
        episode.updated -= 3600  # an hour of compiling

    assert episodes.forget_silent() == 0
    assert episodes.step(0, 1.0, False, True, {}).score == 2.0


def test_an_episode_whose_beginning_was_missed_is_not_reported(make_logger, recorder):
    logger = make_logger()  # one that was just restarted

    logger.steps("a", 7, 7, step(5.0))
    logger.steps("a", 8, 8, step(5.0, last=True))
    play(logger, [1.0], number=8)

    assert [episode["score"] for _, _, episode in recorder.episodes] == [1.0]


def test_evaluation_episodes_are_counted_separately_and_logged_values_are_summed(make_logger, recorder):
    logger = make_logger()

    play(logger, [1.0], is_eval=True, coins=2.0)
    play(logger, [1.0], number=2)
    logger.write()

    assert [(number, episode["eval"]) for _, number, episode in recorder.episodes] == [(0, True), (0, False)]
    assert recorder.written[0][1]["eval_episode/coins"] == 4.0


def test_its_checkpoint_holds_the_step(make_logger, tmp_path, secret):
    server = Server("0", secret)
    epochs = Epochs(tmp_path / "checkpoints")
    announced = threading.Event()
    LoggerService(make_logger(), server, epochs, lambda path, payload: announced.set())
    client = Client(server.start().address, secret)
    client.ask("steps", "a", 1, 70, step(first=True))

    client.ask("snapshot", 1)
    client.ask("write", 1)
    epochs.commit(1, {})
    client.ask("saved", "here", {"epoch": 1, "step": 70})
    again = LoggerService(make_logger(), Server("0", secret), epochs, lambda *_: None)
    again.restore()

    assert again.logger.step == 70
    assert announced.is_set()
    for part in (client, server, again.server):
        part.close()


def test_jsonl_appends_to_the_same_file_and_stays_json(tmp_path):
    for _ in range(2):
        output = Jsonl(tmp_path / "metrics.jsonl")
        output.scalars(3, {"loss": float("nan"), "fps": 2.0})
        output.close()

    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["fps"] for line in lines] == [2.0, 2.0]
    assert lines[0]["loss"] == "nan"


def test_tensorboard_gets_every_curve(tmp_path):
    output = TensorBoard(tmp_path)
    output.scalars(7, {"train/loss": 0.5})
    output.episode(8, 0, {"env": 0, "eval": False, "score": 3.0, "length": 4, "terminated": True})
    output.close()

    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    assert b"train/loss" in data
    assert b"episode/score" in data


def test_metrics_and_episodes_are_sent_to_mosaic(capfd):
    output = Mosaic(Telemetry(run_id="R"))
    output.scalars(7, {"train/loss": 0.5})
    output.episode(8, 2, {"env": 1, "eval": True, "score": 3.0, "length": 4, "terminated": True})

    metric, episode = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert metric["values"] == {"train/loss": 0.5}
    assert metric["step"] == 7
    assert (episode["episode_index"], episode["total_reward"], episode["agent_id"]) == (2, 3.0, "eval")
    assert (episode["global_step"], episode["terminated"], episode["truncated"]) == (8, True, False)


def test_a_time_limit_is_a_truncation(capfd):
    Mosaic(Telemetry(run_id="R")).episode(
        8, 2, {"env": 1, "eval": False, "score": 3.0, "length": 4, "terminated": False}
    )

    episode = json.loads(capfd.readouterr().out)
    assert (episode["terminated"], episode["truncated"]) == (False, True)


def test_an_episode_is_reported_with_the_env_step_at_which_it_ended(make_logger, recorder):
    logger = make_logger()
    both = {"env": np.asarray([0, 1]), "is_eval": False, "reward": np.zeros(2)}
    both |= {"is_last": np.asarray([False, True]), "is_terminal": np.zeros(2, bool)}

    logger.steps("a", 1, 102, {**both, "is_first": np.ones(2, bool)})
    logger.steps("a", 2, 104, {**both, "is_first": np.asarray([False, True])})

    assert [step for step, _, _ in recorder.episodes] == [102, 104]


def test_clips_are_animated_gifs(make_logger, tmp_path):
    from PIL import Image

    make_logger().clip("report_open_loop", np.random.default_rng(0).integers(0, 255, (5, 8, 16, 1), np.uint8))

    (path,) = (tmp_path / "videos").iterdir()
    assert Image.open(path).n_frames == 5


def test_clips_are_thinned_out_evenly_over_the_run(tmp_path):
    for step in range(0, 5000, 10):
        (tmp_path / f"report-{step:010d}.gif").touch()
        thin_out(sorted(tmp_path.iterdir()), most=20)

    steps = [int(path.stem[-10:]) for path in sorted(tmp_path.iterdir())]
    assert (len(steps), steps[0], steps[-1]) == (20, 0, 4990)
    assert max(b - a for a, b in pairwise(steps)) <= 4 * 5000 / 20


def test_silent_envs_are_not_searched_while_a_step_is_being_added(make_logger):
    logger = make_logger()
    was_safe = []
    forget = logger._episodes.forget_silent
    logger._episodes.forget_silent = lambda: (was_safe.append(logger._lock.locked()), forget())[1]

    logger.write()

    assert was_safe == [True]


class Full(RecordingOutput):
    """An output on a full disk."""

    def scalars(self, step, values):
        raise OSError("No space left on device")

    def episode(self, step, number, episode):
        self.scalars(step, episode)

    def close(self):
        self.scalars(0, {})


def test_an_output_that_cannot_be_written_stops_neither_the_others_nor_the_run(make_logger, recorder, caplog):
    logger = make_logger()
    logger.outputs.insert(0, Full())

    play(logger, [1.0])
    logger.write()
    logger.close()

    assert len(recorder.episodes) == 1
    assert len(recorder.written) == 2
    assert [record.message for record in caplog.records] == [
        "Full cannot be written; the run continues: No space left on device"
    ]


def test_a_clip_on_a_full_disk_leaves_no_file(make_logger, tmp_path, full_disk):
    frames = np.random.default_rng(0).integers(0, 255, (5, 64, 64, 3), np.uint8)

    with full_disk(1000), pytest.raises(OSError, match="File too large"):
        make_logger().clip("report_open_loop", frames)

    assert not list((tmp_path / "videos").iterdir())
