"""Interactive mode: commands on stdin, and nothing but answers on stdout."""

import json
import subprocess
import sys

import gymnasium
import pytest
import torch
from cleanrl_worker.agents import MLPAgent
from cleanrl_worker.checkpoints import save_checkpoint
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.interactive import CleanRLPlayer
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.config import ConfigError
from mosaic_sdk.fastlane import maybe_wrap_env
from mosaic_sdk.interactive import Session
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import encode
from mosaic_sdk.operators.digest import observation_digest

CONTINUOUS = {"algo": "ppo_continuous_action", "env_id": "Pendulum-v1"}


def config_of(**keys):
    extras = keys.pop("extras", {})
    keys = {"run_id": "R1", "algo": "ppo", "env_id": "CartPole-v1", "seed": 7, **keys}
    return CleanRLWorkerConfig.from_dict({**keys, "extras": {"mode": "interactive", **extras}})


@pytest.fixture
def session():
    opened = []

    def open_one(**keys):
        config = config_of(**keys)
        player = CleanRLPlayer(config)
        assert player.stage
        opened.append(Session(lambda: player, run_id=config.run_id, first_seed=config.seed))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def send(session, cmd, **more):
    return session.answer(json.dumps({"cmd": cmd, **more}))


@pytest.fixture
def checkpoint(tmp_path):
    agent = MLPAgent(4, 2)
    with torch.no_grad():
        agent.actor.bias[:] = torch.tensor([0.0, 50.0])  # always to the right
    modules = {"agent": agent.state_dict()}
    return str(
        save_checkpoint(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 9, "modules": modules})
    )


def test_reset_answers_with_a_description_of_the_environment(session):
    (ready,) = send(session(), "reset", seed=3)

    assert ready["type"] == "ready"
    assert (ready["run_id"], ready["env_id"], ready["algo"], ready["seed"]) == ("R1", "CartPole-v1", "ppo", 3)
    assert (ready["episode_index"], ready["step_index"], ready["observation_shape"]) == (0, 0, [4])
    assert ready["action_space"] == {"type": "Discrete", "n": 2, "start": 0}
    assert ready["policy"] == "random"


def test_a_step_takes_the_given_action(session):
    one = session()
    bare = gymnasium.make("CartPole-v1")
    bare.reset(seed=3)
    send(one, "reset", seed=3)

    for number, action in enumerate([0, 1, 1, 0]):
        (step,) = send(one, "step", action=action)
        assert (step["type"], step["step_index"], step["action"]) == ("step", number, action)
        assert step["reward"] == bare.step(action)[1]
    assert step["episode_reward"] == 4.0


