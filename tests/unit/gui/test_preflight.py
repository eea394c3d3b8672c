"""What `mosaic gui` says where it cannot open a window. No test here imports Qt."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.gui import preflight

REPO = Path(__file__).parents[3]
X11 = {"DISPLAY": ":0"}


def test_the_missing_extra_is_named():
    problem = preflight.missing_extra(lambda name: name != "pyqtgraph", checkout=False)

    assert problem == (
        "The window is an optional part; pyqtgraph is not installed. Install it with: pip install 'mosaic-rl[gui]'"
    )


def test_in_a_checkout_make_opens_it():
    problem = preflight.missing_extra(lambda _: False, checkout=True)

    assert "PySide6 and pyqtgraph are not installed" in problem
    assert problem.endswith("make gui")


@pytest.mark.parametrize(
    ("version", "python", "is_usable"),
    [
        ("6.12.0", (3, 11), False),
        ("6.13.1", (3, 11), False),
        ("7.0", (3, 11), False),
        ("6.11.3", (3, 11), True),
        ("6.12.0", (3, 12), True),
        ("", (3, 11), True),
    ],
)
def test_a_pyside_that_crashes_is_refused(version, python, is_usable):
    problem = preflight.unusable_qt(version, python)

    assert (problem == "") is is_usable
    assert is_usable or "PySide6-Essentials<6.12" in problem


@pytest.mark.parametrize(
    "environment", [X11, {"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen:size=800x600"}]
)
def test_a_screen_or_none_by_wish_is_enough(environment):
    assert preflight.missing_display(environment) == ""


def test_without_a_screen_the_other_ways_are_named():
    problem = preflight.missing_display({"QT_QPA_PLATFORM": "xcb"})

    assert "neither DISPLAY nor WAYLAND_DISPLAY" in problem
    assert "mosaic watch" in problem


def test_missing_libraries_are_named_as_debian_packages():
    missing = {"libxcb-icccm.so.4", "libxcb-keysyms.so.1"}

    problem = preflight.missing_libraries(X11, lambda library: library not in missing)

    assert problem.endswith("apt-get install libxcb-icccm4 libxcb-keysyms1")


@pytest.mark.parametrize("environment", [{"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, {"QT_QPA_PLATFORM": "offscreen"}])
def test_only_an_x_window_needs_the_libraries_of_x(environment):
    assert preflight.missing_libraries(environment, lambda library: "xcb" not in library) == ""


def test_the_makefile_installs_what_users_are_told_to_install():
    lines = (REPO / "requirements" / "gui-debian.txt").read_text().split("# For the tests only")[0].splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}

    assert listed == set((preflight.LIBRARIES | preflight.X11_LIBRARIES).values())


def test_the_verb_prints_one_sentence_and_starts_nothing(home):
    """In an environment without Qt the extra is missing, in one with Qt the display."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }

    ended = subprocess.run(
        [sys.executable, "-m", "mosaic", "gui"],
        env=environment | {"MOSAIC_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("mosaic: The")
    assert ended.stderr.count("\n") == 1
    assert list(home.iterdir()) == []
