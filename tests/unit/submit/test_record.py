import json
import resource
from contextlib import contextmanager

import pytest

from mosaic.model.errors import BadConfig, StoreUnavailable, UnknownRun
from mosaic.submit.record import load, record, write_worker_file
from mosaic.submit.validate import validate

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def mode(path):
    return oct(path.stat().st_mode & 0o777)


@pytest.fixture
def submitted(make_context):
    def submit(key="", metadata=None, **worker):
        worker = {**({} if "script" in worker else {"module": "toy_worker.cli"}), **worker}
        config = {
            "metadata": {"run_id": ID, "worker": worker, **(metadata or {})},
            "payload": {"limits": {"time_s": 5}},
        }
        return validate(config, make_context(idempotency_key=key))

    return submit


@pytest.mark.parametrize("commands", [True, False])
def test_only_a_run_that_takes_commands_has_a_file_for_them(root, submitted, commands):
    rundir = record(root, submitted(commands=commands))

    assert rundir.commands.exists() is commands
    assert not commands or (mode(rundir.commands), rundir.commands.read_bytes()) == ("0o600", b"")
    assert load(root, ID).worker.commands is commands


def test_the_folder_and_the_config_of_a_run_are_private(root, submitted):
    config = submitted()

    rundir = record(root, config)

    assert rundir.path == root.area("runs") / ID
    for folder in (rundir.path, rundir.logs, rundir.tensorboard, rundir.checkpoints, rundir.videos):
        assert mode(folder) == "0o700"
    assert mode(root.config_file(ID)) == "0o600"
    assert json.loads(root.config_file(ID).read_text()) == config.raw
    assert not rundir.config.exists()


def test_a_restarted_daemon_reads_the_same_config_back(root, submitted, tmp_path):
    (tmp_path / "policy.pt").write_text("")
    config = submitted(
        metadata={"run_name": "mine", "tags": ["x"], "notes": 1},
        arguments=["-v"],
        environment={"A": "b"},
        config={"steps": 5, "extras": {"policy_path": str(tmp_path / "policy.pt")}},
    )
    record(root, config)
    # A file that existed at the submit may be gone by now. Reading the config back does not check it again.
    (tmp_path / "policy.pt").unlink()

    assert load(root, ID, config.worker_name) == config


def test_a_run_without_a_config_file_is_unknown(root):
    with pytest.raises(UnknownRun):
        load(root, ID)


def test_a_custom_script_gets_its_config_folder(root, submitted, tmp_path):
    (tmp_path / "train.sh").write_text("")
    schedule = [{"env_id": "A", "steps": 5}]
    config = submitted(
        script=str(tmp_path / "train.sh"), config={"env_id": "A", "extras": {"curriculum_schedule": schedule}}
    )

    rundir = record(root, config)

    base = json.loads((rundir.config / "base_config.json").read_text())
    assert rundir.path.parent.name == "custom_scripts"
    assert (base["run_id"], base["env_id"]) == (ID, "A")
    assert json.loads((rundir.config / "curriculum_config.json").read_text()) == schedule


def test_a_custom_script_without_a_curriculum_gets_no_curriculum_file(root, submitted, tmp_path):
    (tmp_path / "train.sh").write_text("")

    rundir = record(root, submitted(script=str(tmp_path / "train.sh")))

    assert [path.name for path in rundir.config.iterdir()] == ["base_config.json"]


def test_the_workers_file_has_the_documented_shape(root, submitted):
    config = submitted(worker_id="worker-7", config={"worker_id": "no", "env_id": "A", "extras": {"lr": 1}, "own": 2})

    path = write_worker_file(root, config)

    assert path == root.worker_file(ID)
    assert mode(path) == "0o600"
    assert json.loads(path.read_text()) == {
        "run_id": ID,
        "worker_id": "worker-7",
        "env_id": "A",
        "extras": {"lr": 1},
        "own": 2,
    }


def test_an_empty_worker_config_still_names_the_run(root, submitted):
    path = write_worker_file(root, submitted(), "worker-9")

    assert json.loads(path.read_text()) == {"run_id": ID, "worker_id": "worker-9", "extras": {}}


@pytest.mark.parametrize("obstacle", ["folder", "link", "dangling link", "file"])
def test_a_run_never_uses_a_folder_that_already_exists(root, submitted, tmp_path, obstacle):
    place, outside = root.area("runs") / ID, tmp_path / "outside"
    if obstacle == "folder":
        place.mkdir()
    elif obstacle == "file":
        place.write_text("")
    else:
        place.symlink_to(outside)
        if obstacle == "link":
            outside.mkdir()

    with pytest.raises(BadConfig, match=r"metadata\.run_id: .* already exists"):
        record(root, submitted())

    assert not root.config_file(ID).exists()
    assert not outside.exists() or not list(outside.iterdir())


@contextmanager
def tiny_files():
    """Inside the block no file can grow beyond a few bytes: writes fail as on a full disk, also for root.

    Not a fixture: pytest itself may write its report to a file before a fixture ends.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_when_a_file_cannot_be_written_nothing_remains(root, submitted):
    config = submitted()

    with pytest.raises(StoreUnavailable, match="try again"), tiny_files():
        record(root, config)

    assert list(root.area("runs").iterdir()) == []
    assert not root.config_file(ID).exists()
