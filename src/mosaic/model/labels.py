"""What people write about a run: its name, its tags and its note."""

MAX_NAME = 120
MAX_TAGS = 32
MAX_TAG = 64
MAX_NOTE = 4000


def is_label(text: str, most: int) -> bool:
    """Whether a name or a tag can be shown in one line: 1 to `most` printable characters."""
    return 1 <= len(text) <= most and text.isprintable() and not text.isspace()


def is_note(text: str) -> bool:
    """Whether a note can be stored and shown: lines of printable characters; empty: no note."""
    # Half a surrogate pair can be encoded neither for SQLite nor for the wire.
    return len(text) <= MAX_NOTE and all(c.isprintable() or c in "\n\t" for c in text)
