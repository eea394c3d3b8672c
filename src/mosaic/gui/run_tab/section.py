"""One section of a run's tab."""

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.source import RunSource


class Section(QWidget):
    """Works between `enter` and `leave` only. The tab calls them when it is seen and no longer seen."""

    needs_events: ClassVar[bool] = False

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__()
        self.context = context
        self.source = source

    def enter(self) -> None:
        """The section is on the screen: show what is new and keep it current."""

    def leave(self) -> None:
        """It is no longer on the screen: stop timers, feeds and questions."""

    def focus_search(self) -> None:
        """Ctrl+F: take the keyboard to the search field, if the section has one."""
