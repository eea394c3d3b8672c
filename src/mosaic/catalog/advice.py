"""Advice for a worker that is not installed. It names only commands that can work, and never sends an unknown name to
the package index, where an unrelated package may have that name."""

from collections.abc import Collection
from pathlib import Path

from mosaic.catalog.installed import read_installed
from mosaic.catalog.sources import Source, bundled_names, bundled_worker, find_source
from mosaic.catalog.uv import InstallFailed
from mosaic.model.names import is_environment_name, is_worker_name
from mosaic.model.nearest import nearest


def how_to_get(asked: str, variant: str, known: Collection[str], packages: Collection[str], envs: Path) -> str:
    """`known`: the installed workers, as `mosaic run` takes them; `packages`: their packages, if one was requested."""
    name = asked.removesuffix("_worker")
    source = _source_of(name, envs)
    if source:
        return _from_source(name, variant, source)
    if name in known:
        return f"Install it from the folder of {name}: mosaic worker install PATH --variant {variant}"
    near = nearest(asked, [*known, *packages, *bundled_names()], 1)
    if near and near[0] in (*known, *packages):
        return f"Did you mean '{near[0]}'? {_installed(known)}"
    if near:
        return f"Did you mean '{near[0]}'? It comes with MOSAIC. Install it with: mosaic worker install {near[0]}"
    bundled = ", ".join(each for each in bundled_names() if each not in known)
    offer = f" These come with MOSAIC: {bundled} (mosaic worker install NAME)." if bundled else ""
    return f"{_installed(known)}{offer} Install your own worker from its folder: mosaic worker install PATH"


def how_to_get_again(name: str, envs: Path) -> str:
    """Advice for a broken environment; `name` includes the variant."""
    if (is_environment_name(name) and read_installed(envs / name)) or _source_of(name.partition("@")[0], envs):
        return f"Install it again with: mosaic worker install {name} --upgrade"
    return f"Install it again from its folder: mosaic worker remove {name}, then mosaic worker install PATH"


def _installed(known: Collection[str]) -> str:
    return f"Installed: {', '.join(known) or 'none'}."


def _source_of(name: str, envs: Path) -> Source | None:
    """The source of a worker of that name: one that comes with MOSAIC, or that of the installed one."""
    if bundled_worker(name):
        return find_source(name)
    if not is_worker_name(name):  # a submit may name anything
        return None
    here = read_installed(envs / name)
    try:
        return find_source(name, here.source) if here else None
    except InstallFailed:
        return None  # its folder is gone


def _from_source(name: str, variant: str, source: Source) -> str:
    try:
        source.extra(variant)
    except InstallFailed as error:
        return str(error)
    return f"Install it with: mosaic worker install {f'{name}@{variant}' if variant else name}"
