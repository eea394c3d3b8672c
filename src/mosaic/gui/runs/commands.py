"""Carries out what the user asks for the selected runs. Nothing here waits."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QWidget

from mosaic.gui.runs.size_meter import measure
from mosaic.gui.widgets.confirm import ask_to_confirm
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.present.run_actions import cancel_question, delete_question, to_cancel, to_delete
from mosaic.present.scores import count
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.gui.context import Context

MOST_TABS = 8  # opened at once
CALLS_AT_ONCE = 20
T = TypeVar("T")


class RunCommands(QObject):
    def __init__(self, context: "Context", parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._parent = parent

    def carry_out(self, key: str, runs: "Sequence[Run]") -> None:
        """`key`: of a RunAction that applies to these runs."""
        if runs:
            getattr(self, f"_{key}")(list(runs))

    def _open(self, runs: "list[Run]") -> None:
        for run in runs[:MOST_TABS]:
            self._context.go.open_run(run.run_id)

    def _duplicate(self, runs: "list[Run]") -> None:
        self._context.go.new_run("train", run_id=runs[0].run_id)

    def _resume(self, runs: "list[Run]") -> None:
        self._context.go.new_run("resume", run_id=runs[0].run_id)

    def _evaluate(self, runs: "list[Run]") -> None:
        self._context.go.new_run("evaluate", run_id=runs[0].run_id)

    def _compare(self, runs: "list[Run]") -> None:
        self._context.go.compare([run.run_id for run in runs])

    def _operators(self, runs: "list[Run]") -> None:
        self._context.go.show_operators(runs[0].run_id)

    def _copy_id(self, runs: "list[Run]") -> None:
        QGuiApplication.clipboard().setText("\n".join(run.run_id for run in runs))
        self._context.notices.say(f"Copied {count(len(runs), 'id')}.")

    def _folder(self, runs: "list[Run]") -> None:
        folder = runs[0].run_dir
        if not os.path.isdir(folder):
            self._context.notices.problem(f"The folder {folder} does not exist.")
        elif not QDesktopServices.openUrl(QUrl.fromLocalFile(folder)):
            self._context.notices.problem(f"No program here opens folders. The run's folder is {folder}")

    # Cancelling

    def _cancel(self, runs: "list[Run]") -> None:
        ids = [run.run_id for run in to_cancel(runs)]

        def begin() -> None:
            self._context.hub.ask(
                lambda client: cancel_all(client, ids), self._report_cancelled, self._fail, owner=self
            )

        label = "Cancel run" if len(ids) == 1 else f"Cancel {count(len(ids), 'run')}"
        ask_to_confirm(self._parent, cancel_question(runs), label, begin)

    def _report_cancelled(self, failures: list[str]) -> None:
        if failures:
            self._context.notices.problem(f"{count(len(failures), 'run')} could not be cancelled.", "\n".join(failures))

    # Deleting

    def _delete(self, runs: "list[Run]") -> None:
        if self._context.root is None:
            self._ask_to_delete(runs, None)
            return
        folders = {run.run_id: run.run_dir for run in to_delete(runs)}
        self._context.hub.compute(
            lambda: sum(measure(folders).values()),
            lambda used: self._ask_to_delete(runs, used),
            lambda _: self._ask_to_delete(runs, None),
            owner=self,
        )

    def _ask_to_delete(self, runs: "list[Run]", used_bytes: int | None) -> None:
        ids = [run.run_id for run in to_delete(runs)]

        def begin() -> None:
            self._context.hub.ask(
                lambda client: delete_all(client, ids),
                lambda result: self._report_deleted(len(ids), *result),
                self._fail,
                owner=self,
            )

        label = "Delete run" if len(ids) == 1 else f"Delete {count(len(ids), 'run')}"
        ask_to_confirm(self._parent, delete_question(runs, used_bytes), label, begin)

    def _report_deleted(self, asked: int, freed: int, failures: list[str]) -> None:
        if deleted := asked - len(failures):
            self._context.notices.say(f"Deleted {count(deleted, 'run')}: {size(freed)} freed.")
        if failures:
            self._context.notices.problem(f"{count(len(failures), 'run')} could not be deleted.", "\n".join(failures))

    def _fail(self, error: Exception) -> None:
        self._context.notices.problem(str(error))


async def cancel_all(client: "AsyncTrainerClient", run_ids: list[str]) -> list[str]:
    """Request the end of the runs; return why some could not be cancelled."""
    return [str(answer) for answer in await _for_each(client.cancel_run, run_ids) if isinstance(answer, MosaicError)]


async def delete_all(client: "AsyncTrainerClient", run_ids: list[str]) -> tuple[int, list[str]]:
    """Delete the runs; return the bytes that were freed, and why some could not be deleted."""
    freed, failures = 0, []
    for answer in await _for_each(client.delete_run, run_ids):
        if isinstance(answer, MosaicError):
            failures.append(str(answer))
        else:
            freed += answer
    return freed, failures


async def _for_each(call: Callable[[str], Awaitable[T]], run_ids: Sequence[str]) -> "list[T | MosaicError]":
    """The answers, several at a time: after each change of many runs the daemon looks through all that wait."""
    answers: list[T | MosaicError] = []
    for start in range(0, len(run_ids), CALLS_AT_ONCE):
        asked = (_answer(call, run_id) for run_id in run_ids[start : start + CALLS_AT_ONCE])
        answers += await asyncio.gather(*asked)
    return answers


async def _answer(call: Callable[[str], Awaitable[T]], run_id: str) -> "T | MosaicError":
    """What a call says of one run; NoDaemon concerns all of them, so it is raised."""
    try:
        return await call(run_id)
    except NoDaemon:
        raise
    except MosaicError as error:
        return error
