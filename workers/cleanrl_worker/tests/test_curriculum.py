"""Curricula: schedules are read without torch, stages change on time, and stdout holds only events."""

import json
import os
import subprocess
import sys

import gymnasium
import pytest
from cleanrl_worker.checkpoints import load_checkpoint, save_checkpoint
from cleanrl_worker.wrappers.curriculum import (
    BABYAI_DOORKEY_CURRICULUM,
    BABYAI_GOTO_CURRICULUM,
    SCHEDULE_SCHEMA,
    check_schedule,
    parse_condition,
    read_schedule,
)
from cleanrl_worker.wrappers.schedule import RETURN_EPISODES, Progress
from mosaic_sdk.config import ConfigError

EMPTY, EMPTY_6 = "MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-6x6-v0"


def conditions(*stages):
    return [str(stage.condition) for stage in read_schedule(list(stages))]


@pytest.mark.parametrize(
    ("stage", "condition"),
    [
        ({"steps": 200000}, "steps>=200000"),
        ({"episodes": 50}, "episodes>=50"),
        ({"episode_return": 0.9}, "episode_return>=0.9"),
        ({"episode_return": -20}, "episode_return>=-20"),
        ({"steps": 10, "episode_return": 0.5}, "steps>=10|episode_return>=0.5"),
        ({"condition": "episodes >= 3 | steps >= 7"}, "episodes>=3|steps>=7"),
        ({"steps": 10, "condition": "episodes>=3"}, "steps>=10|episodes>=3"),
        ({}, "steps>=100000"),
    ],
)
def test_the_keys_of_a_stage_become_its_condition(stage, condition):
    assert conditions({"env_id": EMPTY, **stage}) == [condition]


def test_each_preset_has_four_stages():
    goto, doorkey = read_schedule("babyai_goto"), read_schedule("babyai_doorkey")

    assert [stage.env_id for stage in goto] == [
        "BabyAI-GoToRedBallNoDists-v0",
        "BabyAI-GoToRedBall-v0",
        "BabyAI-GoToObj-v0",
        "BabyAI-GoToLocal-v0",
    ]
    assert [stage.env_id for stage in doorkey] == [f"MiniGrid-DoorKey-{n}x{n}-v0" for n in (5, 6, 8, 16)]
    assert conditions(*BABYAI_GOTO_CURRICULUM)[:3] == ["steps>=200000"] * 3
    assert conditions(*BABYAI_DOORKEY_CURRICULUM)[-1] == "steps>=100000"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "must be a list of stages"),
        ({"env_id": EMPTY}, "must be a list of stages"),
        ("babyai_gotoo", "there is no preset 'babyai_gotoo'. Available: babyai_goto, babyai_doorkey"),
        ([EMPTY], r"curriculum_schedule\[0\]: a stage is an object"),
        ([{"steps": 5}], r"curriculum_schedule\[0\].env_id: a stage needs the ID"),
        ([{"env_id": EMPTY}, {"env_id": EMPTY, "step": 5}], r"\[1\].step: .* Did you mean 'steps'\?"),
        ([{"env_id": EMPTY, "steps": 0}], r"\[0\].steps: must be an integer of at least 1, not 0"),
        ([{"env_id": EMPTY, "steps": True}], "not True"),
        ([{"env_id": EMPTY, "episodes": 1.5}], "not 1.5"),
        ([{"env_id": EMPTY, "episode_return": "high"}], "episode_return: must be a number, not 'high'"),
        ([{"env_id": EMPTY, "episode_return": float("nan")}], "must be a number, not nan"),
        ([{"env_id": EMPTY, "condition": 7}], "must be a string such as"),
        (
            [{"env_id": EMPTY, "condition": "steps=>7"}],
            r"\[0\].condition: 'steps=>7' is not a valid condition. Write steps>=N",
        ),
        ([{"env_id": EMPTY, "condition": "steps>=7|"}], "is not a valid condition"),
        ([{"env_id": EMPTY, "condition": "steps>=7|episode>=3"}], "'episode>=3' is not a valid condition"),
        ([{"env_id": EMPTY, "condition": "steps>=-7"}], "is not a valid condition"),
        ([{"env_id": EMPTY, "condition": "steps>=7&episodes>=3"}], "is not a valid condition"),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_reason(document, message):
    with pytest.raises(ConfigError, match=message):
        check_schedule(document)


