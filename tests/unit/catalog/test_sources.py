import os

import pytest
from tiny_wheel import write_wheel

from mosaic.catalog.sources import Source, find_source, gym_gui_source, normalized, platform_sources, sdk_source
from mosaic.catalog.uv import InstallFailed, explain, uv_environment
from mosaic.catalog.wheels import SUMS, Wheels, digest, read_wheel


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "my_worker"
    (path / "requirements").mkdir(parents=True)
    (path / "pyproject.toml").write_text(
        '[project]\nname = "My_Worker"\noptional-dependencies.gpu = []\n'
        '[project.entry-points."mosaic.workers"]\nmine = "my_worker:get_worker_metadata"\n'
    )
    return path


def test_a_name_is_looked_for_among_the_workers_that_come_with_mosaic(folder):
    assert find_source("toy").folder == platform_sources() / "workers" / "toy_worker"
    assert find_source("toy_worker").folder == find_source("toy").folder
    assert find_source("acme-worker>=2") == Source("acme-worker>=2", "acme-worker>=2")
    assert find_source(str(folder)).folder == folder


def test_a_path_must_be_a_package_that_names_a_worker(folder, tmp_path):
    (tmp_path / "bare").mkdir()
    with pytest.raises(InstallFailed, match=r"no pyproject\.toml, so it is not a package"):
        find_source(str(tmp_path / "bare"))
    (folder / "pyproject.toml").write_text("[project\n")
    with pytest.raises(InstallFailed, match=r"pyproject\.toml cannot be read"):
        find_source(str(folder))
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    with pytest.raises(InstallFailed, match="does not provide a worker"):
        find_source(str(folder))


def test_a_variant_is_a_lock_file_or_an_extra(folder):
    (folder / "requirements" / "jax.txt").write_text("jax==1\n")
    source = find_source(str(folder))

    assert source.variants() == ["gpu", "jax"]
    assert (source.lock("jax"), source.extra("jax")) == (folder / "requirements" / "jax.txt", "")
    assert (source.lock("gpu"), source.extra("gpu")) == (None, "[gpu]")
    assert (source.lock(""), source.extra("")) == (None, "")
    with pytest.raises(InstallFailed, match=r"has no variant .tpu.\. It has: gpu, jax"):
        source.extra("tpu")


def test_a_requirement_is_reduced_to_its_normalized_name():
    assert [normalized(text) for text in ("Acme_Worker>=2", "acme.worker[gpu]==1", "acme-worker @ https://x")] == [
        "acme-worker"
    ] * 3


def test_a_users_own_worker_is_reinstalled_from_its_source_not_from_the_index(folder):
    assert find_source("mine", str(folder)).folder == folder
    assert find_source("mine", "mine-worker>=2").requirement == "mine-worker>=2"
    assert find_source("toy", str(folder)).folder == platform_sources() / "workers" / "toy_worker"
    with pytest.raises(InstallFailed, match=r"There is no folder /gone/away\. Pass the folder"):
        find_source("mine", "/gone/away")


def test_any_change_of_a_file_changes_the_digest(folder):
    before = digest(folder)
    assert digest(folder) == before

    (folder / "new.py").write_text("")

    assert digest(folder) != before
    assert digest(folder, "3.12") != digest(folder)


def test_uv_gets_the_settings_of_pip_and_nothing_of_our_own_environment():
    env = uv_environment({"PIP_FIND_LINKS": "/wheels /more", "VIRTUAL_ENV": "/venv", "PYTHONPATH": "/x", "HOME": "/h"})

    assert env == {
        "HOME": "/h",
        "PIP_FIND_LINKS": "/wheels /more",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_PYTHON_DOWNLOADS": "never",
        "SOURCE_DATE_EPOCH": "315532800",
    }


@pytest.mark.parametrize(
    ("lines", "meaning"),
    [
        (["error: Failed to fetch: `https://x`", "  Caused by: dns error"], "the package index cannot be reached"),
        (["  × No solution found when resolving dependencies:", "  ╰─▶ Because a and b"], "cannot be met together"),
        (["error: No interpreter found for Python 3.99"], "that Python is not installed"),
        (["  × Failed to build `x`"], "a package cannot be built"),
        (["error: something new"], "something new"),
        (
            ["error: Failed to build `/a/b`", "  cause: Failed to fetch: x", "  cause: dns"],
            "reached (Failed to fetch: x)",
        ),
        ([], "uv failed without a message"),
    ],
)
def test_error_messages_of_uv_become_sentences(lines, meaning):
    assert meaning in explain(lines)
    assert "╰" not in explain(lines)


def test_a_folder_that_another_install_removes_meanwhile_is_skipped(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")  # it is listed, and it is not there
    old = tmp_path / "tiny-0123"
    old.mkdir()
    os.utime(old, (0, 0))

    Wheels(tmp_path)._delete_old()

    assert not old.exists()


def test_a_wheel_is_named_by_its_path_and_checksum(tmp_path):
    path = write_wheel(tmp_path / "kept", "tiny_worker", "1.0", {})
    (tmp_path / "kept" / SUMS).write_text(f"{'0' * 64}  {path.name}\n")

    wheel = read_wheel(tmp_path / "kept")

    assert wheel.requirement("[jax]") == f"tiny_worker[jax] @ {path.as_uri()}#sha256={'0' * 64}"
    assert not wheel.is_intact


def test_a_wheel_that_came_with_mosaic_is_not_built(tmp_path):
    path = write_wheel(tmp_path / "wheel", "tiny_worker", "1.0", {})
    (tmp_path / "wheel" / SUMS).write_text(f"{'0' * 64}  {path.name}\n")

    assert Wheels(tmp_path / "store").of(tmp_path, "", None).path == path


def test_the_sdk_is_never_taken_from_an_index(monkeypatch):
    monkeypatch.setattr("mosaic.catalog.sources.platform_sources", lambda: None)

    for source in (sdk_source, gym_gui_source):
        with pytest.raises(InstallFailed, match="MOSAIC's own wheels are missing"):
            source()


def test_a_broken_link_in_a_workers_folder_is_named(folder, tmp_path):
    (folder / "VERSION").symlink_to("../../VERSION")

    with pytest.raises(InstallFailed, match=r"my_worker/VERSION cannot be read \(.*No such file"):
        Wheels(tmp_path / "store").of(folder, "", None)
