import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QPushButton

from mosaic.gui.stylesheet import stylesheet
from mosaic.gui.theme import DARK, LIGHT, Theme

TEXTS = ("text", "muted", "running", "done", "failed", "waiting", "cancelled", "warning")


def luminance(colour):
    channels = [value / 255 for value in QColor(colour).getRgb()[:3]]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "surface", "hover", "selection"])
@pytest.mark.parametrize("text", TEXTS)
def test_text_can_be_read_on_every_ground(colours, text, ground):
    least = 4.5 if ground in ("ground", "surface") else 4.0

    assert contrast(getattr(colours, text), getattr(colours, ground)) >= least


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_the_primary_button_can_be_read(colours):
    assert contrast(colours.on_accent, colours.accent) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_a_border_of_a_field_can_be_seen(colours):
    assert contrast(colours.border, colours.ground) >= 1.8


def test_the_stylesheet_has_a_value_for_every_name():
    assert "$" not in stylesheet(LIGHT, "light", "Mono")


def test_a_chosen_theme_colours_the_window_at_once(qapp, qtbot):
    theme = Theme("light")
    theme.dress(qapp)
    made = QPushButton("x")
    qtbot.addWidget(made)
    changes = []
    theme.changed.connect(lambda: changes.append(theme.colours))

    theme.choose("dark")

    assert changes == [DARK]
    assert qapp.palette().window().color() == QColor(DARK.ground)
    assert DARK.accent in qapp.styleSheet()


def test_without_a_choice_the_systems_scheme_decides(qapp):
    assert Theme("system").colours in (LIGHT, DARK)
