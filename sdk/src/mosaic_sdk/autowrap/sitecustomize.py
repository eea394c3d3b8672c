"""Runs at the start of every Python process of a worker: MOSAIC puts this folder first in the worker's PYTHONPATH.

It is self-contained, because the worker's environment may have neither mosaic_sdk nor a Python newer than 3.8. It never
raises, imports nothing heavy, and then runs the sitecustomize module that it hides.
"""

import os
import sys


def _keep_lines_whole():
    """stdout is line-buffered: each line of each process is one write to the spool, which no other line can split."""
    out = sys.stdout
    if out is None:
        return
    # write_through is `python -u`, which would write every piece of a print() separately.
    out.reconfigure(line_buffering=True, write_through=False)
    # Without this a line over 8 kB is written separately from its newline.
    out._CHUNK_SIZE = 1 << 20


def _print_stacks_on_sigusr2():
    """The autopsy of a hung run: SIGUSR2 prints the stacks of all threads to stderr."""
    import _signal  # not `signal`, whose enums take longer to import than everything else here
    import faulthandler

    # If the signal is not at its default, the parent process uses it for something else.
    if _signal.getsignal(_signal.SIGUSR2) == _signal.SIG_DFL:
        faulthandler.register(_signal.SIGUSR2, file=2, all_threads=True)


_ACTIONS = []  # pairs of functions: whether a module of this name is meant, and what is done with it


def _watch_imports():
    """Frames and observation: functions of libraries are replaced right after their module was run."""
    is_requested = os.environ.get("GYM_GUI_FASTLANE_ONLY", "0") not in ("", "0")
    # Observation first: what is shown is then an env that is observed.
    if os.environ.get("MOSAIC_OBSERVE", "0") not in ("", "0"):
        _ACTIONS.append((_heard_in, _listen))
        _ACTIONS.append((_PARSERS.get, _keep_parsed))
    if is_requested and os.environ.get("GYM_GUI_FASTLANE_VIDEO_MODE") != "off":
        _ACTIONS.append((_makers_in, _replace_makers))
    if _ACTIONS:
        sys.meta_path.insert(0, _Watch)


# Modules that create envs, and for each of their functions the replacement in mosaic_sdk.fastlane.hook.
_MAKERS = {
    "gymnasium.envs.registration": {"make": "make_shown", "make_vec": "make_vec_shown"},
    "gym.envs.registration": {"make": "make_shown"},
    "pettingzoo.env_registry.registration": {"make": "make_game_shown"},
}
# Each game of PettingZoo is a separate module: pettingzoo.classic.chess_v6, mpe2.simple_spread_v3.
_GAME_MAKERS = {"env": "make_game_shown", "parallel_env": "make_game_shown"}


def _makers_in(name):
    return _GAME_MAKERS if _is_game(name) else _MAKERS.get(name)


def _is_game(name):
    return name.startswith(("pettingzoo.", "mpe2.")) and name.rpartition("_v")[2].isdigit()


# Modules that are observed, and the file of mosaic_sdk.observe that knows them.
_HEARD = {
    "gym.envs.registration": "gyms",
    "gym.vector.async_vector_env": "gyms",
    "gym.vector.sync_vector_env": "gyms",
    "gym.wrappers.record_episode_statistics": "gyms",
    "gym.wrappers.time_limit": "gyms",
    "gymnasium.envs.registration": "gyms",
    "gymnasium.vector.async_vector_env": "gyms",
    "gymnasium.vector.sync_vector_env": "gyms",
    "gymnasium.wrappers.common": "gyms",
    "gymnasium.wrappers.record_episode_statistics": "gyms",
    "gymnasium.wrappers.time_limit": "gyms",
    "mlflow.tracking.fluent": "mlflow",
    "pettingzoo.env_registry.registration": "games",
    "ray.rllib.algorithms.algorithm": "ray",
    "ray.tune.trainable.trainable": "ray",
    "safetensors.torch": "safetensors",
    "stable_baselines3.common.base_class": "stable_baselines3",
    "stable_baselines3.common.evaluation": "stable_baselines3",
    "stable_baselines3.common.logger": "stable_baselines3",
    "stable_baselines3.common.monitor": "stable_baselines3",
    "stable_baselines3.common.vec_env.dummy_vec_env": "stable_baselines3",
    "stable_baselines3.common.vec_env.subproc_vec_env": "stable_baselines3",
    "tensorboard.plugins.scalar.summary_v2": "tensorflow",
    "tensorboardX.writer": "summary_writer",
    "tianshou.trainer": "tianshou",
    "tianshou.trainer.base": "tianshou",
    "tianshou.trainer.utils": "tianshou",
    "torch.serialization": "torch",
    "torch.utils.tensorboard.writer": "summary_writer",
    "wandb.sdk.lib.noop_run": "wandb",
    "wandb.sdk.wandb_init": "wandb",
    "wandb.sdk.wandb_run": "wandb",
}


