"""The endpoint's key: from an environment variable, or from a file that only its owner can read."""

import os
import stat
from typing import NoReturn

from mosaic_sdk.config import ConfigError
from mosaic_sdk.llm.settings import EndpointSettings

NO_KEY = "none"  # the client insists on a key; servers without one ignore it
_SHORTEST_SECRET = 6
_LARGEST_FILE = 4096


class Key:
    """A key that no message, log or traceback shows by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def is_set(self) -> bool:
        return bool(self._value)

    def reveal(self) -> str:
        return self._value or NO_KEY

    def redacted(self, text: str) -> str:
        """`text` without the key: servers repeat it in their errors."""
        return text.replace(self._value, "[key]") if len(self._value) >= _SHORTEST_SECRET else text

    def __repr__(self) -> str:
        return "Key(…)" if self.is_set else "Key()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is never stored")


def load_key(config: EndpointSettings) -> Key:
    """The key that the settings name; without one, for servers that ask for none, an empty key."""
    if config.api_key_file:
        return _checked(_read(os.path.expanduser(config.api_key_file)), "api_key_file")
    return _checked(os.environ.get(config.api_key_env, ""), config.api_key_env)


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"api_key_file: cannot open {path}: {error.strerror}.") from None
    try:
        _check_file(path, os.fstat(fd))
        return os.read(fd, _LARGEST_FILE).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _check_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"api_key_file: {path} is not a file.")
    if found.st_uid != os.geteuid():
        raise ConfigError(f"api_key_file: {path} belongs to another user. Use a file of your own.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(f"api_key_file: other users can read {path}. Type: chmod 600 {path}")


def _checked(value: str, source: str) -> Key:
    value = value.strip()
    # An HTTP header cannot hold anything else; the value itself is not repeated.
    if not all("!" <= character <= "~" for character in value):
        raise ConfigError(f"{source}: does not hold a key: a key is one line of ASCII without spaces.")
    if not value and source == "api_key_file":
        raise ConfigError("api_key_file: is empty. Write the key into it.")
    return Key(value)