def test_rewards_are_counted_while_frames_are_on(session, monkeypatch):
    names = {"MOSAIC_RUN_ID": "test-rewards", "GYM_GUI_FASTLANE_ONLY": "1", "GYM_GUI_FASTLANE_VIDEO_MODE": "single"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    make = gymnasium.make
    monkeypatch.setattr(gymnasium, "make", lambda *args: maybe_wrap_env(make(*args, render_mode="rgb_array")))
    one = session()
    send(one, "reset", seed=3)

    assert [send(one, "step")[0]["reward"] for _ in range(3)] == [1.0] * 3


def test_without_an_action_the_policy_decides(session, checkpoint):
    one = session(extras={"policy_path": checkpoint})

    assert send(one, "reset")[0]["policy"] == "checkpoint"
    assert [send(one, "step")[0]["action"] for _ in range(5)] == [1] * 5


def test_after_the_last_step_the_episode_is_done_and_a_reset_begins_the_next(session, checkpoint):
    one = session(extras={"policy_path": checkpoint})
    send(one, "reset", seed=3)
    answers = send(one, "step")
    while len(answers) == 1:
        answers = send(one, "step")

    step, done = answers
    assert step["terminated"]
    assert done["type"] == "episode_done"
    assert (done["total_reward"], done["num_steps"]) == (step["episode_reward"], step["step_index"] + 1)
    assert (done["terminated"], done["truncated"], done["episode_index"]) == (True, False, 0)
    assert send(one, "step")[0] == {
        "type": "error",
        "message": "The episode is over, or none was begun. Send reset first.",
    }
    assert send(one, "reset")[0]["episode_index"] == 1


@pytest.mark.parametrize("policy", ["random", "sampled"])
def test_the_same_seed_gives_the_same_episode(session, tmp_path, policy):
    modules = {"agent": MLPAgent(4, 2).state_dict()}
    state = {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 9, "modules": modules}
    path = str(save_checkpoint(tmp_path, state)) if policy == "sampled" else ""
    one = session(extras={"policy_path": path})
    episodes = []
    for seed in (5, 5, 6):
        send(one, "reset", seed=seed)
        episodes.append([send(one, "step")[0]["action"] for _ in range(8)])

    assert episodes[0] == episodes[1] != episodes[2]


def test_without_a_seed_each_episode_uses_the_next_one(session):
    one = session()

    assert [send(one, "reset")[0]["seed"] for _ in range(3)] == [7, 8, 9]


def test_continuous_actions_work_both_ways(session):
    one = session(**CONTINUOUS)
    (ready,) = send(one, "reset", seed=3)
    assert ready["action_space"] == {"type": "Box", "shape": [1], "dtype": "float32", "low": -2.0, "high": 2.0}

    (own,) = send(one, "step")
    (given,) = send(one, "step", action=[0.5])
    (bare,) = send(one, "step", action=0.5)

    assert len(own["action"]) == 1
    assert given["action"] == bare["action"] == [0.5]
    assert isinstance(given["reward"], float)


def test_a_trained_continuous_policy_acts(session, tmp_path):
    from cleanrl_worker import policy
    from cleanrl_worker.lanes import make_lanes

    algorithm, script = policy.load_script(config_of(**CONTINUOUS))
    lane = make_lanes(algorithm, script, "Pendulum-v1", 1, None)[0]
    agent = script.Agent(policy._as_envs(lane))
    lane.close()
    rms = {"mean": [0.0] * 3, "var": [1.0] * 3, "count": 1.0}
    state = {"modules": {"agent": agent.state_dict()}, "normalisation": {"obs_rms": [rms]}, "global_step": 1}
    path = save_checkpoint(tmp_path, {**CONTINUOUS, **state})

    one = session(**CONTINUOUS, extras={"policy_path": str(path)})
    send(one, "reset", seed=1)

    assert isinstance(send(one, "step")[0]["action"][0], float)


def test_an_agent_selects_an_action_for_a_given_observation(session, checkpoint):
    one = session(extras={"policy_path": checkpoint})

    (ready,) = send(one, "init_agent", agent_id="player_0", game_name="x")
    (chosen,) = send(one, "select_action", observation=[0, 0, 0, 0], agent_id="player_0")

    assert (ready["type"], ready["agent_id"], ready["mode"]) == ("agent_ready", "player_0", "action_selector")
    assert (chosen["type"], chosen["action"], chosen["agent_id"]) == ("action_selected", 1, "player_0")


GRID = "MiniGrid-DoorKey-5x5-v0"


def agent_of(env, **more):
    """The fields of init_agent for an environment in another process."""
    described = {name: spaces.describe(getattr(env, name)) for name in ("action_space", "observation_space")}
    return {"agent_id": "agent_0", "seed": 3, **described, **more}


@pytest.fixture
def grid_checkpoint(tmp_path):
    from cleanrl_worker.agents import MinigridAgent

    modules = {"agent": MinigridAgent(7).state_dict()}
    state = {"algo": "ppo", "env_id": GRID, "global_step": 9, "modules": modules, "params": {"agent": "minigrid"}}
    return str(save_checkpoint(tmp_path, state))


def test_ready_has_the_digest_of_the_unwrapped_environments_first_observation(session):
    import minigrid  # noqa: F401  # registers its environments

    bare = gymnasium.make(GRID).unwrapped

    digests = [send(session(env_id=GRID), "reset", seed=seed)[0]["first_observation"] for seed in (3, 3, 4)]

    assert digests[0] == digests[1] == observation_digest(bare.reset(seed=3)[0])
    assert digests[2] == observation_digest(bare.reset(seed=4)[0])


def test_ready_names_the_actions_where_the_environment_does(session):
    grid = send(session(env_id=GRID), "reset", seed=1)[0]["actions"]

    assert [action["name"] for action in grid][:3] == ["left", "right", "forward"]
    assert send(session(env_id="CartPole-v1"), "reset", seed=1)[0]["actions"] is None


def test_the_last_step_has_the_success_of_the_episode(session):
    one = session(env_id="MiniGrid-Empty-5x5-v0")
    send(one, "reset", seed=1)

    steps = [send(one, "step", action=action)[0] for action in (2, 2, 1, 2, 2)]  # to the goal

    assert steps[-1]["terminated"]
    assert [step.get("success") for step in steps] == [None] * 4 + [True]


def test_a_policy_acts_on_the_unwrapped_observations_of_an_environment_elsewhere(session, grid_checkpoint):
    import minigrid  # noqa: F401

    settings = {"env_id": GRID, "extras": {"policy_path": grid_checkpoint}}
    own, elsewhere = session(**settings), session(**settings)
    send(own, "reset", seed=3)
    actions = [send(own, "step")[0]["action"] for _ in range(12)]
    bare = gymnasium.make(GRID).unwrapped
    observation, _ = bare.reset(seed=3)

    assert send(elsewhere, "init_agent", **agent_of(bare))[0]["type"] == "agent_ready"
    chosen = []
    for _ in range(12):
        (answer,) = send(elsewhere, "select_action", agent_id="agent_0", observation=encode(observation))
        chosen.append(answer["action"])
        observation, *_ = bare.step(answer["action"])

    assert chosen == actions


def test_an_agent_with_other_spaces_is_refused_in_words(session, checkpoint):
    one = session(extras={"policy_path": checkpoint})
    two_more = {**agent_of(gymnasium.make("CartPole-v1")), "action_space": {"type": "Discrete", "n": 4}}

    (actions,) = send(one, "init_agent", **two_more)
    (observations,) = send(one, "init_agent", **agent_of(gymnasium.make("Acrobot-v1"), action_space=None))

    assert actions["message"] == "action_space: the policy needs Discrete(2), the environment has Discrete(4)."
    assert "observation_space: the policy needs Box(4) of float32" in observations["message"]
    assert "the environment has Box(6) of float32" in observations["message"]
    assert send(one, "init_agent", **agent_of(gymnasium.make("CartPole-v1")))[0]["type"] == "agent_ready"


def test_every_agent_of_a_sampled_policy_has_its_own_seed(session, tmp_path):
    modules = {"agent": MLPAgent(4, 2).state_dict()}
    path = save_checkpoint(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 9, "modules": modules})
    one = session(extras={"policy_path": str(path)})

    def play(seed):
        send(one, "init_agent", agent_id="a", seed=seed)
        return [send(one, "select_action", agent_id="a", observation=[0] * 4)[0]["action"] for _ in range(30)]

    assert play(5) == play(5) != play(6)


