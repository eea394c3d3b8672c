"""Links in a run's folder to the files of the folder that the user started the run in.

A script that was not written for MOSAIC reads `data/train.csv` relative to that folder, and writes `model.zip` to
wherever it is. Its working directory is the run's folder, where the files that exist already are links: what is new
belongs to the run, and two runs of one script do not overwrite each other's files.
"""

import os
from pathlib import Path

MOST_LINKS = 2000
OUTPUTS = frozenset({"runs", "wandb", "mlruns", "lightning_logs", "outputs", "__pycache__"})  # that loggers create
MERGED = "config"  # in the folder of a script's run, too: its files are linked one by one


def link_inputs(run_dir: Path, folder: str) -> None:
    """Link every file of `folder` that has no namesake in the run's folder. May be repeated."""
    for name in names_to_link(folder, run_dir):
        _link(os.path.join(folder, name), run_dir / name)
    merged, own = os.path.join(folder, MERGED), run_dir / MERGED
    if os.path.isdir(merged) and own.is_dir() and not own.is_symlink():
        for name in names_to_link(merged, run_dir):
            _link(os.path.join(merged, name), own / name)


def names_to_link(folder: str, root: Path) -> list[str]:
    """The files and folders of `folder`, except hidden ones, those of loggers, and the one that contains `root`."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []  # it was removed, or may not be read: the script will say so
    place = os.path.realpath(root)
    kept = (name for name in names if not name.startswith(".") and name not in OUTPUTS)
    return [name for name in kept if not _contains(os.path.join(os.path.realpath(folder), name), place)]


def is_input_link(path: Path, folder: str) -> bool:
    """Whether it is one of our links, and not one that another program has created."""
    return bool(folder) and os.readlink(path) == os.path.join(folder, path.name)


def _link(target: str, place: Path) -> None:
    if not os.path.lexists(place):
        place.symlink_to(target)


def _contains(folder: str, place: str) -> bool:
    return place == folder or place.startswith(f"{folder}{os.sep}")
