"""Continues runs that their cluster has ended: as new runs from the newest checkpoint, as often as a config allows.

A new run, not another attempt: nothing leaves FAULTED, and on a lost node the old worker may still write to its folder
(ADR 46).
"""

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING, Any

from mosaic.dispatch.reasons import BY_CLUSTER
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.submit.derive import RESUME

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer

log = logging.getLogger(__name__)
LATEST_S = 24 * 3600.0  # a daemon that starts later than this after a run's end does not continue it


class Requeue:
    """Used only on the daemon's loop."""

    def __init__(self, trainer: "Trainer") -> None:
        self._trainer = trainer
        self._tasks: set[asyncio.Task[None]] = set()

    def after(self, record: RunRecord) -> None:
        """This run has ended: continue it in the background, if its cluster ended it and its config says so."""
        if record.on and record.state is RunState.FAULTED and record.reason.startswith(BY_CLUSTER):
            task = asyncio.create_task(self._try(record))
            self._tasks.add(task)  # the event loop itself keeps only a weak reference
            task.add_done_callback(self._tasks.discard)

    async def recover(self) -> None:
        """Continue what ended shortly before or while no daemon ran. The idempotency key makes it one run each."""
        since = time.time() - LATEST_S
        for record in await self._trainer.registry.do(lambda r: r.ended_afar(since)):
            self.after(record)

    async def _try(self, record: RunRecord) -> None:
        try:
            await self._continue(record)
        except Exception as error:
            # The edge of a background task: the run has ended all the same, and its user can resume it.
            is_ours = isinstance(error, MosaicError)
            log.warning("Run %s is not continued: %s", record.run_id, error, exc_info=None if is_ours else error)

    async def _is_continued(self, run_id: str) -> bool:
        """By this daemon, by an earlier one, or by a user."""
        children = await self._trainer.registry.do(lambda r: r.children(run_id))
        return any(child.lineage.relation == RESUME for child in children)

    async def _continue(self, record: RunRecord) -> None:
        document = await asyncio.to_thread(read_json, self._trainer.root.config_file(record.run_id)) or {}
        left = int((document.get("payload") or {}).get("requeue_as_resume") or 0)
        if left < 1 or await self._is_continued(record.run_id):
            return
        failpoint("requeue.decided")
        config = {
            "metadata": {"parent_run_id": record.run_id, "relation": RESUME, **_place_in_experiment(record)},
            "payload": {"on": record.on, "requeue_as_resume": left - 1},
        }
        cause = record.reason.partition(":")[0]
        why = f"submitted by MOSAIC, because its cluster ended run {record.run_id} ({cause}); {left - 1} more allowed"
        info = await self._trainer.submit(json.dumps(config), f"requeue of {record.run_id}", why)
        log.info("Run %s continues run %s.", info.run_id, record.run_id)


def _place_in_experiment(record: RunRecord) -> dict[str, Any]:
    """Of the run that is continued: a preempted seed is no failed one (ADR 55)."""
    member = record.membership
    return {"experiment": {"name": member.experiment, "axes": dict(member.axes)}} if member.experiment else {}
