"""The documentation: its pages can be assembled, every link has a target, and everything they name exists.

`make docs` builds the site with warnings as errors; this is the quick part of it.
"""

import ast
import re
from pathlib import Path

import pages
import pytest

from mosaic.client import TrainerClient

REPO = Path(__file__).parents[3]
SOURCE = REPO / "src/mosaic"
PAGES = [*(REPO / name for name in pages.ROOT_PAGES), *sorted((REPO / "docs").rglob("*.md"))]


def by_name(path):
    return path.relative_to(REPO).as_posix()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pages.main(folder)
    return folder


def headings(path):
    """As GitHub and the site make them into anchors."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_the_menu_once(site):
    listed = [name for names in pages.CONTENTS.values() for name in names]
    made = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.md")}

    assert sorted(set(listed)) == sorted(listed)
    assert set(listed) == {name for name in made if not name.startswith("adr/0")} - {"index"}


def test_links_of_the_site_lead_somewhere(site):
    for page in site.rglob("*.md"):
        for _, target, anchor in pages.LINK.findall(page.read_text()):
            path = page.parent / target
            assert path.exists(), f"{page.relative_to(site)}: {target}"
            assert not anchor or anchor[1:] in headings(path), f"{page.relative_to(site)}: {target}{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_within_a_page_lead_somewhere(page):
    for anchor in re.findall(r"\]\(#([^)]+)\)", page.read_text()):
        assert anchor in headings(page), f"#{anchor}"


def test_notes_for_tests_are_not_shown_to_readers(site):
    assert [page.name for page in site.rglob("*.md") if "not run in tests" in page.read_text()] == []


def test_a_link_to_a_file_that_does_not_exist_is_found(tmp_path):
    with pytest.raises(pages.BrokenLink, match=r"README\.md: docs/nothing\.md is not a page"):
        pages.site_link(REPO / "README.md", "index.md", "docs/nothing.md")


def test_the_reference_names_every_verb_option_and_setting(site):
    commands = (site / "reference/cli.md").read_text()
    config = (site / "reference/trainer-config.md").read_text()
    settings = (site / "reference/workers.md").read_text()

    assert "## mosaic run\n" in commands
    assert "### mosaic daemon start\n" in commands
    assert "`--spin-limit 2h`" in commands
    assert "| `spin_s` | `float` | `1800.0` |" in config
    assert "| `parent_run_id` | the run that" in config
    assert "| `episode_length` | int" in settings
    assert "## cleanrl\n" in settings
    assert r"ppo\_continuous\_action" in settings, "algorithms of a library that is not installed here"


def test_the_reference_has_signatures_and_docstrings_of_the_client_and_the_sdk(site):
    client = (site / "reference/python-client.md").read_text()
    sdk = (site / "reference/sdk.md").read_text()

    assert "def wait(timeout_s: float | None=None) -> Run" in client
    assert "Wait until the run is over; TimeoutError after `timeout_s`." in client
    assert "| `HANDSHAKE` | claimed; its holder is being started |" in client
    assert "## mosaic_sdk.emit\n" in sdk
    assert "\nHeartbeat(" in sdk
    assert "\nRunHandle(" not in client


def test_every_key_of_a_trainer_config_is_explained(site):
    config = (site / "reference/trainer-config.md").read_text()

    assert re.findall(r"^\| (`\w+`) \|.*\|\s*\|$", config, re.MULTILINE) == []


def test_every_public_method_of_the_client_is_in_the_how_to():
    page = (REPO / "docs/howto/python-client.md").read_text()
    hidden = {"close", "listen", "at", "target"}  # close: `with` does it; the others are for views and tests

    assert sorted(name for name in set(dir(TrainerClient)) - hidden if name[0] != "_" and f"{name}" not in page) == []


def where_table():
    text = (REPO / "CONTRIBUTING.md").read_text().partition("## Where is …")[2].partition("\n## ")[0]
    return re.findall(r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)


def names_in(path):
    """Functions, classes and Class.method of a file."""
    for node in ast.parse(path.read_text()).body:
        name = getattr(node, "name", "")
        yield name
        for item in getattr(node, "body", []):
            yield f"{name}.{getattr(item, 'name', '')}"


def test_contributing_says_where_ten_behaviours_are():
    assert len(where_table()) == 10


@pytest.mark.parametrize(("path", "name"), [row[1:] for row in where_table()])
def test_a_behaviour_is_where_contributing_says(path, name):
    assert name in names_in(REPO / path)


# Decisions are never edited, even when files move.
@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "adr"], ids=by_name)
def test_the_source_files_that_a_page_names_exist(page):
    folders = (REPO, *(REPO / "workers").iterdir())
    named = re.findall(r"`((?:src|sdk|workers|tests|benchmarks|docs|examples)/[\w./-]+)`", page.read_text())

    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


def test_the_glossary_is_alphabetical_and_names_a_term_once():
    rows = [line.split(" | ")[0][2:].lower() for line in (REPO / "docs/glossary.md").read_text().splitlines()[4:]]

    assert rows == sorted(set(rows))


MET = ("submit", "registry", "dispatch", "hold", "tail", "ingest", "broadcast", "client", "daemon")  # by every run


def named_in_flow():
    return set(re.findall(r"`([a-z]+/\w+\.py)`", (REPO / "docs/flow.md").read_text()))


def test_flow_md_names_only_files_that_exist():
    assert sorted(name for name in named_in_flow() if not (SOURCE / name).exists()) == []


@pytest.mark.parametrize("folder", MET)
def test_flow_md_names_every_file_of_the_folders_that_a_run_meets(folder):
    files = {f"{folder}/{path.name}" for path in (SOURCE / folder).glob("*.py") if path.name != "__init__.py"}

    assert sorted(files - named_in_flow()) == []


def test_contributing_names_every_make_target():
    makefile = (REPO / "Makefile").read_text()
    named = re.findall(r"`make ([\w-]+)`", (REPO / "CONTRIBUTING.md").read_text() + (REPO / "README.md").read_text())

    targets = {target for line in re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE) for target in line.split()}
    assert sorted(targets - set(named)) == []


def test_the_picture_of_the_readme_shows_something_from_its_first_moment():
    groups = re.findall(r"<g[^>]*>(<animate[^>]*>)?<", (REPO / "docs/pictures/watch.svg").read_text())

    assert len([animate for animate in groups if not animate or 'values="visible' in animate]) > 5
