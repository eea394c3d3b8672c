"""EditRun: the name, the note and the tags of runs, after the fact."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.model.errors import BadConfig, StoreFailed
from mosaic.model.labels import MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS, is_label, is_note
from mosaic.model.run import RunRecord
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer

MOST_RUNS = 10_000  # in one call


@dataclass(frozen=True)
class Edit:
    """What changes; None and empty: nothing."""

    name: str | None = None
    note: str | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: pb.EditRunRequest) -> "Edit":
        """The change that a client requested. BadConfig if no run could have it."""
        edit = cls(
            request.name if request.HasField("name") else None,
            request.note.strip() if request.HasField("note") else None,
            tuple(dict.fromkeys(request.add_tags)),
            tuple(dict.fromkeys(request.remove_tags)),
        )
        edit._check()
        if not 1 <= len(request.run_ids) <= MOST_RUNS:
            raise BadConfig("run_ids", f"must name 1 to {MOST_RUNS:,} runs.")
        if edit.name is not None and len(request.run_ids) > 1:
            raise BadConfig("name", "can be given to one run at a time.")
        return edit

    def _check(self) -> None:
        if self.name is not None and not is_label(self.name, MAX_NAME):
            raise BadConfig("name", f"must have 1 to {MAX_NAME} printable characters.")
        if self.note is not None and not is_note(self.note):
            raise BadConfig("note", f"must have at most {MAX_NOTE:,} characters, without control characters.")
        for tag in self.add_tags:
            if not is_label(tag, MAX_TAG):
                raise BadConfig("tags", f"must each have 1 to {MAX_TAG} printable characters.")
        if both := set(self.add_tags) & set(self.remove_tags):
            raise BadConfig("tags", f"'{min(both)}' is to be added and removed.")

    def tags_of(self, record: RunRecord) -> tuple[str, ...]:
        tags = [tag for tag in dict.fromkeys((*record.tags, *self.add_tags)) if tag not in self.remove_tags]
        if len(tags) > max(MAX_TAGS, len(record.tags)):
            raise BadConfig("tags", f"run {record.run_id} would have {len(tags)}; the maximum is {MAX_TAGS}.")
        return tuple(tags)


async def edit_runs(trainer: "Trainer", request: pb.EditRunRequest) -> pb.ListRunsReply:
    """Edit all of the named runs or none, and return them as they are now."""
    edit = Edit.of(request)
    records = await trainer.registry.do(lambda r: _edit(r, edit, tuple(request.run_ids)))
    return pb.ListRunsReply(runs=await trainer.infos(records), total=len(records))


def _edit(registry: Registry, edit: Edit, references: tuple[str, ...]) -> list[RunRecord]:
    # One turn of the registry's thread: no other change comes between reading the tags and writing them.
    found = {record.run_id: record for record in map(registry.find, references)}
    for record in found.values():
        if record.damage:
            raise StoreFailed(f"Run {record.run_id} is not edited: {record.damage}")
    registry.edit({run_id: edit.tags_of(record) for run_id, record in found.items()}, name=edit.name, note=edit.note)
    return [registry.get(run_id) for run_id in found]
