"""Operators with the real daemon: a tiny worker starts toy workers from operators.json and plays with them."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import mosaic_sdk
import pytest
from lab import all_pids, cmdline, environ, wait_until

from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig, NoCheckpoint, UnknownWorker
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "stage_worker" / "stage_worker"
TOY_ENV = {"id": "toy", "kwargs": {}, "wrappers": [], "api": "auto"}


@pytest.fixture(scope="module")
def lab(shared_lab):
    """A daemon with the worker `stage`, in an environment that can also import the SDK."""
    venv = shared_lab.root.envs / "stage"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    shutil.copytree(FIXTURE, site / "stage_worker")
    about = site / "stage_worker-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stage-worker\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[mosaic.workers]\nstage = stage_worker:get_worker_metadata\n")
    folders = [sysconfig.get_path("purelib"), str(Path(mosaic_sdk.__file__).parents[1])]
    (site / "platform.pth").write_text("\n".join(folders) + "\n")
    return shared_lab


@pytest.fixture(scope="module")
def trained(lab):
    """A run with checkpoints at steps 100, 200 and 300, and a best one."""
    keys = {"steps": 300, "seed": 3, "checkpoint_every": 100, "eval_every": 100, "episode_length": 20}
    return lab.wait_until_over(lab.submit("walker", **keys))


def submit(lab, operators, environment=None, **config):
    worker = {"module": "stage_worker.cli", "config": config, "environment": environment or {}}
    return lab.client.submit_run({"metadata": {"worker": worker, "operators": operators}})


def policy_of(run, **more):
    return {"kind": "rl", "run": run.run_id, "env": TOY_ENV, **more}


def played(lab, run):
    """The return of each operator."""
    return {event["agent_id"]: event["total_reward"] for event in lab.events(run, "episode")}


def type_in(lab, *words, code=0):
    """What the command prints."""
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
    done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, text=True, timeout=90)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def saved(run, step):
    return str(Path(run.run_dir) / "checkpoints" / f"checkpoint-{step:012d}.json")


def test_an_evaluation_starts_its_operators_from_the_file(lab, trained):
    operators = {"ppo": policy_of(trained), "toy": {"kind": "worker", "worker": "toy", "env": TOY_ENV}}

    run = lab.wait_until_over(submit(lab, operators, steps=5))

    assert (run.state, run.area) == (RunState.TERMINATED, "evals"), run.reason
    assert list(played(lab, run)) == ["ppo", "toy"]
    said = [json.loads(line) for line in lab.text(run).splitlines()]
    assert said == [{"policy": "checkpoint", "env_id": "toy"}, {"policy": "random", "env_id": "toy"}]


def test_the_file_has_commands_and_facts_and_only_the_owner_reads_it(lab, trained):
    run = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}))

    folder = lab.rundir(run)
    entry = read_json(folder.operators_file)["operators"]["ppo"]
    config = read_json(folder.operators / "ppo.json")
    assert entry["argv"][1:] == [
        "-m",
        "toy_worker.cli",
        "--config",
        str(folder.operators / "ppo.json"),
        "--interactive",
    ]
    assert entry["about"] == {
        **{"worker": "toy", "run_id": trained.run_id, "run_name": "walker", "env_id": "toy"},
        **{"checkpoint": saved(trained, 300), "step": 300},
    }
    assert (config["checkpoint"], config["episode_length"], config["run_id"]) == (saved(trained, 300), 20, run.run_id)
    assert (entry["env"]["MOSAIC_OPERATOR"], entry["cwd"]) == ("ppo", run.run_dir)
    for path in (folder.operators_file, folder.operators / "ppo.json"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_file_has_only_what_an_operator_has_other_than_its_worker(lab, trained):
    run = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}, environment={"FOO": "bar"}))

    folder = lab.rundir(run)
    changes = read_json(folder.operators_file)["operators"]["ppo"]["env"]
    assert changes["MOSAIC_OPERATORS_FILE"] is None  # its worker has it, and the operator does not
    assert read_json(folder.launch)["env"]["FOO"] == "bar"
    assert not {"FOO", "HOME", "MOSAIC_RUN_ID"} & set(changes)  # it has these from its worker


def test_what_was_found_is_recorded(lab, trained):
    run = submit(lab, {"ppo": {**policy_of(trained), "run": "walker", "checkpoint": "best"}})

    recorded = lab.client.get_run(run.run_id)
    entry = recorded.config["metadata"]["operators"]["ppo"]
    assert entry["run"] == trained.run_id
    assert entry["checkpoint"] == str(Path(trained.run_dir) / "checkpoints" / "best" / "state.json")
    assert (recorded.parent_run_id, recorded.relation) == (trained.run_id, "eval")
    assert run.run_id in lab.client.get_run(trained.run_id).children
    assert "operator ppo is checkpoints/best/state.json" in recorded.history[0].reason


def test_last_means_the_newest_training(lab, trained):
    lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}))
    newest = lab.wait_until_over(lab.submit("newest", steps=30, checkpoint_every=10))

    first = submit(lab, {"ppo": {"kind": "rl", "run": "last"}})
    second = submit(lab, {"ppo": {"kind": "rl", "run": "last"}})

    found = [lab.client.get_run(run.run_id).parent_run_id for run in (first, second)]
    assert found == [newest.run_id, newest.run_id]


def test_an_operator_without_an_env_only_selects_actions(lab, trained):
    run = lab.wait_until_over(submit(lab, {"ppo": {"kind": "rl", "run": trained.run_id}}, steps=50))

    assert played(lab, run)["ppo"] > 40  # of 50 actions 1: its skill is high


def test_two_policies_have_no_common_parent(lab, trained):
    older = policy_of(trained, checkpoint="checkpoints/checkpoint-000000000100.json")

    run = lab.wait_until_over(submit(lab, {"new": policy_of(trained), "old": older}))

    assert (run.state, run.parent_run_id) == (RunState.TERMINATED, "")
    about = {name: one["about"]["step"] for name, one in read_json(lab.rundir(run).operators_file)["operators"].items()}
    assert about == {"new": 300, "old": 100}


def test_the_provenance_has_the_operators(lab, trained):
    run = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}))

    lab.wait_until_run(run, lambda now: lab.rundir(now).provenance.exists(), "its provenance")
    operator = read_json(lab.rundir(run).provenance)["operators"]["ppo"]
    assert operator["about"]["checkpoint"] == saved(trained, 300)
    assert operator["code"]["source"].endswith("toy_worker")
    assert operator["python"]["packages"]


def test_show_names_the_operators(lab, trained):
    run = submit(lab, {"ppo": policy_of(trained), "toy": {"kind": "worker", "worker": "toy"}})

    text = type_in(lab, "show", run.run_id)

    assert f"ppo: toy, checkpoint-000000000300.json (step 300) of run {trained.run_id} (walker)" in text
    assert "toy: toy" in text


def test_a_worker_says_whether_it_can_be_an_operator(lab):
    assert "yes: mosaic eval --operator rl:RUN, or --operator worker:toy" in type_in(lab, "worker", "describe", "toy")
    assert "no: it has no interactive mode" in type_in(lab, "worker", "describe", "stage")


def test_secrets_of_an_operator_are_masked(lab, trained):
    training = {"module": "toy_worker.cli", "config": {"steps": 20, "checkpoint_every": 10}}
    secretive = lab.submit_worker({**training, "environment": {"WANDB_API_KEY": "hush", "SDL_VIDEODRIVER": "dummy"}})
    lab.wait_until_over(secretive)

    run = lab.wait_until_over(submit(lab, {"ppo": policy_of(secretive)}))

    lab.wait_until_run(run, lambda now: lab.rundir(now).provenance.exists(), "its provenance")
    entry = read_json(lab.rundir(run).operators_file)["operators"]["ppo"]
    assert (entry["env"]["WANDB_API_KEY"], entry["env"]["SDL_VIDEODRIVER"]) == ("hush", "dummy")
    assert "hush" not in json.dumps(run.config)
    assert "hush" not in lab.rundir(run).provenance.read_text()
    assert "hush" not in type_in(lab, "show", run.run_id)


def test_an_evaluation_requests_the_gpus_of_its_policies(lab):
    one = lab.submit(steps=20, checkpoint_every=10, gpus={"requested": 1})
    plain = lab.submit(steps=20, checkpoint_every=10)
    for training in (one, plain):
        lab.wait_until_over(training)
    operators = {"a": policy_of(one), "b": policy_of(one), "c": policy_of(plain)}

    run = lab.client.get_run(submit(lab, operators).run_id)

    assert (run.gpus_requested, run.gpus_mandatory) == (1, False)


def test_a_submitted_resolution_is_replaced_by_the_daemons_own(lab, trained):
    forged = {"worker": {"module": "os", "arguments": ["x"]}, "about": {"worker": "nobody"}}

    run = submit(lab, {"ppo": policy_of(trained, resolved=forged)})

    resolved = lab.client.get_run(run.run_id).config["metadata"]["operators"]["ppo"]["resolved"]
    assert (resolved["worker"]["module"], resolved["about"]["worker"]) == ("toy_worker.cli", "toy")


def test_a_config_that_was_recorded_can_be_submitted_again(lab, trained):
    first = lab.client.get_run(submit(lab, {"ppo": policy_of(trained)}).run_id)
    again = {**first.config, "metadata": {**first.config["metadata"]}}
    del again["metadata"]["run_id"]

    second = lab.wait_until_over(lab.client.submit_run(again))

    assert second.state is RunState.TERMINATED
    assert second.config["metadata"]["operators"] == first.config["metadata"]["operators"]


def run_of(pid):
    found = [part for part in environ(pid).split(b"\0") if part.startswith(b"MOSAIC_RUN_ID=")]
    return found[0].decode().partition("=")[2] if found else ""


def operator_processes(run):
    return [pid for pid in all_pids() if f"{run.run_id}/operators/".encode() in cmdline(pid)]


@pytest.mark.parametrize("how", ["cancelled", "its worker is killed"])
def test_no_process_of_an_operator_outlives_its_evaluation(lab, how):
    """Not even one that hangs, ignores SIGTERM and has left processes in sessions of their own."""
    settings = {"hang_at": 0, "ignore_sigterm": True, "fork_children": 2, "setsid": True, "double_fork": True}
    operators = {"toy": {"kind": "worker", "worker": "toy", "env": TOY_ENV, "settings": settings}}
    run = lab.client.submit_run(
        {
            "metadata": {"worker": {"module": "stage_worker.cli"}, "operators": operators},
            "payload": {"limits": {"grace_s": 0.5}},
        }
    )
    wait_until(lambda: len(operator_processes(run)) >= 3, words="the operator and its children")

    if how == "cancelled":
        lab.client.cancel_run(run.run_id)
    else:
        (worker,) = [pid for pid in all_pids() if b"stage_worker.cli" in cmdline(pid) and run_of(pid) == run.run_id]
        os.kill(worker, signal.SIGKILL)

    end = lab.wait_until_over(run)
    assert end.state is (RunState.CANCELLED if how == "cancelled" else RunState.FAULTED)
    assert operator_processes(run) == []


def test_a_resumed_evaluation_has_the_same_checkpoint(lab):
    training = lab.submit(steps=1_000_000, rate=100, checkpoint_every=20)
    lab.wait_until_run(training, lambda now: now.summary.last_step > 25, "its first checkpoint")
    failed = lab.wait_until_over(submit(lab, {"ppo": policy_of(training)}, dies=True))
    used = failed.config["metadata"]["operators"]["ppo"]["checkpoint"]
    seen = lab.client.get_run(training.run_id).summary.last_step
    lab.wait_until_run(training, lambda now: now.summary.last_step > seen + 25, "a newer checkpoint")

    resumed = lab.client.submit_run({"metadata": {"parent_run_id": failed.run_id, "relation": "resume"}})

    lab.client.cancel_run(training.run_id)
    run = lab.wait_until_over(resumed)
    assert (failed.state, run.state, run.area) == (RunState.FAULTED, RunState.TERMINATED, "evals"), run.reason
    entry = read_json(lab.rundir(run).operators_file)["operators"]["ppo"]
    assert entry["about"]["checkpoint"] == used
    assert entry["about"]["step"] == int(Path(used).stem.partition("-")[2])
    assert (run.parent_run_id, run.relation) == (failed.run_id, "resume")
    worker = run.config["metadata"]["worker"]["config"]
    assert worker["resume_from"] == str(Path(failed.run_dir) / "checkpoints" / "journal.jsonl")


def test_an_evaluation_is_resumed_by_the_command(lab, trained):
    failed = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}, dies=True))

    text = type_in(lab, "resume", failed.run_id)

    run = lab.client.get_run(lab.client.get_run(failed.run_id).children[0])
    assert run.state is RunState.TERMINATED
    assert f"Continues checkpoints/journal.jsonl (step 0) of run {failed.run_id}" in text


def test_an_evaluation_without_a_finished_episode_cannot_be_resumed(lab, trained):
    operators = {"ppo": policy_of(trained, settings={"episode_length": 1})}
    run = lab.wait_until_over(submit(lab, operators, steps=2))  # the second step is refused: the episode is over

    with pytest.raises(NoCheckpoint, match="has not finished an episode"):
        lab.client.submit_run({"metadata": {"parent_run_id": run.run_id, "relation": "resume"}})


def test_a_resumed_evaluation_takes_no_other_operators(lab, trained):
    failed = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}, dies=True))
    metadata = {"parent_run_id": failed.run_id, "relation": "resume", "operators": {"ppo": policy_of(trained)}}

    with pytest.raises(BadConfig, match=r"metadata.operators: a resumed evaluation has the operators of its parent"):
        lab.client.submit_run({"metadata": metadata})


def test_an_evaluation_by_a_worker_itself_is_still_no_training(lab, trained):
    own = {"metadata": {"parent_run_id": trained.run_id, "relation": "eval", "evaluation": {"episodes": 1}}}
    run = lab.wait_until_over(lab.client.submit_run(own))

    with pytest.raises(BadConfig, match="only trainings can be resumed"):
        lab.client.submit_run({"metadata": {"parent_run_id": run.run_id, "relation": "resume"}})


BAD = {  # what is wrong: the operator, and the field and words of the refusal
    "no such run": ({"kind": "rl", "run": "nobody"}, "ppo.run", "There is no run 'nobody'"),
    "no such worker": ({"kind": "worker", "worker": "toi"}, "ppo", "Did you mean 'toy'?"),
    "no interactive mode": ({"kind": "worker", "worker": "stage"}, "ppo", "offers no interactive mode"),
    "no kind": ({"run": "last"}, "ppo.kind", "must be one of rl, llm, worker, and is missing"),
    "other kind": ({"kind": "human"}, "ppo.kind", "not 'human'"),
    "unknown key": ({"kind": "rl", "runs": "last"}, "ppo.runs", "Did you mean 'run'?"),
    "no run": ({"kind": "rl"}, "ppo.run", "missing"),
    "unknown setting": (
        {"kind": "worker", "worker": "toy", "settings": {"episode_lenght": 3}},
        "ppo.settings.episode_lenght",
        "Did you mean 'episode_length'?",
    ),
    "bad value": (
        {"kind": "worker", "worker": "toy", "settings": {"episode_length": "long"}},
        "ppo.settings.episode_length",
        'must be an integer, not "long"',
    ),
    "other env": (
        {"kind": "worker", "worker": "toy", "env": {"id": "CartPole-v1"}},
        "ppo.env.id",
        "has only the environment toy, and the environment to play is CartPole-v1",
    ),
    "kwargs": (
        {"kind": "worker", "worker": "toy", "env": {"id": "toy", "kwargs": {"size": 3}}},
        "ppo.env.kwargs",
        "owns_env: false",
    ),
}


@pytest.mark.parametrize(("operator", "field", "words"), BAD.values(), ids=list(BAD))
def test_a_bad_operator_is_refused_and_nothing_is_written(lab, operator, field, words):
    before = sorted(lab.root.trainer.glob("*/*"))

    with pytest.raises(BadConfig) as refused:
        submit(lab, {"ppo": operator})

    assert str(refused.value).startswith(f"metadata.operators.{field}: ")
    assert words in str(refused.value)
    assert sorted(lab.root.trainer.glob("*/*")) == before


def test_a_worker_that_is_not_installed_is_named_with_the_command(lab):
    with pytest.raises(UnknownWorker, match="mosaic worker install cleanrl"):
        submit(lab, {"ppo": {"kind": "worker", "worker": "cleanrl"}})


def test_a_policy_of_another_environment_is_refused(lab, trained):
    with pytest.raises(BadConfig, match=r"ppo.env.id: the policy was trained on toy, .* is CartPole-v1"):
        submit(lab, {"ppo": {**policy_of(trained), "env": {"id": "CartPole-v1"}}})


def test_a_run_without_a_checkpoint_is_refused(lab):
    plain = lab.wait_until_over(lab.submit(steps=20))

    with pytest.raises(BadConfig, match=r"ppo.run: Run .* has saved no checkpoint. Train with checkpoint_every"):
        submit(lab, {"ppo": policy_of(plain)})


def test_an_evaluation_has_no_policy(lab, trained):
    run = lab.wait_until_over(submit(lab, {"ppo": policy_of(trained)}))

    with pytest.raises(BadConfig, match=f"is an evaluation of run {trained.run_id}; only trainings"):
        submit(lab, {"ppo": {"kind": "rl", "run": run.run_id}})


def test_a_second_checkpoint_is_refused(lab, trained):
    with pytest.raises(BadConfig, match=r"ppo.settings.checkpoint: is set to the checkpoint of the parent"):
        submit(lab, {"ppo": policy_of(trained, settings={"checkpoint": saved(trained, 100)})})


def test_a_worker_may_be_given_a_run_as_a_setting(lab, trained):
    toy = {"kind": "worker", "worker": "toy", "env": TOY_ENV, "settings": {"checkpoint": "walker:best"}}

    run = lab.wait_until_over(submit(lab, {"toy": toy}))

    config = read_json(lab.rundir(run).operators / "toy.json")
    assert config["checkpoint"] == str(Path(trained.run_dir) / "checkpoints" / "best" / "state.json")
    assert run.parent_run_id == trained.run_id
