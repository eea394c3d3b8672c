"""The import hook itself, on a package with gymnasium's structure; test_fastlane_gymnasium.py has the real one."""

import shutil
import sys
import sysconfig

import pytest
from lanes import AUTOWRAP, SDK, segments

REGISTRATION = """
registry = {}
class Spec:
    kwargs = {}
    def __init__(self, entry_point): self.entry_point = entry_point
class Env:
    metadata = {"render_modes": ["rgb_array"]}
    def __init__(self, render_mode=None): self.render_mode = render_mode
    def reset(self): return 0, {}
    def step(self, action): return 0, 1.0, False, False, {}
    def render(self): return [[[1, 2, 3]]]
    def close(self): pass
class Picky(Env):
    def __init__(self, render_mode=None):
        if render_mode: raise RuntimeError("no pictures today")
        self.render_mode = None
def load_env_creator(name): raise LookupError(name)
def make(id, **kwargs):
    "Make it."
    return registry[id].entry_point(**kwargs)
registry.update(Env=Spec(Env), Picky=Spec(Picky))
"""


@pytest.fixture
def script(scripts, run_id, tmp_path):
    """Runs a script in an environment that has numpy and a small gymnasium, but no mosaic_sdk."""
    package = tmp_path / "site" / "gymnasium"
    (package / "envs").mkdir(parents=True)
    (package / "__init__.py").write_text("from gymnasium.envs.registration import make\n")
    (package / "envs" / "__init__.py").write_text("")
    (package / "envs" / "registration.py").write_text(REGISTRATION)
    for name in ("numpy", "numpy.libs"):
        (tmp_path / "site" / name).symlink_to(f"{sysconfig.get_paths()['platlib']}/{name}")

    def run(text, path=(AUTOWRAP, tmp_path / "site"), **variables):
        env = {"MOSAIC_RUN_ID": run_id, "GYM_GUI_FASTLANE_ONLY": "1"} | variables
        return scripts.run(text, env=env, path=path, python=sys._base_executable)

    return run


MAKE = "import gymnasium; env = gymnasium.make('Env'); env.reset(); print(type(env).__name__, env.render_mode)"


def test_make_shows_its_env_and_keeps_its_identity(script, run_id):
    out, err = script(MAKE + "; print(gymnasium.make.__name__, gymnasium.make.__doc__, gymnasium.make.__module__)")

    assert out == "FastLaneWrapper rgb_array\nmake Make it. gymnasium.envs.registration\n"
    assert err == ""
    assert segments(run_id) == []


@pytest.mark.parametrize(
    "variables", [{"GYM_GUI_FASTLANE_ONLY": "0"}, {"GYM_GUI_FASTLANE_VIDEO_MODE": "off"}], ids=["not asked", "off"]
)
def test_the_hook_is_not_installed_when_it_is_switched_off(script, variables):
    out, err = script("import sys; print(len(sys.meta_path)); " + MAKE, **variables)
    bare, _ = script("import sys; print(len(sys.meta_path)); " + MAKE, MOSAIC_RUN_ID="")

    assert (out, err) == (bare, "")
    assert "Env None" in out


def test_an_env_that_refuses_to_render_is_made_as_the_script_asked(script):
    out, err = script(MAKE.replace("'Env'", "'Picky'"))

    assert out == "Picky None\n"
    assert err.count("no frames of Picky") == 1


def test_errors_of_make_reach_the_script(script):
    out, _ = script("import gymnasium\ntry: gymnasium.make('Nothing')\nexcept KeyError as error: print(error)")

    assert out == "'Nothing'\n"


def test_the_loader_is_left_as_it_was(script):
    look = "import gymnasium.envs.registration as r; print(vars(r.__loader__), r.__spec__.loader is r.__loader__)"

    assert script(look)[0] == script(look, GYM_GUI_FASTLANE_ONLY="0")[0]


def test_without_its_sdk_the_script_runs_with_a_note(script, tmp_path):
    lonely = tmp_path / "elsewhere" / "autowrap"
    shutil.copytree(AUTOWRAP, lonely)

    out, err = script(MAKE + "; gymnasium.make('Env')", path=(lonely, tmp_path / "site"))

    assert out == "Env None\n"
    assert err.count("mosaic: no frames") == 1


def test_the_sdk_of_the_workers_environment_takes_precedence(script, tmp_path):
    out, _ = script(MAKE + "; import mosaic_sdk; print(mosaic_sdk.__file__)", path=(AUTOWRAP, tmp_path / "site", SDK))

    assert out.splitlines()[1] == str(SDK / "mosaic_sdk" / "__init__.py")
