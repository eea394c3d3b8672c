"""The frames of a run as a section of its tab."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from mosaic.gui.frames.tab import FramesTab
from mosaic.gui.run_tab.section import Section

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.source import RunSource


class FramesSection(Section):
    """FramesTab watches its own visibility."""

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self.frames = FramesTab(context, source.run_id)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.frames)