def _heard_in(name):
    return "games" if _is_game(name) else _HEARD.get(name)


def _listen(module):
    # A worker that reports itself has turned it off meanwhile: mosaic_sdk.cli.
    if os.environ.get("MOSAIC_OBSERVE", "0") in ("", "0") or _is_of_ray():
        return
    observe = _load("observe", "nothing is observed")
    if observe:
        observe.listen(module, _heard_in(module.__name__), _parsed)


def _is_of_ray():
    """Whether this is a process that Ray started: its script tells what it reports (mosaic_sdk/observe/ray.py)."""
    return "".join(sys.argv[:1]).endswith("ray/_private/workers/default_worker.py")


# Modules that parse a command line, with a function or a class and its method. No module of ours is loaded for them.
_PARSERS = {"argparse": ("ArgumentParser", "parse_known_args"), "tyro._cli": (None, "cli")}
_parsed = []  # what they returned, if it has a total_timesteps


def _keep_parsed(module):
    import functools

    owner, name = _PARSERS[module.__name__]
    owner = getattr(module, owner) if owner else module
    parse = getattr(owner, name)

    @functools.wraps(parse)
    def parse_and_keep(*args, **kwargs):
        found = parse(*args, **kwargs)
        options = found[0] if type(found) is tuple else found
        if getattr(options, "total_timesteps", None):
            _parsed.append(options)
        return found

    setattr(owner, name, parse_and_keep)


class _Watch:
    """Finds no modules itself. It changes a module right after it was run, before any code can import from it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        wanted = [act for is_meant, act in _ACTIONS if is_meant(name)]
        if not wanted:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not cls else None
            if spec is not None:
                _call_after_run(spec.loader, wanted)
                return spec
        return None


def _call_after_run(loader, actions):
    run = loader.exec_module

    def run_and_call(module):
        del loader.exec_module  # restore the original
        run(module)
        for action in actions:
            try:
                action(module)
            except Exception as error:  # noqa: BLE001  # the script must run even if this fails
                _note("%s is as it was" % module.__name__, error)

    try:
        loader.exec_module = run_and_call
    except AttributeError:
        pass  # this loader cannot be changed: no frames, and nothing is observed


def _replace_makers(module):
    import functools

    def replace(name, stand_in):
        make = getattr(module, name)

        @functools.wraps(make)
        def make_shown(*args, **kwargs):
            show = getattr(_load("fastlane.hook", "no frames"), stand_in, None)
            return show(module, make, args, kwargs) if show else make(*args, **kwargs)

        setattr(module, name, make_shown)

    for name, stand_in in _makers_in(module.__name__).items():
        if hasattr(module, name):
            replace(name, stand_in)


_loaded = {}  # what _load() found: modules of mosaic_sdk, or None


def _load(part, loss):
    """A module of mosaic_sdk, or None after a note that says what is lost."""
    if part not in _loaded:
        try:
            _loaded[part] = _import_from_sdk(part)
        except Exception as error:  # noqa: BLE001  # the script must run even if this fails
            _loaded[part] = None
            _note(loss, error)
    return _loaded[part]


def _import_from_sdk(part):
    """From the worker's own mosaic_sdk, else the one that this file is in, without the packages beside that one."""
    import importlib.util

    if importlib.util.find_spec("mosaic_sdk") is None:
        spec = importlib.util.spec_from_file_location(
            "mosaic_sdk", os.path.join(_SDK, "__init__.py"), submodule_search_locations=[_SDK]
        )
        sys.modules["mosaic_sdk"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["mosaic_sdk"])
    return importlib.import_module("mosaic_sdk." + part)


def _note(loss, error):
    try:
        print("mosaic: %s: %s: %s" % (loss, type(error).__name__, error), file=sys.stderr)
    except Exception:  # noqa: BLE001  # the script must run even if this fails
        pass


_SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Applied to a worker's interpreter, in this order.
_PREPARATIONS = (_keep_lines_whole, _print_stacks_on_sigusr2, _watch_imports)


def _prepare():
    for preparation in _PREPARATIONS:
        try:
            preparation()
        except Exception:  # noqa: BLE001  # the script must run even if this fails
            pass  # the script matters more than any of these


def _run_hidden_sitecustomize():
    """Import the sitecustomize that this one hides, as if this one did not exist; its errors are passed on."""
    ours = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != ours]
    this = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, this)


if os.environ.get("MOSAIC_RUN_ID"):
    _prepare()
if __name__ == "sitecustomize":
    _run_hidden_sitecustomize()
