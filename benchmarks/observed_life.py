"""One process of libraries.py: a script twice, observed and bare, in turn. Prints a line of JSON to stderr.

python benchmarks/observed_life.py SCRIPT PAIRS PLANT       in the script's environment, with MOSAIC_OBSERVE=1

SCRIPT defines `run()`, which does some steps and returns their number. It is compiled once for each side: Python adapts
bytecode to the objects that it meets, so the sides must not share it. On the bare side the functions that MOSAIC has
replaced are the library's own again. PLANT is a share of its CPU time that the observed side wastes on purpose.
"""

import gc
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

Hook = tuple[Any, str, Any, Any]  # where a function is, its name, MOSAIC's function, the library's function


def find_hooks() -> list[Hook]:
    modules = [module for name, module in sorted(sys.modules.items()) if not name.startswith("mosaic_sdk")]
    owners: list[Any] = [module for module in modules if module is not None]
    classes = [one for owner in owners for one in list(vars(owner).values()) if isinstance(one, type)]
    found = []
    for owner in [*owners, *{id(one): one for one in classes}.values()]:
        for name, hooked in list(vars(owner).items()):
            if is_mosaics(hooked) and hasattr(hooked, "__wrapped__"):
                found.append((owner, name, hooked, library_function(hooked)))
    return found


def is_mosaics(function: Any) -> bool:
    # Only a real function is asked: to ask a module that is loaded lazily would load it.
    return isinstance(function, FunctionType) and "mosaic_sdk" in function.__code__.co_filename


def library_function(hooked: Any) -> Any:
    while is_mosaics(hooked):
        hooked = hooked.__wrapped__
    return hooked


def switch(hooks: list[Hook], is_observed: bool) -> None:
    for owner, name, hooked, bare in hooks:
        setattr(owner, name, hooked if is_observed else bare)


def build(script: str, hooks: list[Hook], is_observed: bool) -> Callable[[], int]:
    switch(hooks, is_observed)
    names: dict = {"__name__": "__main__"}
    exec(compile(script, "<script>", "exec"), names)
    run: Callable[[], int] = names["run"]
    run()
    return run


def measure(run: Callable[[], int], plant: float) -> tuple[float, float]:
    """CPU microseconds per step: of this thread, and of all others."""
    thread, process = time.thread_time(), time.process_time()
    steps = run()
    own = time.thread_time() - thread
    while time.thread_time() - thread < own * (1 + plant):
        pass
    own, everything = time.thread_time() - thread, time.process_time() - process
    return own / steps * 1e6, max(0.0, everything - own) / steps * 1e6


def measure_pair(hooks: list[Hook], runs: list[Callable[[], int]], plant: float) -> tuple[float, float]:
    """CPU microseconds per step, bare and observed. The observer writes later, in a thread of its own: the time of all
    other threads counts as its, whichever side was running."""
    own = [0.0, 0.0]
    others = 0.0
    for is_observed in random.sample((False, True), 2):
        switch(hooks, is_observed)
        own[is_observed], more = measure(runs[is_observed], plant * is_observed)
        others += more
    return own[False], own[True] + others


def main() -> None:
    script, pairs, plant = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    build(script, [], True)  # imports the libraries, so that the hooks are there
    gc.collect()  # the env of this one would be a second one that is observed
    hooks = find_hooks()
    runs = [build(script, hooks, is_observed) for is_observed in (False, True)]
    found = [measure_pair(hooks, runs, plant) for _ in range(pairs)]
    threads = [thread.name for thread in threading.enumerate()]
    places = sorted(f"{getattr(owner, '__name__', owner)}.{name}" for owner, name, _, _ in hooks)
    print(json.dumps({"pairs": found, "hooks": places, "threads": threads}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
