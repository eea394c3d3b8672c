"""Replaces a function by one that calls it and then tells somebody."""

import functools
import weakref
from types import ModuleType
from typing import Any, Callable


def call_after(owner: Any, name: str, listener: Callable[..., None]) -> None:
    """From now on `owner.name(...)` calls `listener(result, ...)` afterwards; its result and errors are its own.

    `owner` is a module or a class; the listener of a method gets its object after the result.
    """
    call = getattr(owner, name)

    @functools.wraps(call)
    def call_and_tell(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        listener(result, *args, **kwargs)
        return result

    setattr(owner, name, call_and_tell)


def call_instead(owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
    """From now on `owner.name(...)` is `stand_in(name's function, ...)`."""
    call = getattr(owner, name)

    @functools.wraps(call)
    def call_stand_in(*args: Any, **kwargs: Any) -> Any:
        return stand_in(call, *args, **kwargs)

    setattr(owner, name, call_stand_in)


def argument(args: Any, kwargs: Any, place: int, name: str, default: Any = None) -> Any:
    """An argument that a caller may have given by its place or by its name."""
    return args[place] if len(args) > place else kwargs.get(name, default)


def call_after_on(thing: Any, name: str, listener: Callable[..., None], fail: Callable[[Exception], None]) -> None:
    """The same for the method of one object, whose class stays as it is. An error of the listener calls `fail`."""
    call = getattr(type(thing), name)
    itself = weakref.ref(thing)  # an object that refers to itself is not freed when the script drops it

    @functools.wraps(call)
    def call_and_tell(*args: Any, **kwargs: Any) -> Any:
        result = call(itself(), *args, **kwargs)
        try:
            listener(result, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  # the script must go on
            fail(error)
        return result

    setattr(thing, name, call_and_tell)


def defined_in(module: ModuleType, name: str) -> Any:
    """What a module itself defines under this name, or None; not what it has imported from another one."""
    found = getattr(module, name, None)
    return found if getattr(found, "__module__", None) == module.__name__ else None
