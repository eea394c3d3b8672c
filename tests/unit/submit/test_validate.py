import json
import math
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic.model.errors import BadConfig, UnknownWorker
from mosaic.model.machine import Machine
from mosaic.model.run import GpuRequest, Limits, Lineage, Membership, ResourceRequest
from mosaic.model.ulid import is_ulid, new_ulid
from mosaic.submit.document import fingerprint, read_document
from mosaic.submit.needs import with_worker_needs
from mosaic.submit.validate import validate as validate_document

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OTHER_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAW"


def validate(config, context):
    """Validate as a submit does: the text, or the given object as text, is parsed first."""
    return validate_document(read_document(config), context)


def trainer_config(worker=None, metadata=None, **payload):
    """The smallest config that passes, with changes."""
    return {
        "metadata": {"worker": {"module": "toy_worker.cli", **(worker or {})}, **(metadata or {})},
        "payload": payload,
    }


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def worker(**fields):
    return trainer_config(worker=fields)


def config(**fields):
    return worker(config=fields)


def extras(**fields):
    return config(extras=fields)


def made_from(checkpoint):
    return trainer_config(metadata={"parent_run_id": ID, "relation": "resume", "parent_checkpoint": checkpoint})


def resources(**fields):
    return trainer_config(resources=fields)


def limits(**fields):
    return trainer_config(limits=fields)


def gpus(**fields):
    return trainer_config(resources={"gpus": fields})


