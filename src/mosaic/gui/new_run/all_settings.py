"""Every setting of the worker, in groups, with a search field. The rows are made when the fold is opened."""

from collections.abc import Collection, Mapping

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QVBoxLayout, QWidget

from mosaic.gui.new_run.editors import make_editor
from mosaic.gui.new_run.field_row import WIDE_LABEL_PX, FieldRow
from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import label
from mosaic.present.form_fields import Field
from mosaic.present.forms import Form

BATCH = 8  # rows that are made in one go


def show_part(part: QWidget, is_shown: bool) -> None:
    """Show or hide a part of a page. One that the page has not placed would become a window of its own."""
    part.setVisible(is_shown and part.parentWidget() is not None)


class AllSettings(Fold):
    edited = Signal(str, str)  # key, text
    reset = Signal(str)

    def __init__(self, name: str) -> None:
        content = QWidget()
        super().__init__("All settings", content)
        self._name = name
        self._form = Form({})
        self._fields: list[Field] = []
        self._problems: Mapping[str, str] = {}
        self._todo: list[Field] = []  # without a row yet
        self._soon = QTimer(self, singleShot=True, interval=33)
        self._soon.timeout.connect(self._continue)
        self._rows: dict[str, FieldRow] = {}
        self._shown: dict[str, Field] = {}
        self._headings: dict[str, QLabel] = {}
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(10)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search the settings")
        self.search.setClearButtonEnabled(True)
        self.search.setObjectName(f"{name}.search")
        self.search.setAccessibleName("Search the settings")
        self.search.textChanged.connect(self._filter)
        self._nothing = label("", "muted", wrap=True, name=f"{name}.nothing")
        self._column.addWidget(self.search)
        self._column.addWidget(self._nothing)
        self.header.setObjectName(name)
        self.toggled.connect(self._opened)

    def show_fields(self, form: Form, elsewhere: Collection[str]) -> None:
        """`elsewhere`: keys that have a row in another place."""
        self._form = form
        self._fields = [field for field in form.fields if field.key not in elsewhere]
        show_part(self, bool(self._fields))
        if self.is_open:
            self._build()

    def refresh(self, form: Form, problems: Mapping[str, str]) -> None:
        self._problems = problems
        keys = [field.key for field in self._fields]
        changed = sum(form.is_changed(key) for key in keys)
        wrong = sum(key in problems for key in keys)
        parts = [str(len(keys)), *([f"{changed} changed"] if changed else []), *([f"{wrong} wrong"] if wrong else [])]
        self.set_title(f"All settings ({', '.join(parts)})")
        for key, row in self._rows.items():
            row.show_text(form.text(key), form.is_changed(key))
            row.show_problem(problems.get(key, ""))

    def row(self, key: str) -> FieldRow | None:
        """The row of a key, which becomes visible; None if it is not here."""
        if not any(field.key == key for field in self._fields):
            return None
        self.set_open(True)
        self._continue(len(self._todo))
        self.search.clear()
        return self._rows.get(key)

    def _opened(self, is_open: bool) -> None:
        if is_open:
            self._build()

    def _build(self) -> None:
        """Make the missing rows, keep those whose field is the same, drop the others, and put all into order."""
        wanted = {field.key: field for field in self._fields}
        for key in [key for key in self._rows if self._shown.get(key) != wanted.get(key)]:
            row = self._rows.pop(key)
            row.setParent(None)
            row.deleteLater()
        for heading in self._headings.values():
            heading.setParent(None)
            heading.deleteLater()
        self._headings = {}
        self._shown = wanted
        self._todo = self._in_groups()
        self._continue()

    def _continue(self, count: int = BATCH) -> None:
        """Add the next rows: a hundred of them at once would hold up the window."""
        for field in self._todo[:count]:
            if field.group not in self._headings:
                self._headings[field.group] = label(field.group, "heading")
                self._column.addWidget(self._headings[field.group])
            self._column.addWidget(self._rows.get(field.key) or self._make(field))
        self._todo = self._todo[count:]
        self.refresh(self._form, self._problems)
        self._filter()
        if self._todo:
            self._soon.start()

    def _in_groups(self) -> list[Field]:
        """The algorithm's own settings first: they are what is tuned."""
        order = {group: -group.startswith("Hyper") for group in {field.group for field in self._fields}}
        return sorted(self._fields, key=lambda field: order[field.group])

    def _make(self, field: Field) -> FieldRow:
        row = FieldRow(field.key, make_editor(field), field.help, f"{self._name}.{field.key}", WIDE_LABEL_PX)
        row.set_tips(f"{field.path}\n{field.limits}".strip())
        row.edited.connect(lambda text: self.edited.emit(field.key, text))
        row.reset.connect(lambda: self.reset.emit(field.key))
        self._rows[field.key] = row
        return row

    def _filter(self) -> None:
        query = self.search.text()
        found = {field.key for field in self._form.matching(query)}
        for key, row in self._rows.items():
            row.setVisible(key in found)
        visible = {field.group for field in self._fields if field.key in found}
        for group, heading in self._headings.items():
            heading.setVisible(group in visible)
        self._nothing.setText(f"No setting matches “{query}”.")
        self._nothing.setVisible(not found & {field.key for field in self._fields})
