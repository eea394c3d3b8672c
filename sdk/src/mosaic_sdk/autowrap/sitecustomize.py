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


def _show_what_gym_makes():
    """Frames: functions that create envs wrap them, from the moment that the script imports these functions."""
    is_requested = os.environ.get("GYM_GUI_FASTLANE_ONLY", "0") not in ("", "0")
    if is_requested and os.environ.get("GYM_GUI_FASTLANE_VIDEO_MODE") != "off":
        sys.meta_path.insert(0, _GymWatch)


# Modules that create envs, and for each of their functions the replacement in mosaic_sdk.fastlane.hook.
_MAKERS = {
    "gymnasium.envs.registration": {"make": "make_shown", "make_vec": "make_vec_shown"},
    "gym.envs.registration": {"make": "make_shown"},
    "pettingzoo.env_registry.registration": {"make": "make_game_shown"},
}
# Each game of PettingZoo is a separate module: pettingzoo.classic.chess_v6.
_GAME_MAKERS = {"env": "make_game_shown", "parallel_env": "make_game_shown"}


def _makers_in(name):
    if name.startswith("pettingzoo.") and name.rpartition("_v")[2].isdigit():
        return _GAME_MAKERS
    return _MAKERS.get(name)


class _GymWatch:
    """Finds no modules itself. It replaces `make` right after its module was run, before any code can import it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if not _makers_in(name):
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not cls else None
            if spec is not None:
                _call_after_run(spec.loader, _replace_makers)
                return spec
        return None


def _call_after_run(loader, action):
    run = loader.exec_module

    def run_and_call(module):
        del loader.exec_module  # restore the original
        run(module)
        try:
            action(module)
        except Exception as error:  # noqa: BLE001  # the script must run even if this fails
            _note(error)

    try:
        loader.exec_module = run_and_call
    except AttributeError:
        pass  # this loader cannot be changed: no frames


def _replace_makers(module):
    import functools

    def replace(name, stand_in):
        make = getattr(module, name)

        @functools.wraps(make)
        def make_shown(*args, **kwargs):
            show = getattr(_fastlane_hook(), stand_in, None)
            return show(module, make, args, kwargs) if show else make(*args, **kwargs)

        setattr(module, name, make_shown)

    for name, stand_in in _makers_in(module.__name__).items():
        if hasattr(module, name):
            replace(name, stand_in)


_hook = []  # what _fastlane_hook() found


def _fastlane_hook():
    if not _hook:
        try:
            _hook.append(_load_fastlane_hook())
        except Exception as error:  # noqa: BLE001  # the script must run even if this fails
            _hook.append(None)
            _note(error)
    return _hook[0]


def _load_fastlane_hook():
    """The worker's own mosaic_sdk, else the one that this file is in, without the packages beside that one."""
    import importlib.util

    if importlib.util.find_spec("mosaic_sdk") is None:
        spec = importlib.util.spec_from_file_location(
            "mosaic_sdk", os.path.join(_SDK, "__init__.py"), submodule_search_locations=[_SDK]
        )
        sys.modules["mosaic_sdk"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["mosaic_sdk"])
    return importlib.import_module("mosaic_sdk.fastlane.hook")


def _note(error):
    try:
        print("mosaic: no frames: %s: %s" % (type(error).__name__, error), file=sys.stderr)
    except Exception:  # noqa: BLE001  # the script must run even if this fails
        pass


_SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Applied to a worker's interpreter, in this order.
_PREPARATIONS = (_keep_lines_whole, _print_stacks_on_sigusr2, _show_what_gym_makes)


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
