"""The four modes of the sheet. One that the worker does not offer is disabled, with the reason."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.run_request import EVALUATE, MODES, RESUMED, SCRIPT, TRAIN

WORDS = {TRAIN: "Train", SCRIPT: "Script", RESUMED: "Resume", EVALUATE: "Evaluate"}
TIPS = {
    TRAIN: "Train with the settings of the worker",
    SCRIPT: "Run a script in the environment of the worker",
    RESUMED: "Continue a run from a checkpoint",
    EVALUATE: "Evaluate the policy in a checkpoint",
}


class ModeBar(QWidget):
    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for mode in MODES:
            made = button(WORDS[mode], tip=TIPS[mode], name=f"new_run.mode.{mode}")
            made.setCheckable(True)
            made.clicked.connect(lambda _, mode=mode: self.chosen.emit(mode))
            self._group.addButton(made)
            self.buttons[mode] = made
            layout.addWidget(made, 1)

    @property
    def mode(self) -> str:
        return next((mode for mode, made in self.buttons.items() if made.isChecked()), TRAIN)

    def choose(self, mode: str) -> None:
        self.buttons[mode].setChecked(True)

    def disable(self, reasons: dict[str, str]) -> None:
        """Disable the modes that have a reason, and enable the others."""
        for mode, made in self.buttons.items():
            made.setEnabled(not reasons.get(mode))
            set_tip(made, reasons.get(mode) or TIPS[mode])
