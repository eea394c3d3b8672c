"""Draws a Form: the settings that matter as rows of their own, all others in a fold with a search field."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLayout, QPlainTextEdit, QVBoxLayout, QWidget

from mosaic.gui.new_run.all_settings import AllSettings, show_part
from mosaic.gui.new_run.editors import make_editor
from mosaic.gui.new_run.field_row import LABEL_PX, FieldRow
from mosaic.gui.widgets.labels import label
from mosaic.present.form_check import OTHER
from mosaic.present.form_fields import Field
from mosaic.present.form_roles import ENVIRONMENT, suggestions
from mosaic.present.forms import Form

Chosen = Sequence[tuple[str, Field]]
OTHER_HINT = "key=value, one per line\nextras.lr=3e-4"
LINES_PX = 84


class FormView(QObject):
    """Three parts that a page places as it likes: `first`, `second` and the fold `all`; `other` takes free lines.

    `choose`: which fields stand in the first two parts, by the fields that the form has at the moment.
    """

    changed = Signal()

    def __init__(self, name: str, choose: Callable[[Form], tuple[Chosen, Chosen]], show_help: bool = True) -> None:
        super().__init__()
        self.form = Form({})
        self.rows: dict[str, FieldRow] = {}  # of the first two parts
        self._name = name
        self._choose = choose
        self._show_help = show_help
        self._chosen: tuple[tuple[Field, ...], ...] = ()
        self._known_envs: list[str] = []
        self.first, self.second = _column(), _column()
        self.all = AllSettings(f"{name}.all")
        self.all.edited.connect(self._take)
        self.all.reset.connect(self._reset)
        self.other = QPlainTextEdit()
        self.other.setProperty("kind", "mono")
        self.other.setPlaceholderText(OTHER_HINT)
        self.other.setFixedHeight(LINES_PX)
        self.other.setTabChangesFocus(True)
        self.other.setObjectName(f"{name}.other")
        self.other.setAccessibleName("Other settings, one key=value per line")
        self.other.textChanged.connect(self._take_other)
        self.other_problem = label("", "problem", wrap=True, name=f"{name}.other.problem")
        self.other_part = _column()
        self.other_title = label("Other settings", "heading")
        for widget in (self.other_title, self.other, self.other_problem):
            _layout(self.other_part).addWidget(widget)

    def show_form(self, form: Form, known_envs: Sequence[str] = ()) -> None:
        """Draw another form. `known_envs`: environments of other runs, to suggest."""
        self.form = form
        self._known_envs = list(known_envs)
        self._chosen = ()
        self._rebuild()
        self.refresh()

    def refresh(self) -> None:
        """Show the form's texts and problems."""
        problems = self.form.problems()
        for key, row in self.rows.items():
            row.show_text(self.form.text(key), self.form.is_changed(key))
            row.show_problem(problems.get(key, ""))
        self.all.refresh(self.form, problems)
        if self.form.other != self.other.toPlainText():
            self.other.setPlainText(self.form.other)
        show_part(self.other_part, self.form.is_open)
        self.show_other_problem(problems.get(OTHER, ""))

    def show_other_problem(self, sentence: str) -> None:
        self.other_problem.setText(sentence)
        self.other_problem.setVisible(bool(sentence))

    def show_problem(self, key: str, sentence: str) -> bool:
        """Show a refusal beside its field; False if there is no such field here."""
        row = self.rows.get(key) or self.all.row(key)
        if row is None:
            return False
        row.show_problem(sentence)
        row.editor.setFocus()
        return True

    def _take(self, key: str, text: str) -> None:
        if self.form.set(key, text):
            self._rebuild()
        self.refresh()
        self.changed.emit()

    def _reset(self, key: str) -> None:
        self._take(key, "")

    def _take_other(self) -> None:
        if self.other.toPlainText() != self.form.other:
            self.form.other = self.other.toPlainText()
            self.show_other_problem(self.form.problems().get(OTHER, ""))
            self.changed.emit()

    def _rebuild(self) -> None:
        first, second = self._choose(self.form)
        chosen = (tuple(field for _, field in first), tuple(field for _, field in second))
        # The row in use must survive, with its cursor, when another algorithm brings other fields.
        if chosen != self._chosen:
            self._chosen, self.rows = chosen, {}
            for part, pairs in ((self.first, first), (self.second, second)):
                _empty(_layout(part))
                show_part(part, bool(pairs))
                for title, field in pairs:
                    _layout(part).addWidget(self._row(title, field))
        self.all.show_fields(self.form, set(self.rows))

    def _row(self, title: str, field: Field) -> FieldRow:
        known = suggestions(field, self.form.schema) if field == self.form.roles.get(ENVIRONMENT) else []
        values = list(dict.fromkeys((*known, *(self._known_envs if known or title == ENVIRONMENT else ()))))
        help = field.help if self._show_help else ""
        row = FieldRow(
            title, make_editor(field, values, not self._show_help), help, f"{self._name}.{field.key}", LABEL_PX
        )
        row.set_tips("\n".join(filter(None, (field.key, field.limits, field.help))))
        row.edited.connect(lambda text: self._take(field.key, text))
        row.reset.connect(lambda: self._reset(field.key))
        self.rows[field.key] = row
        return row


def _column() -> QWidget:
    made = QWidget()
    layout = QVBoxLayout(made)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(10)
    return made


def _layout(widget: QWidget) -> QLayout:
    found = widget.layout()
    assert found is not None
    return found


def _empty(layout: QLayout) -> None:
    while item := layout.takeAt(0):
        if widget := item.widget():
            widget.setParent(None)
            widget.deleteLater()
