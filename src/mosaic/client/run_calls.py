"""Calls about runs: submit, find, list, watch, change and end them."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.client.caller import CALL_TIMEOUT_S, SLOW_CALL_TIMEOUT_S, Caller
from mosaic.client.request_text import command_text, config_text, states_to_wire
from mosaic.client.run import Run, RunList
from mosaic.client.streams import repeat_until_answered, watch_runs
from mosaic.model.ordering import ordered, sort_names
from mosaic.model.states import RunState
from mosaic.model.ulid import is_ulid, new_ulid
from mosaic.wire import mosaic_pb2 as pb

PAGE_RUNS = 500
CANCELLED_AT_ONCE = 20  # the daemon looks through its queue once for many of them, instead of after each


class RunCalls(Caller):
    async def submit_run(self, config: Mapping[str, Any] | str | Path, idempotency_key: str = "") -> Run:
        """Submit a trainer config: a mapping, JSON text, or the path of a JSON file."""
        request = pb.SubmitRunRequest(config_json=config_text(config), idempotency_key=idempotency_key)
        return Run.from_wire(await self._ask(self._stub.SubmitRun, request))

    async def submit_runs(
        self,
        configs: Sequence[Mapping[str, Any] | str | Path],
        idempotency_keys: Sequence[str] = (),
        *,
        experiment: str = "",
        document: Mapping[str, Any] | None = None,
        is_new_experiment: bool = False,
        is_dry_run: bool = False,
    ) -> list[Run]:
        """Submit many trainer configs in one call: all become runs, or none if one of them is invalid.

        With a `document` the `experiment` is created or extended together with them (`is_new_experiment`: its name
        must be unused). With `is_dry_run` they are only checked, and the result is empty.
        """
        told = await self._submit_all(
            configs, idempotency_keys, experiment, document, is_new_experiment=is_new_experiment, is_dry_run=is_dry_run
        )
        return [run for run, _ in told]

    async def _submit_all(
        self,
        configs: Sequence[Mapping[str, Any] | str | Path],
        idempotency_keys: Sequence[str],
        experiment: str,
        document: Mapping[str, Any] | None,
        *,
        is_new_experiment: bool,
        is_dry_run: bool,
    ) -> list[tuple[Run, bool]]:
        """Each run, and whether this call added it: one with its key may have existed."""
        keys = [*idempotency_keys, *[""] * (len(configs) - len(idempotency_keys))]
        request = pb.SubmitRunsRequest(
            runs=[
                pb.SubmitRunRequest(config_json=config_text(config), idempotency_key=key)
                for config, key in zip(configs, keys, strict=True)
            ],
            experiment=None
            if document is None
            else pb.PutExperimentRequest(
                name=experiment, document_json=config_text(document), must_be_new=is_new_experiment
            ),
            is_dry_run=is_dry_run,
        )
        reply = await self._ask(self._stub.SubmitRuns, request, SLOW_CALL_TIMEOUT_S)
        return [(Run.from_wire(info), is_new) for info, is_new in zip(reply.runs, reply.is_new, strict=True)]

    async def cancel_run(self, run_id: str, reason: str = "") -> Run:
        """Request the end of a run. The request is durable when this returns; the run ends shortly afterwards.

        `reason`: one line that says why, for the state CANCELLED.
        """
        request = pb.RunRequest(run_id=run_id, reason=reason)
        return Run.from_wire(await self._ask(self._stub.CancelRun, request))

    async def cancel_runs(self, run_ids: Sequence[str], reason: str = "") -> list[Run]:
        """`cancel_run` for many runs, in this order, in a fraction of the time."""
        cancelled: list[Run] = []
        for start in range(0, len(run_ids), CANCELLED_AT_ONCE):
            some = run_ids[start : start + CANCELLED_AT_ONCE]
            cancelled += await asyncio.gather(*(self.cancel_run(run_id, reason) for run_id in some))
        return cancelled

    async def command_run(self, run_id: str, command: Mapping[str, Any], command_id: str | None = None) -> int:
        """Send a command (`{"cmd": "pause"}`) to a run's worker and return its number, 1, 2, 3 …

        It is durable when this returns, and the worker receives it exactly once: after a restart of the daemon the call
        is repeated with the same id. To repeat a call yourself, choose the `command_id`.
        """
        request = pb.CommandRunRequest(
            run_id=await self._id_of(run_id), command_id=command_id or new_ulid(), command_json=command_text(command)
        )
        call = self._open(self._stub.CommandRun, timeout=CALL_TIMEOUT_S)
        reply = await repeat_until_answered(call, request, self.target, self._wait_for_daemon)
        return int(reply.seq)

    async def delete_run(self, run_id: str) -> int:
        """Delete a run that is over, with its folder; return the number of bytes freed."""
        reply = await self._ask(self._stub.DeleteRun, pb.RunRequest(run_id=run_id), SLOW_CALL_TIMEOUT_S)
        return int(reply.freed_bytes)

    async def get_run(self, run_id: str) -> Run:
        """One run with its history and config. `run_id` may be an id, a prefix of one, a name, `last` or `last~N`."""
        return Run.from_wire(await self._ask(self._stub.GetRun, pb.RunRequest(run_id=run_id)))

    async def edit_run(
        self,
        run_id: str | Collection[str],
        *,
        name: str | None = None,
        note: str | None = None,
        add_tags: Collection[str] = (),
        remove_tags: Collection[str] = (),
    ) -> list[Run]:
        """Change the name, the note and the tags of one run or several; all of them change, or none.

        What is not given stays; an empty note removes it. The change is durable when this returns.
        """
        run_ids = (run_id,) if isinstance(run_id, str) else tuple(run_id)
        request = pb.EditRunRequest(run_ids=run_ids, name=name, note=note, add_tags=add_tags, remove_tags=remove_tags)
        reply = await self._ask(self._stub.EditRun, request)
        return [Run.from_wire(info) for info in reply.runs]

    async def list_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        *,
        experiment: str = "",
        where: str = "",
        sort: str = "",
        columns: Collection[str] = (),
    ) -> RunList:
        """Newest first. Default: runs in all states, without a limit. A state may be given by its name.

        `experiment`: only its runs. `where`: a condition, such as `algo=ppo and return>400`. `sort`: names of fields,
        settings or metrics, such as `-return,seed`. `columns`: names whose values each run has in `chosen`. BadQuery if
        one does not parse.
        """
        request = pb.ListRunsRequest(
            states=states_to_wire(states),
            limit=limit,
            page_runs=PAGE_RUNS,
            experiment=experiment,
            where=where,
            setting_keys=columns,
        )
        if 0 < limit <= PAGE_RUNS:
            request.sort = sort  # the daemon sends only the first ones
        elif sort:
            return await self._list_sorted(request, sort)
        return await self._list(request)

    async def _list_sorted(self, request: pb.ListRunsRequest, sort: str) -> RunList:
        """More runs than one reply has: they come in pages, and are sorted here."""
        names, limit = sort_names(sort), request.limit
        request.limit = 0
        request.setting_keys.extend(name for name, _ in names)
        found = await self._list(request)
        runs = ordered(found.runs, names, lambda run, name: run.chosen.get(name))
        return replace(found, runs=tuple(runs[: limit or None]))

    async def _list(self, request: pb.ListRunsRequest) -> RunList:
        pages: list[pb.ListRunsReply] = []
        while not pages or request.before:
            pages.append(await self._ask(self._stub.ListRuns, request))
            request.before = pages[-1].next
            request.limit -= min(request.limit, len(pages[-1].runs))
        return RunList.joined(pages)

    def watch_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        interval_ms: int = 500,
        run_ids: Collection[str] = (),
        *,
        experiment: str = "",
    ) -> AsyncGenerator[RunList, None]:
        """All runs that match, then changes, without end. After 5 s without a change the next item is empty."""
        request = pb.WatchRunsRequest(
            states=states_to_wire(states),
            limit=limit,
            interval_ms=interval_ms,
            run_ids=run_ids,
            experiment=experiment,
        )
        return watch_runs(self._open(self._stub.WatchRuns), request, self.target, self._wait_for_daemon)

    async def wait_run(self, run_id: str, timeout_s: float | None = None) -> Run:
        """Wait until a run is over and return it; TimeoutError after `timeout_s`."""
        run_id = await self._id_of(run_id)
        try:
            async with asyncio.timeout(timeout_s), aclosing(self.watch_runs(run_ids=(run_id,))) as changes:
                async for change in changes:
                    if run_id in change.deleted or any(run.state.is_over for run in change.runs):
                        break
        except TimeoutError:
            raise TimeoutError(f"Run {run_id} is not over after {timeout_s} s.") from None
        return await self.get_run(run_id)

    async def _id_of(self, reference: str) -> str:
        """The id, for calls that are repeated after a broken connection: by then `last` may mean another run."""
        return reference if is_ulid(reference) else (await self.get_run(reference)).run_id
