import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.catalog import variables
from mosaic.catalog.command import autowrap_folder, build_command
from mosaic.model.errors import MosaicError
from mosaic.model.run import RunConfig, WorkerSpec

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
BASE = {"PATH": "/usr/bin:/bin", "HOME": "/home/me"}


@pytest.fixture
def build(root):
    def build(base=BASE, granted=(), tcp="127.0.0.1:50055", python=Path("/envs/x/bin/python"), options=(), **worker):
        worker = WorkerSpec(**({"module": "toy_worker.cli"} if "script" not in worker else {}), **worker)
        config = RunConfig(RUN_ID, "n", "runs", "toy", worker)
        rundir = root.run("runs", RUN_ID)
        return build_command(
            config, root, rundir, python, root.worker_file(RUN_ID), granted, tcp, base, **dict(options)
        )

    return build


def script(tmp_path, name, text, mode=0o644):
    path = tmp_path / name
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_module_gets_its_config_and_then_its_arguments(build, root):
    command = build(arguments=("--dry-run", "x"))

    config_file = str(root.worker_file(RUN_ID))
    assert command.argv == [
        *("/envs/x/bin/python", "-m", "toy_worker.cli"),
        *("--config", config_file, "--dry-run", "x"),
    ]
    assert command.cwd == str(root.run("runs", RUN_ID).path)
    assert not command.pipe


def test_a_worker_does_not_inherit_the_folder_of_the_daemon(build, root):
    env = build(base={**BASE, "PWD": "/home/me/papers", "OLDPWD": "/home/me"}).env

    assert env["PWD"] == str(root.run("runs", RUN_ID).path)
    assert "OLDPWD" not in env


def test_grpc_flags_carry_the_daemons_real_address(build):
    argv = build(use_grpc=True, tcp="127.0.0.1:4711", grpc_target="").argv

    assert argv[argv.index("--grpc") :] == ["--grpc", "--grpc-target", "127.0.0.1:4711"]
    with pytest.raises(MosaicError, match="no TCP address"):
        build(use_grpc=True, tcp="")


def test_a_python_script_runs_in_the_workers_python_with_its_arguments_alone(build, tmp_path):
    path = script(tmp_path, "train.py", "", 0o755)

    command = build(script=path, arguments=("a b",))

    assert command.argv == ["/envs/x/bin/python", path, "a b"]
    assert not command.pipe


@pytest.mark.parametrize(
    ("text", "mode", "start"),
    [
        ("#!/bin/sh -e\necho hi\n", 0o755, []),
        ("#!/bin/sh -e\necho hi\n", 0o644, ["/bin/sh", "-e"]),
        ("echo hi\n", 0o755, ["bash"]),
        ("echo hi\n", 0o644, ["bash"]),
    ],
)
def test_a_shell_script_starts_with_any_file_mode_and_writes_into_a_pipe(build, tmp_path, text, mode, start):
    path = script(tmp_path, "train.sh", text, mode)

    command = build(script=path)

    assert command.argv == [*start, path]
    assert command.pipe
    assert subprocess.run(command.argv, capture_output=True, text=True, check=True).stdout == "hi\n"


def test_a_worker_gets_its_run_id_and_its_folders(build, root):
    env = build(worker_id="worker-7").env

    rundir = root.run("runs", RUN_ID)
    assert {name: value for name, value in env.items() if name.startswith("MOSAIC_")} == {
        "MOSAIC_RUN_ID": RUN_ID,
        "MOSAIC_RUN_DIR": str(rundir.path),
        "MOSAIC_WORKER_ID": "worker-7",
        "MOSAIC_CHECKPOINT_DIR": str(rundir.checkpoints),
        "MOSAIC_CONFIG_FILE": str(root.worker_file(RUN_ID)),
        "MOSAIC_CUSTOM_SCRIPTS_DIR": str(rundir.config),
    }


def test_a_scripts_config_file_is_the_one_in_its_folder(build, root, tmp_path):
    env = build(script=script(tmp_path, "x.sh", "")).env

    assert env["MOSAIC_CONFIG_FILE"] == str(root.run("runs", RUN_ID).config / "base_config.json")


@pytest.mark.parametrize(
    "name",
    [
        *("MOSAIC_HOME", "MOSAIC_GPUS", "MOSAIC_TOKEN_FILE", "MOSAIC_ADDRESS", "PYTHONUNBUFFERED", "PYTHONHOME"),
        *("UV_FIND_LINKS", "VIRTUAL_ENV", "LD_PRELOAD", "LD_AUDIT", "LD_TRACE_LOADED_OBJECTS", "BASH_ENV", ""),
    ],
)
def test_the_daemons_own_variables_are_not_inherited(build, name):
    assert name not in build(base={**BASE, name: "1"}).env


def test_everything_else_is_inherited(build):
    base = {**BASE, "WANDB_API_KEY": "x", "LD_LIBRARY_PATH": "/usr/local/cuda/lib64", "BASH_FUNC_module%%": "() { :; }"}

    assert build(base=base).env.items() >= {**base, "PATH": build(base=base).env["PATH"]}.items()


def test_a_variable_that_a_config_may_not_set_is_never_inherited():
    for name in variables.REFUSED:
        assert variables.why_refused(name)
        assert variables.inherited({name: "x"}) == {}


