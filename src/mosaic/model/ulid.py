"""Run ids: ULIDs, 48 bits of milliseconds and 80 random bits in 26 characters that sort by time."""

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26


def new_ulid() -> str:
    number = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    letters = []
    for _ in range(_LENGTH):
        number, low = divmod(number, 32)
        letters.append(_ALPHABET[low])
    return "".join(reversed(letters))


def is_ulid(text: object) -> bool:
    # The first character carries only 3 bits: 26 characters of 5 bits would be 130.
    return isinstance(text, str) and len(text) == _LENGTH and text[0] in "01234567" and set(text) <= set(_ALPHABET)


def time_of(ulid: str) -> float:
    """The unix seconds in an id; a user who chooses an id can put any time into it."""
    number = 0
    for letter in ulid[:10]:
        number = number * 32 + _ALPHABET.index(letter)
    return number / 1000
