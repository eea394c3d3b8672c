"""Assembles the sources of the documentation site: python docs/tools/pages.py FOLDER.

Every page has one owner: a Markdown file in docs/, README.md, CONTRIBUTING.md or CHANGELOG.md (which stay where a
visitor of the repository expects them), or the code, from which the reference is generated. Links are written for the
repository and rewritten here for the site. Runs in the platform's environment; Sphinx then needs only its own.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import api
import reference

REPO = Path(__file__).parents[2]
DOCS = REPO / "docs"
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
GENERATED: dict[str, Callable[[], str]] = {
    "reference/cli.md": reference.commands,
    "reference/trainer-config.md": reference.trainer_config,
    "reference/workers.md": reference.workers,
    "reference/python-client.md": api.python_client,
    "reference/sdk.md": api.sdk,
    "adr/index.md": reference.decisions,
}
HOWTOS = (
    "install",
    "window",
    "command-line",
    "python-client",
    "frames",
)  # these first, then the others in alphabetical order
CONTENTS = {
    "Start": ("getting-started",),
    "How-tos": tuple(
        f"howto/{name}"
        for name in sorted(
            (path.stem for path in (DOCS / "howto").glob("*.md")),
            key=lambda name: (HOWTOS.index(name) if name in HOWTOS else len(HOWTOS), name),
        )
    ),
    "Concepts": ("flow", "reliability", "glossary"),
    "Reference": tuple(name.removesuffix(".md") for name in GENERATED if name.startswith("reference/")),
    "Project": ("numbers", "changelog", "contributing", "adr/index"),
}
LINK = re.compile(r"(\]\()(?!https?:|#)([^)#\s]+)(#[^)]*)?\)")
NOT_RUN = re.compile(r"(?:;|\s*#)\s*not run in tests: [^;.\n]+$", re.MULTILINE)  # for tests/howto.py, not for readers
FENCE = re.compile(r"^```(\w+) (\S.*)$", re.MULTILINE)


class BrokenLink(Exception):
    """A link to a file that does not exist or is not part of the site."""


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("tools", "*.md"))
    for source in sorted(DOCS.rglob("*.md")):
        write(folder, source.relative_to(DOCS).as_posix(), for_site(source))
    for name, page in ROOT_PAGES.items():
        write(folder, page, for_site(REPO / name, page))
    for page, make in GENERATED.items():
        write(folder, page, make())
    with open(folder / "index.md", "a") as index:
        index.write(contents())


def write(folder: Path, page: str, text: str) -> None:
    path = folder / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def for_site(source: Path, page: str = "") -> str:
    """A page of the repository, with links and fences as the site needs them."""
    page = page or source.relative_to(DOCS).as_posix()

    def rewrite(found: re.Match[str]) -> str:
        return f"{found[1]}{site_link(source, page, found[2])}{found[3] or ''})"

    return FENCE.sub(r"```\1", NOT_RUN.sub("", LINK.sub(rewrite, source.read_text())))


def site_link(source: Path, page: str, target: str) -> str:
    """The link from `page` to the page, or file of docs/, that `target` means in the repository."""
    path = (source.parent / target).resolve()
    if path.parent == REPO and path.name in ROOT_PAGES:
        wanted = ROOT_PAGES[path.name]
    elif path.is_relative_to(DOCS) and (path.exists() or is_generated(path)):
        wanted = path.relative_to(DOCS).as_posix() + ("/index.md" if path.is_dir() else "")
    else:
        raise BrokenLink(f"{source.relative_to(REPO)}: {target} is not a page or a picture of the documentation")
    return os.path.relpath(wanted, Path(page).parent)


def is_generated(path: Path) -> bool:
    return path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in GENERATED


def contents() -> str:
    """The site's menu."""
    return "".join(menu(caption, pages) for caption, pages in CONTENTS.items())


def menu(caption: str, pages: tuple[str, ...]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
