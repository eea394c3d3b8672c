"""What other programs show of a run, as a section of its tab."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from mosaic.gui.analytics.section import AnalyticsSection
from mosaic.gui.run_tab.section import Section

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.source import RunSource


class AnalyticsTabSection(Section):
    """AnalyticsSection watches its own visibility."""

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self.analytics = AnalyticsSection(context, source.run_id)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.analytics)
