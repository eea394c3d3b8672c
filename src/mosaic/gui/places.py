"""The four places of the window. A page is imported and built on the first visit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.gui.context import Context


@dataclass(frozen=True)
class Place:
    key: str
    title: str
    picture: str  # in gui/icons
    tip: str


PLACES = (
    Place("runs", "Runs", "runs", "All runs, live and finished"),
    Place("compare", "Compare", "compare", "Curves and settings of several runs"),
    Place("operators", "Operators", "operators", "Evaluations by hand and by script"),
    Place("workers", "Workers", "workers", "Installed and available workers"),
)


def build(key: str, context: "Context") -> Any:
    """The page of a place. Importing it here keeps pyqtgraph and numpy out of the way until they are needed."""
    if key == "compare":
        from mosaic.gui.compare.page import ComparePage

        return ComparePage(context)
    if key == "operators":
        from mosaic.gui.operators.page import OperatorsPage

        return OperatorsPage(context)
    if key == "workers":
        from mosaic.gui.workers.page import WorkersPage

        return WorkersPage(context)
    from mosaic.gui.runs.page import RunsPage

    return RunsPage(context)
