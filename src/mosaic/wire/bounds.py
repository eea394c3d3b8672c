"""Limits of what one reply carries: workers and configs decide how long a run's texts and metric names are."""

from collections.abc import Mapping

from google.protobuf.descriptor import FieldDescriptor

from mosaic.wire import mosaic_pb2 as pb

PAGE_BYTES = 4 << 20  # of a page, with at least one entry
REPLY_BYTES = 48 << 20  # for clients that do not ask for pages; gRPC refuses replies over 64 MiB
LISTED_BYTES = 16 << 10  # of a run in a listing
WHOLE_BYTES = 4 << 20  # of a run that is shown alone, and of its config and its settings

ENTRY_BYTES = 16  # of a value, besides its name
LONGEST_TEXT = 500
LONGEST_NAME = 200
MOST_TEXTS = 20


def bound(info: pb.RunInfo, most_bytes: int) -> pb.RunInfo:
    """Shorten the texts of a run that takes more than `most_bytes`."""
    if info.ByteSize() > most_bytes:
        _bound_texts(info)
    return info


def some_values(values: Mapping[str, float], most_bytes: int) -> Mapping[str, float]:
    """All of them, if they fit into a reply; else those with short names that fit.

    Short paths come first: episode/return is more interesting than actor/rpc/replay/sent.
    """
    if sum(map(len, values)) + ENTRY_BYTES * len(values) <= most_bytes:
        return values
    chosen: dict[str, float] = {}
    for name in sorted(values, key=lambda name: (name.count("/"), name)):
        size = len(name.encode()) + ENTRY_BYTES
        if len(name) <= LONGEST_NAME and size <= most_bytes:
            most_bytes -= size
            chosen[name] = values[name]
    return chosen


def _bound_texts(info: pb.RunInfo) -> None:
    for field, value in info.ListFields():
        if field.type != FieldDescriptor.TYPE_STRING or field.name in (
            "run_id",
            "run_dir",
            "axes_json",
            "chosen_settings_json",
        ):
            continue
        if field.is_repeated:
            texts = [shortened(text) for text in value[:MOST_TEXTS]]
            info.ClearField(field.name)
            getattr(info, field.name).extend(texts)
        else:
            setattr(info, field.name, shortened(value))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def document_or_note(text: str, what: str) -> str:
    """A JSON object for a reply; in place of one that is too large, an object that says so."""
    if len(text) <= WHOLE_BYTES:
        return text
    return '{"left out": "' + f"{what} has {len(text):,} bytes, too many for a reply" + '"}'