def test_the_schema_refuses_what_the_parser_refuses():
    """The daemon checks a submit with the pattern, so both must agree."""
    import re

    pattern = SCHEDULE_SCHEMA["items"]["properties"]["condition"]["pattern"]
    good = ["steps>=1", "episodes >= 3|steps>=7", "episode_return>=-1.5e2", " episode_return>=.5"[:0] or "steps>=9"]
    bad = [
        "steps=>7",
        "steps>=",
        "step>=7",
        "steps>=7|",
        "|steps>=7",
        "steps>=7&episodes>=3",
        "episode_return>=nan",
        "",
    ]

    for text in good:
        assert re.search(pattern, text), text
        parse_condition(text)
    for text in bad:
        assert not re.search(pattern, text), text
        with pytest.raises(ConfigError):
            parse_condition(text)


def test_a_condition_holds_if_one_of_its_clauses_does():
    condition = parse_condition("steps>=100|episodes>=5")

    assert not condition.holds(Progress(99, 4, []))
    assert condition.holds(Progress(100, 0, []))
    assert condition.holds(Progress(0, 5, []))


def test_one_lucky_episode_does_not_end_a_stage():
    condition = parse_condition("episode_return>=0.9")

    assert not condition.holds(Progress(10, 1, [1.0] * (RETURN_EPISODES - 1)))
    assert condition.holds(Progress(10, 1, [1.0] * RETURN_EPISODES))
    assert not condition.holds(Progress(10, 1, [1.0] * RETURN_EPISODES + [0.0] * RETURN_EPISODES))


