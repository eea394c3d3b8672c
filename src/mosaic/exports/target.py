"""What an export writes: a file or a folder that appears under its name only when it is complete.

`out/` is written as `.out.12345.tmp/` beside it. After an error nothing is left, and an old `out/` is as it was.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mosaic.model import durable
from mosaic.model.errors import MosaicError
from mosaic.model.folder import remove_folder


@contextmanager
def new_file(path: str | Path, force: bool = False) -> Iterator[Path]:
    """The path of a temporary file that becomes `path`. MosaicError if `path` exists, unless `force` is set."""
    target = _checked(path, force)
    if target.is_dir():
        raise MosaicError(f"{target} is a folder. Choose the name of a file.")
    try:
        with durable.Replacement(target, mode=0o666) as file:
            yield Path(file.name)
    except OSError as error:
        raise _cannot(target, error) from None


@contextmanager
def overwritten_file(path: str | Path, is_read_at_once: bool = False) -> Iterator[Path]:
    """The path of a temporary file that becomes `path`; of a device or a pipe, such as /dev/stdout, `path` itself."""
    target = Path(path).expanduser()
    is_special = target.exists() and not target.is_file() and not target.is_dir()
    if not is_special and not is_read_at_once:
        with new_file(os.path.realpath(target), force=True) as temporary:
            yield temporary
        return
    try:
        yield target
    except BrokenPipeError:
        raise  # `mosaic export RUN -o /dev/stdout | head` ends quietly
    except OSError as error:
        raise _cannot(target, error) from None


@contextmanager
def new_folder(path: str | Path, force: bool = False) -> Iterator[Path]:
    """The same for a folder. With `force` a folder in its place is replaced, except one that this did not write."""
    target = _checked(path, force)
    if os.path.lexists(target):
        _refuse_foreign(target)
    temporary = _beside(target)
    try:
        temporary.mkdir()
        yield temporary
        (temporary / MARK).write_text(f"{MARK_TEXT}\n")
        _swap(temporary, target)
    except OSError as error:
        raise _cannot(target, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# In every folder that an export wrote: --force replaces those, and never a folder with other people's files.
MARK = ".mosaic-export"
MARK_TEXT = "Written by mosaic: --force may replace this folder."


def _checked(path: str | Path, force: bool) -> Path:
    target = Path(os.path.abspath(os.path.expanduser(path)))
    if not target.parent.is_dir():
        raise MosaicError(f"The folder {target.parent} does not exist. Create it first.")
    if os.path.lexists(target) and not force:
        raise MosaicError(f"{target} exists already. Choose another name, or replace it with --force.")
    return target


def _refuse_foreign(target: Path) -> None:
    if target.is_symlink() or not target.is_dir():
        raise MosaicError(f"{target} is not a folder. Choose another name.")
    if any(target.iterdir()) and not (target / MARK).is_file():
        raise MosaicError(
            f"{target} was not written by an export, so --force does not replace it. Choose another folder, or "
            "delete it yourself."
        )


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _swap(temporary: Path, target: Path) -> None:
    """Put the new folder in place of the old one, which is deleted after the new one has its name."""
    if not target.exists():
        temporary.rename(target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    target.rename(old)
    try:
        temporary.rename(target)
    except OSError:
        old.rename(target)
        raise
    remove_folder(old)


def _cannot(target: Path, error: OSError) -> MosaicError:
    return MosaicError(f"Cannot write {target}: {error.strerror or error}.")