BAD = [
    # the document
    ("{not json", "config", "not valid JSON"),
    ("", "config", "not valid JSON"),
    ("[1]", "config", "must be a JSON object, not list"),
    ("null", "config", "must be a JSON object"),
    ('{"a": ' * 100_000, "config", "nested too deeply"),
    (config(deep=nested(100)), "config", "nested too deeply"),
    (config(big="x" * (4 * 1024 * 1024)), "config", "bytes; the maximum"),
    ({"metadata": {1, 2}}, "config", "cannot be written as JSON"),
    ('{"metadata": {"note": "\\ud800"}}', "metadata.note", "half of a surrogate pair"),
    # shapes
    ({}, "metadata.worker.module", "Set a module"),
    ({"metadata": []}, "metadata", "must be an object"),
    ({"metadata": {"worker": "toy"}}, "metadata.worker", "must be an object"),
    ({**worker(), "payload": 3}, "payload", "must be an object"),
    (trainer_config(resources=[]), "payload.resources", "must be an object"),
    (trainer_config(resources={"gpus": 1}), "payload.resources.gpus", "must be an object"),
    # unknown fields
    ({**worker(), "payloads": {}}, "payloads", "Did you mean 'payload'?"),
    ({**worker(), "schedule": {}}, "schedule", "Valid fields: metadata, payload"),
    ({**worker(), "resources": {}}, "resources", "Did you mean 'payload.resources'?"),
    ({**worker(), "run_name": "x"}, "run_name", "Did you mean 'metadata.run_name'?"),
    (
        trainer_config(metadata={"artifacts": {}}),
        "metadata.artifacts",
        "Valid fields: experiment, notes, operators, parent_checkpoint, parent_run_id",
    ),
    (trainer_config(metadata={"config": {}}), "metadata.config", "Did you mean 'metadata.worker.config'?"),
    (trainer_config(metadata={"tag": []}), "metadata.tag", "Did you mean 'tags'?"),
    (trainer_config(gpus={}), "payload.gpus", "Did you mean 'payload.resources.gpus'?"),
    (trainer_config(resources={"disk_mb": 1}), "payload.resources.disk_mb", "Valid fields: cpus, gpus, memory_mb"),
    (trainer_config(resource={}), "payload.resource", "Did you mean 'resources'?"),
    (trainer_config(resources={"gpu": {}}), "payload.resources.gpu", "Did you mean 'gpus'?"),
    (worker(argumens=[]), "metadata.worker.argumens", "Did you mean 'arguments'?"),
    (worker(zzz=1), "metadata.worker.zzz", "Valid fields: arguments, commands, config"),
    (gpus(request=1), "payload.resources.gpus.request", "Did you mean 'requested'?"),
    (limits(time=1), "payload.limits.time", "Did you mean 'time_s'?"),
    # parents
    (
        trainer_config(metadata={"parent_run_id": "x", "relation": "eval"}),
        "metadata.parent_run_id",
        "not a valid run id",
    ),
    (trainer_config(metadata={"parent_run_id": ID, "relation": "son"}), "metadata.relation", "one of resume, eval"),
    (trainer_config(metadata={"parent_run_id": ID}), "metadata.relation", "or neither"),
    (made_from("/etc/passwd"), "metadata.parent_checkpoint", "must be an object"),
    (made_from({"step": 10**30}), "metadata.parent_checkpoint.step", "must be between"),
    (made_from({"step": "7"}), "metadata.parent_checkpoint.step", "an integer"),
    (made_from({"size": 3}), "metadata.parent_checkpoint.size", "unknown field"),
    (trainer_config(metadata={"parent_checkpoint": {"step": 1}}), "metadata.parent_checkpoint", "needs the run"),
    (trainer_config(metadata={"relation": "eval"}), "metadata.relation", "or neither"),
    # what to start
    (worker(name="acme"), "metadata.worker.name", "no 'acme' has toy_worker. These have it: .venv."),
    (
        worker(module="", script="/bin/sh", name="toy"),
        "metadata.worker.name",
        "environment with metadata.worker.variant",
    ),
    (worker(module="", script=""), "metadata.worker.module", "Set a module"),
    (worker(script="/bin/sh"), "metadata.worker.script", "Keep one of the two"),
    (worker(module="../evil"), "metadata.worker.module", "not a valid module name"),
    (worker(module="toy_worker..cli"), "metadata.worker.module", "not a valid module name"),
    (worker(module="-c"), "metadata.worker.module", "not a valid module name"),
    (worker(module="toy_worker.cli\n"), "metadata.worker.module", "not a valid module name"),
    (worker(module=7), "metadata.worker.module", "must be a string"),
    (worker(module="toy_wroker.cli"), "metadata.worker.module", "Did you mean 'toy_worker'?"),
    (worker(variant="jax"), "metadata.worker.module", "no environment has 'toy_worker@jax'"),
    (worker(arguments="--x"), "metadata.worker.arguments", "must be a list"),
    (worker(arguments=["a", 1]), "metadata.worker.arguments[1]", "must be a string"),
    (worker(arguments=["a\0b"]), "metadata.worker.arguments[0]", "NUL"),
    (worker(arguments=["x" * 200_000]), "metadata.worker.arguments[0]", "longer than"),
    (worker(arguments=["-v", "--interactive"]), "metadata.worker.arguments[1]", "interactive"),
    (worker(worker_id="../x"), "metadata.worker.worker_id", "64 letters"),
    (worker(worker_id="x" * 65), "metadata.worker.worker_id", "64 letters"),
    (worker(use_grpc="yes"), "metadata.worker.use_grpc", "true or false"),
    (worker(use_grpc=True, grpc_target="10.0.0.1:1"), "metadata.worker.grpc_target", "daemon is 127.0.0.1:50055"),
    (worker(config=[]), "metadata.worker.config", "must be an object"),
    (config(extras=[]), "metadata.worker.config.extras", "must be an object"),
    # environment
    (worker(environment={"A=B": "x"}), "metadata.worker.environment.A=B", "letters, digits"),
    (worker(environment={"": "x"}), "metadata.worker.environment.", "letters, digits"),
    (worker(environment={"A": 1}), "metadata.worker.environment.A", 'write it as "1"'),
    (worker(environment={"A": "\0"}), "metadata.worker.environment.A", "NUL"),
    (worker(environment={"CUDA_VISIBLE_DEVICES": ""}), "metadata.worker.environment.CUDA_VISIBLE_DEVICES", "granted"),
    (worker(environment={"LD_PRELOAD": "x"}), "metadata.worker.environment.LD_PRELOAD", "every process"),
    (worker(environment={"LD_AUDIT": "x"}), "metadata.worker.environment.LD_AUDIT", "every process"),
    (worker(environment={"PYTHONHOME": "x"}), "metadata.worker.environment.PYTHONHOME", "PYTHONPATH"),
    (worker(environment={"BASH_ENV": "x"}), "metadata.worker.environment.BASH_ENV", "Source it"),
    (worker(environment={"A": "\ud800"}), "metadata.worker.environment.A", "surrogate"),
    (worker(environment={"A": "\0"}), "metadata.worker.environment.A", "NUL"),
    (worker(environment={"A=B": "x"}), "metadata.worker.environment.A=B", "valid variable name"),
    (worker(environment={"A\n": "x"}), "metadata.worker.environment.A\n", "valid variable name"),
    (worker(environment={"MOSAIC_RUN_ID": "x"}), "metadata.worker.environment.MOSAIC_RUN_ID", "are reserved"),
    # ids and names
    (trainer_config(metadata={"run_id": "mine"}), "metadata.run_id", "not a valid ULID"),
    (trainer_config(metadata={"run_id": ID.lower()}), "metadata.run_id", "not a valid ULID"),
    (trainer_config(metadata={"run_id": "8" + ID[1:]}), "metadata.run_id", "not a valid ULID"),
    (trainer_config(metadata={"run_id": "../../etc"}), "metadata.run_id", "not a valid ULID"),
    (trainer_config(metadata={"run_id": OTHER_ID}), "metadata.run_id", "already"),
    (config(run_id="x"), "metadata.worker.config.run_id", "not a valid ULID"),
    (config(run_id=OTHER_ID), "metadata.worker.config.run_id", "already"),
    (
        trainer_config(worker={"config": {"run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAX"}}, metadata={"run_id": ID}),
        "metadata.worker.config.run_id",
        "differs from metadata.run_id",
    ),
    (trainer_config(metadata={"run_name": ""}), "metadata.run_name", "1 to 120 printable"),
    (trainer_config(metadata={"run_name": "  "}), "metadata.run_name", "1 to 120 printable"),
    (trainer_config(metadata={"run_name": "x" * 121}), "metadata.run_name", "1 to 120 printable"),
    (trainer_config(metadata={"run_name": "a\x1b[31m"}), "metadata.run_name", "1 to 120 printable"),
    (trainer_config(metadata={"tags": "x"}), "metadata.tags", "must be a list"),
    (trainer_config(metadata={"tags": ["ok", "x" * 65]}), "metadata.tags[1]", "1 to 64 printable"),
    (trainer_config(metadata={"tags": ["x"] * 33}), "metadata.tags", "maximum is 32"),
    # resources and limits
    (gpus(requested=-1), "payload.resources.gpus.requested", "between 0 and 64"),
    (gpus(requested=65), "payload.resources.gpus.requested", "between 0 and 64"),
    (gpus(requested=1.5), "payload.resources.gpus.requested", "an integer"),
    (gpus(requested=True), "payload.resources.gpus.requested", "an integer"),
    (gpus(requested="1"), "payload.resources.gpus.requested", "an integer"),
    (gpus(requested=1, mandatory=1), "payload.resources.gpus.mandatory", "true or false"),
    (gpus(requested=3, mandatory=True), "payload.resources.gpus.requested", "this machine has 2"),
    (resources(cpus=-1), "payload.resources.cpus", "between 0 and 4096"),
    (resources(cpus=math.nan), "payload.resources.cpus", "between 0 and 4096"),
    (resources(cpus="2"), "payload.resources.cpus", "must be a number"),
    (resources(cpus=True), "payload.resources.cpus", "must be a number"),
    (resources(cpus=5), "payload.resources.cpus", "5 are requested but runs on this machine may use 4"),
    (resources(memory_mb=1.5), "payload.resources.memory_mb", "an integer"),
    (
        resources(memory_mb=16384),
        "payload.resources.memory_mb",
        "16 GB are requested but runs on this machine may use 8",
    ),
    (resources(memory=4), "payload.resources.memory", "Did you mean 'memory_mb'?"),
    (resources(cpu=4), "payload.resources.cpu", "Did you mean 'cpus'?"),
    (limits(time_s=0), "payload.limits.time_s", "more than 0"),
    (limits(time_s=-5), "payload.limits.time_s", "more than 0"),
    (limits(grace_s=math.inf), "payload.limits.grace_s", "more than 0"),
    (limits(quiet_s=math.nan), "payload.limits.quiet_s", "more than 0"),
    (limits(time_s=1e300), "payload.limits.time_s", "at most"),
    (limits(heartbeat_s="5"), "payload.limits.heartbeat_s", "number of seconds"),
    (limits(spin_s=-1), "payload.limits.spin_s", "0 (never), or more than 0"),
    (limits(spin_s=math.nan), "payload.limits.spin_s", "0 (never), or more than 0"),
    (limits(no_progress_s=True), "payload.limits.no_progress_s", "number of seconds"),
    # inside the worker's config
    (config(mode="interactive"), "metadata.worker.config.mode", "mosaic worker test"),
    (extras(mode="interactive"), "metadata.worker.config.extras.mode", "mosaic worker test"),
    (extras(fastlane_video_mode="on"), "metadata.worker.config.extras.fastlane_video_mode", "single, grid, off"),
    (extras(fastlane_slot=-1), "metadata.worker.config.extras.fastlane_slot", "between"),
    (extras(fastlane_grid_limit=0), "metadata.worker.config.extras.fastlane_grid_limit", "between"),
    # paths
    (extras(tensorboard_dir="../x"), "metadata.worker.config.extras.tensorboard_dir", "outside the run's folder"),
    (extras(tensorboard_dir="a/../../x"), "metadata.worker.config.extras.tensorboard_dir", "outside the run's folder"),
    (extras(checkpoint_dir="/tmp/x"), "metadata.worker.config.extras.checkpoint_dir", "outside the run's folder"),
    (extras(video_dir="~/x"), "metadata.worker.config.extras.video_dir", "~ or $"),
    (extras(save_dir="$HOME/x"), "metadata.worker.config.extras.save_dir", "~ or $"),
    (extras(log_dir="a\0"), "metadata.worker.config.extras.log_dir", "NUL"),
    (extras(log_dir=3), "metadata.worker.config.extras.log_dir", "must be a string"),
    (config(model_dir="/etc"), "metadata.worker.config.model_dir", "outside the run's folder"),
    (
        extras(algo_params={"save_path": "../x"}),
        "metadata.worker.config.extras.algo_params.save_path",
        "outside the run's folder",
    ),
    (extras(policy_path="/no/such/file"), "metadata.worker.config.extras.policy_path", "does not exist"),
    (extras(policy_path="model.pt"), "metadata.worker.config.extras.policy_path", "is relative"),
    (extras(policy_path="/dev/zero"), "metadata.worker.config.extras.policy_path", "not a file or directory"),
    (config(config_path="/no/such"), "metadata.worker.config.config_path", "does not exist"),
]


