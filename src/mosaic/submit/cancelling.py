"""The reason that somebody gives for cancelling a run."""

from mosaic.model.errors import BadConfig

MAX_REASON = 500  # characters: every listing of the run shows it


def refuse_bad_reason(reason: str) -> None:
    """BadConfig for a reason that does not fit into one line of a listing."""
    if reason and (len(reason) > MAX_REASON or not reason.isprintable() or reason.isspace()):
        raise BadConfig("reason", f"must be one line of at most {MAX_REASON} printable characters.")