def test_arguments_of_the_environment_are_passed_on(session):
    one = session(env_id="FrozenLake-v1", extras={"env_kwargs": {"map_name": "8x8"}})

    assert send(one, "reset")[0]["observation_shape"] == [64]


def test_arguments_of_the_environment_are_refused_in_other_modes():
    with pytest.raises(ConfigError, match=r"extras.env_kwargs: only mode interactive supports it, not mode train."):
        CleanRLWorkerConfig.from_dict({"run_id": "R1", "extras": {"env_kwargs": {"a": 1}}})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "This is not JSON"),
        ("[1]", 'A command is an object with a "cmd"'),
        ('{"cmd": 3}', 'A command is an object with a "cmd"'),
        (
            '{"cmd": "dance"}',
            "There is no command 'dance'. Choose from: init_agent, ping, reset, select_action, step, step_result, stop",
        ),
        ('{"cmd": "reset", "seed": -1}', "seed: must be an integer from 0"),
        ('{"cmd": "reset", "seed": true}', "seed: must be an integer from 0"),
        ('{"cmd": "reset", "options": 3}', "options: must be an object"),
        ('{"cmd": "step", "action": 2}', "action: 2 is not an action of Discrete(2)"),
        ('{"cmd": "step", "action": 0.5}', "action: 0.5 is not an action of Discrete(2)"),
        ('{"cmd": "step", "action": "left"}', "action: 'left' is not an action of Discrete(2)"),
        ('{"cmd": "select_action", "observation": [1, 2]}', "observation: must have the shape [4]"),
        ('{"cmd": "select_action"}', "observation: must have the shape [4]"),
    ],
)
def test_an_invalid_command_is_answered_with_the_reason_and_the_session_continues(session, line, message):
    one = session()
    send(one, "reset")

    (answer,) = one.answer(line)

    assert answer["type"] == "error"
    assert message in answer["message"]
    assert send(one, "step")[0]["type"] == "step"