@pytest.mark.parametrize(("granted", "seen"), [((), ""), (("GPU-a",), "GPU-a"), (("GPU-b", "GPU-a"), "GPU-b,GPU-a")])
def test_a_worker_sees_the_gpus_it_was_granted_and_no_other(build, granted, seen):
    assert build(base={**BASE, "CUDA_VISIBLE_DEVICES": "7"}, granted=granted).env["CUDA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize(
    ("extras", "values"),
    [
        ({}, ("1", "0", "single", "4")),
        ({"fastlane_video_mode": "off"}, ("0", "0", "off", "4")),
        ({"fastlane_video_mode": "grid", "fastlane_slot": 2, "fastlane_grid_limit": 9}, ("1", "2", "grid", "9")),
    ],
)
def test_frames_are_on_unless_the_extras_say_off(build, extras, values):
    env = build(config={"extras": extras}).env

    names = ("ONLY", "SLOT", "VIDEO_MODE", "GRID_LIMIT")
    assert tuple(env[f"GYM_GUI_FASTLANE_{name}"] for name in names) == values


def test_the_environment_of_the_config_overrides_all_others(build):
    env = build(environment={"PYTHONUNBUFFERED": "1", "HOME": "/tmp", "GYM_GUI_FASTLANE_SLOT": "5"}).env

    assert (env["PYTHONUNBUFFERED"], env["HOME"], env["GYM_GUI_FASTLANE_SLOT"]) == ("1", "/tmp", "5")


def test_the_injected_folder_comes_first_whatever_the_python_path_is(build):
    injected = str(autowrap_folder())

    assert Path(injected).is_dir()
    assert build().env["PYTHONPATH"] == injected
    assert build(base={**BASE, "PYTHONPATH": "/a"}).env["PYTHONPATH"] == f"{injected}:/a"
    assert (
        build(base={**BASE, "PYTHONPATH": "/a"}, environment={"PYTHONPATH": "/b"}).env["PYTHONPATH"] == f"{injected}:/b"
    )


def test_the_workers_environment_is_the_active_one(build, root, make_environment):
    make_environment("x")
    python = root.envs / "x" / "bin" / "python"

    env = build(python=python, base={**os.environ, "VIRTUAL_ENV": sys.prefix}).env

    assert env["VIRTUAL_ENV"] == str(root.envs / "x")
    assert env["PATH"].split(":")[0] == str(python.parent)
    shown = subprocess.run(["python", "-c", "import sys; print(sys.prefix)"], env=env, capture_output=True, text=True)
    assert shown.stdout.strip() == str(root.envs / "x")


def test_compiled_code_of_libraries_is_cached_in_the_state_root_per_environment(build, root):
    env = build().env

    cache = root.path / "cache" / "x"
    assert env["TORCHINDUCTOR_CACHE_DIR"] == str(cache / "torchinductor")
    assert env["NUMBA_CACHE_DIR"] == str(cache / "numba")
    assert env["MPLCONFIGDIR"] == str(cache / "matplotlib")


def test_a_cache_that_the_user_chose_is_kept(build):
    assert build(base={**BASE, "TRITON_CACHE_DIR": "/mine"}).env["TRITON_CACHE_DIR"] == "/mine"
    assert build(environment={"TRITON_CACHE_DIR": "/mine"}).env["TRITON_CACHE_DIR"] == "/mine"


def test_a_users_own_matplotlibrc_is_not_hidden(build, tmp_path):
    (tmp_path / ".config" / "matplotlib").mkdir(parents=True)
    (tmp_path / ".config" / "matplotlib" / "matplotlibrc").write_text("backend: agg\n")

    assert "MPLCONFIGDIR" not in build(base={**BASE, "HOME": str(tmp_path)}).env


def test_a_program_of_the_users_runs_in_its_own_python_and_folder(build, root, tmp_path):
    path = script(tmp_path, "train", "")  # without a suffix, and yet not a shell script
    spec = {"script": path, "cwd": "/data", "arguments": ("--lr", "1")}

    python = "/p/.venv/bin/python"
    command = build(python=Path(python), options={"is_observed": True}, **spec)
    named = build_command(
        RunConfig(RUN_ID, "n", "runs", "toy", WorkerSpec(**spec, python=python)),
        *(root, root.run("runs", RUN_ID), Path(python), root.worker_file(RUN_ID), (), "", BASE),
    )

    assert command.argv[0] == "bash"
    assert named.argv == [python, path, "--lr", "1"]
    assert (named.cwd, named.env["PWD"], named.pipe) == ("/data", "/data", False)
    assert (command.env["MOSAIC_OBSERVE"], named.env.get("MOSAIC_OBSERVE")) == ("1", None)
    # Two projects, each with an environment called .venv.
    assert named.env["NUMBA_CACHE_DIR"] != command.env["NUMBA_CACHE_DIR"] == str(root.cache / ".venv" / "numba")


def test_a_module_without_a_config_gets_only_its_arguments(build):
    command = build(options={"has_config": False}, arguments=("--lr", "1"))

    assert command.argv == ["/envs/x/bin/python", "-m", "toy_worker.cli", "--lr", "1"]


def test_a_conda_environment_is_active(build, tmp_path):
    (tmp_path / "conda-meta").mkdir()

    env = build(python=tmp_path / "bin/python", base={**BASE, "CONDA_PREFIX": "/other"}).env

    assert env["CONDA_PREFIX"] == str(tmp_path)