@pytest.mark.parametrize(("bad", "field", "why"), BAD, ids=[f"{field}-{why[:20]}" for _, field, why in BAD])
def test_a_bad_config_is_refused_with_its_field_and_nothing_is_written(
    make_context, tmp_path, files_below, bad, field, why
):
    context = make_context(run_exists=lambda run_id: run_id == OTHER_ID)
    before = files_below(tmp_path)

    with pytest.raises(BadConfig) as refused:
        validate(bad, context)

    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")
    assert why in str(refused.value)
    assert files_below(tmp_path) == before


def test_an_unknown_worker_is_an_error_of_its_own_kind(make_context):
    with pytest.raises(UnknownWorker, match="Installed: toy"):
        validate(worker(module="nosuch.cli"), make_context())


@pytest.mark.parametrize("text", [True, False], ids=["text", "mapping"])
def test_a_complete_config_becomes_a_typed_object(make_context, text):
    submitted = {
        "metadata": {
            "run_id": ID,
            "run_name": "CartPole-PPO-Experiment",
            "tags": ["a"],
            "notes": "free",
            "worker": {
                "module": "toy_worker.cli",
                "arguments": ["--dry-run"],
                "environment": {"A": "b"},
                "use_grpc": True,
                "grpc_target": "localhost:50055",
                "worker_id": "worker-007",
                "config": {"env_id": "CartPole-v1", "total_timesteps": 500, "seed": 1},
            },
        },
        "payload": {
            "resources": {"gpus": {"requested": 9, "mandatory": False}},
            "limits": {"time_s": 60, "grace_s": 1},
        },
    }

    run = validate(json.dumps(submitted) if text else submitted, make_context())

    assert (run.run_id, run.name, run.area, run.worker_name) == (ID, "CartPole-PPO-Experiment", "runs", "toy")
    assert run.gpus == GpuRequest(9, False)
    assert run.limits == Limits(time_s=60.0, grace_s=1.0)
    assert run.tags == ("a",)
    assert run.total_steps == 500
    assert run.worker.arguments == ("--dry-run",)
    assert run.worker.environment == {"A": "b"}
    assert run.worker.use_grpc
    assert run.worker.worker_id == "worker-007"
    worker = {**submitted["metadata"]["worker"], "name": "toy"}
    assert run.raw == {**submitted, "metadata": {**submitted["metadata"], "worker": worker}}


