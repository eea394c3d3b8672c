"""The user's folders."""

from pathlib import Path

import pytest

from mosaic.model.xdg import xdg_folder


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        (None, "/home/ada/.cache"),
        ("", "/home/ada/.cache"),
        ("/var/cache", "/var/cache"),
        ("relative", "/home/ada/.cache"),
    ],
)
def test_only_an_absolute_path_replaces_the_default(monkeypatch, value, folder):
    monkeypatch.setenv("HOME", "/home/ada")
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)

    assert xdg_folder("XDG_CACHE_HOME", ".cache") == Path(folder)