def test_an_action_that_the_mask_forbids_is_an_error(session, checkpoint):
    one = session(extras={"policy_path": checkpoint})

    (answer,) = send(one, "select_action", observation=[0, 0, 0, 0], action_mask=[1, 0])

    assert "which action_mask does not allow" in answer["message"]


def test_a_missing_checkpoint_and_one_of_another_algorithm_are_refused(session, checkpoint):
    with pytest.raises(CheckpointError, match="There is no checkpoint /nowhere"):
        session(extras={"policy_path": "/nowhere"})
    with pytest.raises(CheckpointError, match="is a checkpoint of the algorithm ppo, but this run's is dqn"):
        session(algo="dqn", extras={"policy_path": checkpoint})


def test_an_environment_that_does_not_exist_is_refused(session):
    with pytest.raises(ConfigError, match=r"there is no environment 'CartPole-v9'|no environment"):
        session(env_id="CartPoel-v1")


def test_stdout_holds_nothing_but_answers():
    """With a library that prints: BabyAI, and a print of our own."""
    program = (
        "import sys; from cleanrl_worker.config import CleanRLWorkerConfig; from cleanrl_worker import interactive;"
        "make = interactive.make_stage;"
        "interactive.make_stage = lambda config: (print('a library prints'), make(config))[1];"
        "config = CleanRLWorkerConfig.from_dict({'run_id': 'R1', 'env_id': sys.argv[1], 'seed': 1});"
        "sys.exit(interactive.serve(config))"
    )
    commands = [{"cmd": "ping"}, {"cmd": "reset", "seed": 1}, {"cmd": "step"}, {"cmd": "nonsense"}, {"cmd": "stop"}]
    text = "".join(json.dumps(command) + "\n" for command in commands)
    argv = [sys.executable, "-c", program, "BabyAI-GoToLocal-v0"]

    done = subprocess.run(argv, input=text, capture_output=True, text=True)

    answers = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert answers == ["pong", "ready", "step", "error", "stopped"], done.stderr[-2000:]
    assert "a library prints" in done.stderr
    assert done.returncode == 0


SERVE = (
    "import json, sys; from cleanrl_worker.config import CleanRLWorkerConfig; from cleanrl_worker import interactive;"
    "code = interactive.serve(CleanRLWorkerConfig.from_dict({'run_id': 'R1', **json.loads(sys.argv[1])}))"
)


def serve(config, *commands, then="pass"):
    text = "".join(json.dumps({"cmd": command}) + "\n" for command in commands)
    argv = [sys.executable, "-c", f"{SERVE};{then};sys.exit(code)", json.dumps(config)]
    return subprocess.run(argv, input=text, capture_output=True, text=True)


def test_a_missing_checkpoint_is_answered_and_ends_the_process():
    done = serve({"extras": {"policy_path": "/nowhere.pt"}}, "reset", "ping")

    assert json.loads(done.stdout) == {"type": "error", "message": "There is no checkpoint /nowhere.pt."}
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "There is no checkpoint /nowhere.pt.")


def test_a_ping_and_an_agent_without_a_policy_import_no_library():
    libraries = "[name for name in ('torch', 'gymnasium') if name in sys.modules]"

    done = serve({}, "ping", "init_agent", "stop", then=f"print({libraries}, file=sys.stderr)")

    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["pong", "agent_ready", "stopped"]
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_process_ends_at_the_end_of_stdin():
    done = serve({"env_id": "CartPole-v1"})

    assert (done.returncode, done.stdout) == (0, "")