def test_missing_fields_get_defaults_and_the_callers_object_is_not_changed(make_context):
    submitted = config(env_id="CartPole-v1")
    before = json.dumps(submitted)

    run = validate(submitted, make_context(idempotency_key="k"))

    assert is_ulid(run.run_id)
    assert run.raw["metadata"]["run_id"] == run.run_id
    assert run.name == "toy CartPole-v1"
    assert run.worker.worker_id == "worker-001"
    assert run.limits == Limits()
    assert run.idempotency_key == "k"
    assert json.dumps(submitted) == before


def test_two_submits_of_one_config_are_two_runs(make_context):
    assert validate(worker(), make_context()).run_id != validate(worker(), make_context()).run_id


def test_null_is_the_same_as_a_missing_field(make_context):
    nulls = trainer_config(worker={"config": None, "script": None, "arguments": None}, metadata={"run_id": None})
    nulls["payload"] = None

    assert validate(nulls, make_context()).worker.arguments == ()


def test_a_run_id_in_the_workers_config_is_the_runs(make_context):
    assert validate(config(run_id=ID), make_context()).run_id == ID
    assert validate(trainer_config({"config": {"run_id": ID}}, {"run_id": ID}), make_context()).run_id == ID


@pytest.mark.parametrize(
    ("fields", "area"),
    [
        ({}, "runs"),
        ({"extras": {"mode": "policy_eval"}}, "evals"),
        ({"extras": {"mode": "train"}}, "runs"),
        ({"test_mode": True}, "evals"),
        ({"test_mode": False}, "runs"),
        ({"extras": {"test_mode": True}}, "evals"),
    ],
)
def test_evaluations_go_to_their_own_area(make_context, fields, area):
    assert validate(config(**fields), make_context()).area == area