def test_a_schedule_is_checked_without_torch_gymnasium_or_syllabus():
    program = (
        "import sys; from cleanrl_worker.wrappers.curriculum import check_schedule; check_schedule('babyai_goto');"
        "print([name for name in ('torch', 'gymnasium', 'syllabus', 'numpy') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, env=_paths())

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def _paths():
    """Without site-packages' .pth files, which some environments fill with imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture
def training(capfd):
    from cleanrl_worker.wrappers.curriculum import CurriculumTraining

    return lambda *stages: CurriculumTraining(read_schedule(list(stages)))


def play(env, steps, seed=None):
    """Take random steps; returns the IDs of the environments in the order of the stages."""
    env.action_space.seed(3)
    env.reset(seed=seed)
    seen = [env.unwrapped.spec.id]
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
        if env.unwrapped.spec.id != seen[-1]:
            seen.append(env.unwrapped.spec.id)
    return seen


def test_an_environment_goes_through_the_stages_and_stays_in_the_last(training):
    stages = [{"env_id": EMPTY, "episodes": 2}, {"env_id": EMPTY_6, "steps": 100}, {"env_id": EMPTY, "steps": 1}]
    course = training(*stages)
    env = course.make_env("ignored", 1, 0, False, "")()

    assert play(env, 1000, seed=1) == [EMPTY, EMPTY_6, EMPTY]
    assert course.stage == 2


def test_every_copy_changes_stage_with_its_next_episode(training):
    course = training({"env_id": EMPTY, "episodes": 1}, {"env_id": EMPTY_6})
    one, other = (course.make_env("", seed, seed, False, "")() for seed in (0, 1))
    one.reset(seed=1)
    other.reset(seed=2)

    while one.unwrapped.spec.id == EMPTY:
        _, _, terminated, truncated, _ = one.step(0)
        if terminated or truncated:
            one.reset()
    assert other.unwrapped.spec.id == EMPTY  # in the middle of its episode
    other.reset()

    assert other.unwrapped.spec.id == EMPTY_6


def test_stage_changes_are_events_and_nothing_else_is_on_stdout(training, capfd):
    course = training({"env_id": EMPTY, "episodes": 2}, {"env_id": EMPTY_6})
    play(course.make_env("", 1, 0, False, "")(), 500, seed=1)

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]

    assert [line["event"] for line in lines] == ["curriculum_stage"] * 2
    first, second = (line["payload"] for line in lines)
    assert (first["stage"], first["stages"], first["env_id"], first["condition"]) == (0, 2, EMPTY, "episodes>=2")
    assert (second["stage"], second["env_id"], second["before"]["episodes"]) == (1, EMPTY_6, 2)
    assert second["before"]["steps"] > 0


def test_babyais_own_prints_go_to_stderr(training, capfd):
    course = training({"env_id": "BabyAI-GoToLocal-v0"})
    capfd.readouterr()
    from minigrid.envs.babyai.core import roomgrid_level

    roomgrid_level.print("Sampling rejected: too near")
    course.make_env("", 1, 0, False, "")().reset(seed=1)

    captured = capfd.readouterr()
    assert captured.out == ""
    assert "Sampling rejected: too near" in captured.err


def test_the_seed_of_a_reset_is_a_seed_and_not_a_task(training):
    course = training({"env_id": "MiniGrid-DoorKey-6x6-v0"}, {"env_id": EMPTY_6})
    env = course.make_env("", 1, 0, False, "")()

    first, _ = env.reset(seed=1)
    other, _ = env.reset(seed=2)
    again, _ = env.reset(seed=1)

    assert (first == again).all()
    assert (first != other).any()
    assert env.unwrapped.spec.id == "MiniGrid-DoorKey-6x6-v0"


def test_the_same_seed_gives_the_same_training(training):
    def course_of(seed):
        env = training({"env_id": EMPTY, "episodes": 1}, {"env_id": "MiniGrid-DoorKey-6x6-v0"}).make_env(
            "", seed, 0, False, ""
        )()
        env.action_space.seed(3)
        seen = [env.reset(seed=seed)[0].tobytes()]
        for _ in range(300):
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            seen.append((env.reset()[0] if terminated or truncated else observation).tobytes())
        return seen

    assert course_of(5) == course_of(5)
    assert course_of(5) != course_of(6)


def test_only_one_environment_exists_at_a_time(training, monkeypatch):
    closed = []
    course = training({"env_id": EMPTY, "episodes": 1}, {"env_id": EMPTY_6})
    env = course.make_env("", 1, 0, False, "")()
    first = env.unwrapped
    monkeypatch.setattr(first, "close", lambda: closed.append(first.spec.id))

    play(env, 200, seed=1)

    assert closed == [EMPTY]


def test_a_curriculum_continues_from_saved_counts(training):
    stages = [{"env_id": EMPTY, "episodes": 5}, {"env_id": EMPTY_6, "episodes": 5}, {"env_id": EMPTY}]
    course = training(*stages)
    env = course.make_env("", 1, 0, False, "")()

    course.catch_up(1, 70, 4)
    env.reset(seed=1)

    assert env.unwrapped.spec.id == EMPTY_6
    assert course.counts() == (1, 70, 4)
    with pytest.raises(ConfigError, match="The checkpoint is in stage 8, but the schedule has only 3"):
        course.catch_up(7, 0, 0)
    with pytest.raises(ConfigError, match="belongs to a training without a curriculum"):
        course.catch_up(-1, 0, 0)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([EMPTY, "MiniGrid-Emtpy-5x5-v0"], r"\[1\].env_id: there is no environment .* Did you mean MiniGrid-Empty-5x5"),
        ([EMPTY, "CartPole-v1"], r"\[1\].env_id: CartPole-v1 has different observations .* from MiniGrid-Empty-5x5-v0"),
    ],
)
def test_stages_that_do_not_exist_or_differ_are_refused_before_training(training, stages, message):
    with pytest.raises(ConfigError, match=message):
        training(*[{"env_id": env_id} for env_id in stages])


def test_syllabus_leaves_no_stand_ins_and_no_shared_memory_behind():
    import cleanrl_worker.wrappers.syllabus_rl
    import syllabus.core.evaluator as evaluator

    assert cleanrl_worker.wrappers.syllabus_rl.SequentialCurriculum
    for name in ("ray", "matplotlib.pyplot", "pettingzoo"):
        assert not type(sys.modules.get(name)).__name__.startswith("_StandIn")
    assert isinstance(evaluator.GymnasiumEvaluationWrapper.env_count, list)


def test_a_curriculum_does_not_import_weights_and_biases(training, monkeypatch):
    monkeypatch.delitem(sys.modules, "wandb", raising=False)

    training({"env_id": EMPTY}, {"env_id": EMPTY_6})

    assert "wandb" not in sys.modules


def test_a_curriculum_of_flat_environments_works_as_well(training):
    course = training({"env_id": "CartPole-v0", "episodes": 1}, {"env_id": "CartPole-v1"})
    env = course.make_env("", 1, 0, False, "")()

    assert play(env, 100, seed=1) == ["CartPole-v0", "CartPole-v1"]
    assert isinstance(env.observation_space, gymnasium.spaces.Box)


COURSE = [{"env_id": EMPTY, "steps": 300}, {"env_id": EMPTY_6, "steps": 100000}]
SHORT = {"algo": "ppo", "env_id": EMPTY, "total_timesteps": 1024, "seed": 1}


@pytest.mark.slow
def test_a_training_goes_through_the_stages_and_a_resumed_one_stays_in_its_stage(launch):
    extras = {"curriculum_schedule": COURSE, "checkpoint_every": 512}
    first = launch({**SHORT, "extras": extras})
    resume = {**extras, "mode": "resume_training", "policy_path": first.ground.run}
    second = launch({**SHORT, "total_timesteps": 1536, "extras": resume})

    assert (first.code, second.code) == (0, 0), (first.last_words, second.last_words)
    assert [event["payload"]["stage"] for event in first.events("curriculum_stage")] == [0, 1]
    assert [event["payload"]["stage"] for event in second.events("curriculum_stage")] == [0, 1]
    assert second.events("curriculum_stage")[1]["payload"]["before"] == {"resumed": True}
    metrics = [line for line in first.measurements() if line.get("name") == "curriculum/stage"]
    assert metrics[-1]["value"] == 1


def test_a_curriculum_is_resumed_and_evaluated_from_its_run_folder_alone(launch):
    requested = {"total_timesteps": 512, "seed": 1, "extras": {"curriculum_schedule": COURSE}}
    first = launch(requested)
    again = {"mode": "resume_training", "policy_path": first.ground.run}
    second = launch({"total_timesteps": 1024, "extras": again})
    played = {"mode": "policy_eval", "policy_path": first.ground.run, "eval_episodes": 1, "eval_max_episode_steps": 5}
    third = launch({"extras": played})

    assert (first.code, second.code, third.code) == (0, 0, 0), (second.last_words, third.last_words)
    now = [event["payload"]["env_id"] for event in first.events("curriculum_stage")][-1]
    saved = load_checkpoint(first.ground.run)
    assert (saved.env_id, [stage["env_id"] for stage in saved.curriculum]) == (now, [EMPTY, EMPTY_6])
    assert load_checkpoint(second.ground.run).curriculum == saved.curriculum
    assert third.events("run_completed")[0]["payload"]["env_id"] == now
    assert first.events("run_completed")[0]["payload"]["env_id"] == EMPTY_6  # its last stage


@pytest.mark.slow
def test_an_old_checkpoint_without_its_curriculum_is_not_resumed_without_one(launch, tmp_path):
    first = launch({**SHORT, "total_timesteps": 512, "extras": {"curriculum_schedule": COURSE}})
    found = load_checkpoint(first.ground.run)
    old = {name: value for name, value in vars(found).items() if name not in ("path", "curriculum")}
    save_checkpoint(tmp_path, {**old, "env_id": EMPTY})  # as older versions labelled it

    second = launch({**SHORT, "extras": {"mode": "resume_training", "policy_path": str(tmp_path)}})

    assert second.code != 0
    assert "Set its curriculum_schedule to resume it" in second.events("run_failed")[0]["payload"]["error"]


@pytest.mark.slow
def test_a_stage_that_does_not_exist_fails_the_run_with_its_name(launch):
    stages = [{"env_id": EMPTY}, {"env_id": "MiniGrid-Emtpy-5x5-v0"}]

    trial = launch({**SHORT, "extras": {"curriculum_schedule": stages}})

    assert trial.code == 2
    error = trial.events("run_failed")[0]["payload"]["error"]
    assert "curriculum_schedule[1].env_id: there is no environment 'MiniGrid-Emtpy-5x5-v0'" in error


def test_an_invalid_condition_is_refused_immediately(launch):
    trial = launch({**SHORT, "extras": {"curriculum_schedule": [{"env_id": EMPTY, "condition": "steps=>5"}]}})

    assert trial.code == 2
    assert "'steps=>5' is not a valid condition" in trial.events("run_failed")[0]["payload"]["error"]
