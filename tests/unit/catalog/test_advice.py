"""The advice for a worker that is not installed: a command that works, or none."""

import pytest

from mosaic.catalog.install import InstallRequest, _naming_request, _where_from
from mosaic.catalog.uv import InstallFailed
from mosaic.model.errors import UnknownWorker


def advice_for(catalog, name, variant=""):
    with pytest.raises(UnknownWorker) as refusal:
        catalog.find(name, variant)
    return str(refusal.value)


@pytest.fixture
def own_worker(tmp_path):
    """The folder of a worker with a variant."""
    folder = tmp_path / "mine_worker"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "mine-worker"\nversion = "1"\noptional-dependencies = {jax = []}\n'
        '[project.entry-points."mosaic.workers"]\nmine = "mine_worker:get_worker_metadata"\n'
    )
    return folder


@pytest.mark.parametrize(
    ("name", "variant", "command"), [("cleanrl", "", "cleanrl"), ("cleanrl", "jax", "cleanrl@jax")]
)
def test_workers_that_come_with_mosaic_are_offered_for_installation(catalog, name, variant, command):
    assert advice_for(catalog, name, variant).endswith(f"Install it with: mosaic worker install {command}")


def test_a_misspelled_name_gets_a_suggestion_installed_or_not(catalog):
    assert "Did you mean 'toy'? Installed: toy" in advice_for(catalog, "tpy")
    assert "Did you mean 'cleanrl'? It comes with MOSAIC. Install it with: mosaic worker install cleanrl" in advice_for(
        catalog, "cleanlr"
    )


def test_an_unknown_name_is_not_offered_for_installation(catalog):
    advice = advice_for(catalog, "nosuch")

    assert "worker install nosuch" not in advice
    assert "These come with MOSAIC: balrog, cleanrl, dreamer" in advice


def test_a_variant_that_the_worker_does_not_have_is_not_offered(catalog):
    assert advice_for(catalog, "cleanrl", "jx").endswith("cleanrl has no variant 'jx'. It has: jax.")


def test_a_variant_of_a_users_own_worker_comes_from_the_same_source(
    catalog, root, make_environment, install, came_from, own_worker
):
    install(make_environment("mine"), "mine", "mine_worker")
    came_from(root, "mine", str(own_worker))

    assert advice_for(catalog, "mine", "jax").endswith("Install it with: mosaic worker install mine@jax")
    assert advice_for(catalog, "mine", "tpu").endswith("mine has no variant 'tpu'. It has: jax.")
    _, source = _where_from(root, InstallRequest("mine", "jax"))
    assert source.folder == own_worker


def test_no_command_is_suggested_for_an_environment_made_by_hand(catalog, make_environment, install):
    install(make_environment("mine"), "mine", "mine_worker")

    assert "mosaic worker install PATH --variant jax" in advice_for(catalog, "mine", "jax")


@pytest.mark.parametrize(
    ("asked", "hint"), [("cleanlr", "Did you mean 'cleanrl'?"), ("./cleanlr", ""), ("cleanrl", "")]
)
def test_an_install_that_failed_for_a_mistyped_name_says_so(asked, hint):
    with pytest.raises(InstallFailed) as failure, _naming_request(InstallRequest(asked)):
        raise InstallFailed("no such package")

    assert str(failure.value) == f"{asked} was not installed: no such package. {hint}".rstrip()
