"""The command line of a library's worker.

    def main(argv=None):
        return run_library("acme_worker", AcmeConfig, "Trains with Acme under MOSAIC.", argv)

It calls `train(config)` of the package's module `runtime`, `evaluate(config)` of `evaluate`, and `make_player(config)`
of `interactive`. They are imported when they are needed: --help and --dry-run do not wait for the library.
"""

from importlib import import_module
from typing import Any, Callable, Mapping, Optional, Sequence, Type

from mosaic_sdk.cli import run_worker, standard_parser
from mosaic_sdk.interactive import serve
from mosaic_sdk.library.settings import POLICY_EVAL, LibrarySettings


def run_library(
    package: str, config_class: Type[LibrarySettings], description: str, argv: Optional[Sequence[str]] = None
) -> int:
    """Returns the exit code."""

    def function(module: str, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"{package}.{module}"), name)
        return found

    def work(keys: Mapping[str, Any], args: Any) -> Any:
        config = config_class.from_dict(keys)
        is_evaluation = config.mode == POLICY_EVAL
        return function(*(("evaluate", "evaluate") if is_evaluation else ("runtime", "train")))(config)

    def interact(keys: Mapping[str, Any], args: Any) -> int:
        config = config_class.from_dict(keys)
        make = function("interactive", "make_player")
        return serve(lambda: make(config), run_id=config.run_id, first_seed=config.seed)

    parser = standard_parser(package, description)
    return run_worker(work, argv=argv, parser=parser, check=config_class.from_dict, interactive=interact)