@pytest.mark.parametrize(
    ("fields", "total"),
    [
        ({"total_timesteps": 5, "steps": 6}, 5),
        ({"total_steps": 7}, 7),
        ({"steps": 8}, 8),
        ({"steps": 1e5}, 100_000),
        ({"steps": 1.5}, None),
        ({"steps": "8"}, None),
        ({"steps": True}, None),
        ({"steps": -1}, None),
        ({"steps": 2**70}, None),
    ],
)
def test_the_total_steps_are_found_under_any_of_their_names(make_context, fields, total):
    assert validate(config(**fields), make_context()).total_steps == total


def test_before_tcp_is_bound_only_the_default_target_is_accepted(make_context):
    context = make_context(tcp_address="")

    assert validate(worker(use_grpc=True, grpc_target="127.0.0.1:50055"), context).worker.use_grpc
    with pytest.raises(BadConfig, match="grpc_target"):
        validate(worker(use_grpc=True, grpc_target="127.0.0.1:50056"), context)


def test_a_script_is_resolved_and_names_the_run(make_context, tmp_path):
    (tmp_path / "real.sh").write_text("echo hi\n")
    (tmp_path / "link.sh").symlink_to("real.sh")

    run = validate({"metadata": {"worker": {"script": str(tmp_path / "link.sh")}}}, make_context())

    assert run.worker.script == str(tmp_path / "real.sh") == run.raw["metadata"]["worker"]["script"]
    assert (run.area, run.worker_name, run.name) == ("custom_scripts", "real.sh", "real.sh")


def test_the_steps_of_a_script_are_in_its_config_or_in_its_header(make_context, tmp_path):
    (tmp_path / "train.sh").write_text("#!/bin/sh\n# @total_timesteps: 50000\n")
    script = {"script": str(tmp_path / "train.sh")}

    totals = [
        validate({"metadata": {"worker": {**script, "config": config}}}, make_context()).total_steps
        for config in ({}, {"total_timesteps": 7})
    ]

    assert totals == [50_000, 7]


def test_a_config_names_its_parent_and_may_contain_notes(make_context):
    metadata = {"parent_run_id": OTHER_ID, "relation": "resume", "notes": {"paper": "table 3"}}

    run = validate(trainer_config(metadata=metadata), make_context(run_exists=OTHER_ID.__eq__))

    assert run.lineage == Lineage(OTHER_ID, "resume")
    assert run.raw["metadata"]["notes"] == {"paper": "table 3"}


def test_one_config_has_one_hash_however_it_is_written(make_context):
    text = '{"payload": {},   "metadata": {"worker": {"module": "toy_worker.cli"}}}'

    assert fingerprint(read_document(text)) == fingerprint(worker())
    assert fingerprint(read_document(text)) != fingerprint(config(steps=1))


