import gc
import weakref

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QToolButton, QWidget

from mosaic.gui.theme import LIGHT, Theme
from mosaic.gui.widgets.buttons import button, icon_button
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.confirm import ask_to_confirm
from mosaic.gui.widgets.copy_field import CopyField
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import KINDS, label
from mosaic.gui.widgets.problem import Problem
from mosaic.gui.widgets.state_badge import StateBadge
from mosaic.gui.widgets.tip import set_tip

MARKUP = "<img src=x> & <b>bold</b>"


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_shows_markup_as_text(qtbot, kind):
    made = label(MARKUP, kind)
    qtbot.addWidget(made)

    assert made.textFormat() is Qt.TextFormat.PlainText
    assert made.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse


def test_a_tip_shows_markup_as_text(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)

    set_tip(widget, f"{MARKUP}\nsecond\x07line")

    assert widget.toolTip() == "<qt>&lt;img src=x&gt; &amp; &lt;b&gt;bold&lt;/b&gt;<br>second line</qt>"


def test_a_line_without_room_is_elided_and_its_tip_is_whole(qtbot):
    made = ElidedLabel("a very long name of a run " * 4)
    qtbot.addWidget(made)
    made.resize(80, 20)
    made.show()

    assert made.minimumSizeHint().width() < 80
    assert "a very long name of a run a very" in made.toolTip()


def test_a_problem_hides_until_there_is_one_and_folds_its_details(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    made = Problem()
    made.setParent(parent)
    parent.show()
    assert not made.isVisible()

    made.show_problem('steps: must be an integer, not "abc".', "Traceback")

    assert made.isVisible()
    assert not made.details.isVisible()
    made.fold.header.click()
    assert made.details.isVisible()
    made.clear()
    assert not made.isVisible()


def test_a_fold_opens_by_keyboard(qtbot):
    content = label("inside")
    made = Fold("All settings & more", content)
    qtbot.addWidget(made)
    made.show()

    qtbot.keyClick(made.header, Qt.Key.Key_Space)

    assert content.isVisible()
    assert made.header.text() == "▾  All settings && more"


def test_copying_a_line_fills_the_clipboard(qtbot):
    made = CopyField("mosaic run toy steps=5")
    qtbot.addWidget(made)

    made.button.click()

    assert QGuiApplication.clipboard().text() == "mosaic run toy steps=5"
    assert made.button.text() == "Copied ✓"
    qtbot.waitUntil(lambda: made.button.text() == "Copy", timeout=5000)


def test_a_badge_has_a_glyph_and_a_word_besides_its_colour(qtbot):
    theme = Theme("light")
    made = StateBadge(theme)
    qtbot.addWidget(made)

    made.show_state("✕", "failed", "failed")

    assert made.text() == "✕ failed"
    assert made.palette().windowText().color().name().upper() == LIGHT.failed


def test_buttons_have_names_for_screen_readers(qtbot):
    pressed = []
    plain = button("Start", lambda: pressed.append("start"), "primary", "Start the run", "Ctrl+Return")
    small = icon_button(Theme("light"), "close", "Close the tab", lambda: pressed.append("close"))
    for made in (plain, small):
        qtbot.addWidget(made)
        made.click()

    assert pressed == ["start", "close"]
    assert [plain.accessibleName(), small.accessibleName()] == ["Start", "Close the tab"]


def test_a_button_that_is_gone_survives_a_change_of_theme(qtbot):
    theme = Theme("light")
    parent = QWidget()
    small = icon_button(theme, "close", "Close", lambda: None)
    small.setParent(parent)

    parent.deleteLater()
    qtbot.waitSignal(parent.destroyed).wait()

    theme.choose("dark")


@pytest.mark.parametrize(("key", "is_done"), [("confirm.yes", True), ("", False)])
def test_only_the_named_button_confirms(qtbot, key, is_done):
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    done = []

    box = ask_to_confirm(parent, f"Delete {MARKUP}?", "Delete", lambda: done.append(True))
    chosen = next(
        made for made in box.buttons() if made.objectName() == key or (not key and made is box.escapeButton())
    )
    with qtbot.waitSignal(box.finished):
        chosen.click()

    assert bool(done) is is_done
    assert parent.findChildren(QMessageBox) == [] or not box.isVisible()


def test_a_question_about_cancelling_has_only_one_button_that_says_cancel(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    box = ask_to_confirm(parent, "Cancel the run?", "Cancel run", list)
    assert [made.text() for made in box.buttons() if "Cancel" in made.text()] == ["Cancel run"]
    box.close()


def test_the_text_of_an_empty_state_has_room_in_a_narrow_panel(qtbot, qapp):
    Theme("light").dress(qapp)
    empty = EmptyState("Missing", "It comes with MOSAIC and gets an environment of its own, on this machine.")
    qtbot.addWidget(empty)
    empty.resize(300, 400)
    empty.show()
    assert empty.text.width() <= 300 - 48
    assert empty.text.height() >= empty.text.heightForWidth(empty.text.width())


def test_an_empty_page_says_what_to_do_next(qtbot):
    pressed = []
    made = EmptyState("No runs yet", "Curves appear here.", "Start PPO", lambda: pressed.append(True))
    qtbot.addWidget(made)

    made.button.click()

    assert pressed == [True]


def test_a_card_without_a_title_has_no_empty_line(qtbot):
    made = Card()
    qtbot.addWidget(made)
    made.show()

    assert not made.title.isVisible()


def test_a_theme_forgets_a_button_that_is_gone(qtbot):
    theme, parent = Theme("light"), QWidget()
    qtbot.addWidget(parent)
    made = icon_button(theme, "close", "Close", lambda: None)
    made.setParent(parent)
    kept = weakref.ref(made)

    del made
    parent.findChild(QToolButton).deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()

    theme.choose("dark")
    assert kept() is None