def test_a_run_without_requests_is_not_refused_by_a_small_machine(make_context):
    context = make_context(machine=Machine(0.5, 100))

    config = validate(trainer_config(), context)

    assert with_worker_needs(config, {}, context.machine).resources == ResourceRequest(0.5, 100)
    with pytest.raises(BadConfig, match=r"1 are requested but runs on this machine may use 0\.5"):
        validate(resources(cpus=1), context)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("/no/such.sh", "does not exist"),
        ("train.sh", "is relative"),
        ("/etc", "not a file"),
        ("/dev/null", "not a file"),
        ("/a\0b", "NUL"),
    ],
)
def test_a_script_that_cannot_be_run_is_refused(make_context, script, why):
    with pytest.raises(BadConfig, match=why) as refused:
        validate({"metadata": {"worker": {"script": script}}}, make_context())

    assert refused.value.field == "metadata.worker.script"


def test_a_scripts_variant_names_an_environment(make_context, tmp_path):
    (tmp_path / "x.py").write_text("")

    with pytest.raises(UnknownWorker, match=r"metadata\.worker\.variant: there is no environment 'cleanrl'"):
        validate({"metadata": {"worker": {"script": str(tmp_path / "x.py"), "variant": "cleanrl"}}}, make_context())


def test_input_paths_are_resolved_in_every_place(make_context, tmp_path):
    real, link = tmp_path / "policy.pt", tmp_path / "latest.pt"
    real.write_text("")
    link.symlink_to(real)
    where = str(link)

    run = validate(
        config(config_path=where, extras={"policy_path": where, "algo_params": {"checkpoint_path": where}}),
        make_context(),
    )

    read = run.worker.config
    assert read["config_path"] == str(real)
    assert read["extras"]["policy_path"] == str(real)
    assert read["extras"]["algo_params"]["checkpoint_path"] == str(real)
    assert run.raw["metadata"]["worker"]["config"] == read


def test_output_paths_stay_inside_the_run_folder(make_context, root):
    inside = str(root.run("runs", ID).path / "tb")

    run = validate(
        trainer_config({"config": {"extras": {"tensorboard_dir": "tb/./x/../y", "log_dir": inside}}}, {"run_id": ID}),
        make_context(),
    )

    assert run.worker.config["extras"]["log_dir"] == inside


def test_a_link_that_leads_out_of_the_run_folder_is_refused(make_context, root, tmp_path):
    folder = root.run("runs", ID).path
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)

    with pytest.raises(BadConfig, match="outside the run's folder"):
        validate(trainer_config({"config": {"extras": {"tensorboard_dir": "out/tb"}}}, {"run_id": ID}), make_context())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_refused(make_context, tmp_path):
    (tmp_path / "secret.pt").write_text("")
    (tmp_path / "secret.pt").chmod(0)

    with pytest.raises(BadConfig, match="cannot be read"):
        validate(extras(policy_path=str(tmp_path / "secret.pt")), make_context())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
WORKER = st.fixed_dictionaries(
    {"module": st.just("toy_worker.cli") | JSON},
    optional=dict.fromkeys(
        ("script", "arguments", "config", "environment", "grpc_target", "worker_id", "use_grpc"), JSON
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.fixed_dictionaries({"worker": WORKER}, optional={"run_id": JSON, "run_name": JSON, "tags": JSON}),
    payload=JSON | st.fixed_dictionaries({}, optional={"resources": JSON, "limits": JSON}),
)
def test_any_json_is_either_a_run_or_a_bad_config(make_context, metadata, payload):
    try:
        run = validate({"metadata": metadata, "payload": payload}, make_context())
    except BadConfig:
        return

    assert is_ulid(run.run_id)


def test_generated_ids_are_valid(make_context):
    ours = new_ulid()

    assert validate(trainer_config(metadata={"run_id": ours}), make_context()).run_id == ours


def test_a_config_names_its_experiment_and_what_varies_in_it(make_context):
    experiment = {"name": "lr-sweep", "axes": {"learning_rate": 0.001}}

    config = validate(trainer_config(metadata={"experiment": experiment}), make_context())

    assert config.membership == Membership("lr-sweep", {"learning_rate": 0.001})


@pytest.mark.parametrize(
    ("experiment", "field"),
    [
        ({"name": "../x"}, "metadata.experiment.name"),
        ({"axes": {"lr": 1}}, "metadata.experiment.name"),
        ({"name": "x", "axis": {}}, "metadata.experiment.axis"),
        ({"name": "x", "axes": {"lr": "1" * 5000}}, "metadata.experiment.axes"),
    ],
)
def test_a_bad_experiment_is_refused(make_context, experiment, field):
    with pytest.raises(BadConfig) as refused:
        validate(trainer_config(metadata={"experiment": experiment}), make_context())

    assert refused.value.field == field
