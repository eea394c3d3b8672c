"""Clips in the report: inside the page while they are small, as links to their files otherwise."""

import base64
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from eval_worker.report_markup import Html, element

TYPES = {".gif": "image/gif", ".webm": "video/webm", ".mp4": "video/mp4"}
VIDEOS = "videos"
MOST_BYTES = 3 * 1024 * 1024  # of one clip in the page
MOST_IN_ALL = 20 * 1024 * 1024
MOST_CLIPS = 60


def clip_gallery(run_dir: str, clips: Iterable[Mapping[str, Any]]) -> Html | None:
    """The clips of a run, those in videos/ if none are named; None without one."""
    found = [clip for clip in list(clips) or _clips_in(run_dir) if _kind(str(clip.get("path", "")))]
    room, figures = MOST_IN_ALL, []
    for clip in sorted(found, key=_place)[:MOST_CLIPS]:
        data = _read(run_dir, str(clip["path"]), min(MOST_BYTES, room))
        if data is not None:
            room -= len(data)
            figures.append(_figure(clip, data))
    return element("div", *figures, class_="clips") if figures else None


def _clips_in(run_dir: str) -> list[dict[str, Any]]:
    folder = os.path.join(run_dir, VIDEOS)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [{"path": f"{VIDEOS}/{name}"} for name in names]


def _place(clip: Mapping[str, Any]) -> tuple[str, int, str]:
    """Clips of one lane stand together, in the order of their seeds."""
    seed = clip.get("seed")
    return str(clip.get("lane") or clip.get("operator") or ""), seed if isinstance(seed, int) else 0, str(clip["path"])


def _kind(path: str) -> str:
    return TYPES.get(os.path.splitext(path)[1].lower(), "")


def _read(run_dir: str, path: str, most: int) -> bytes | None:
    """The clip; empty if it is too large for the page, None if it is not a file of the run's folder."""
    whole = os.path.join(os.path.realpath(run_dir), path)
    try:
        if os.path.isabs(path) or os.path.realpath(whole) != whole:  # .. or a link
            return None
        with open(os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(most + 1)
            return data if len(data) <= most else b""
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


def _figure(clip: Mapping[str, Any], data: bytes) -> Html:
    path = str(clip["path"])
    caption = _caption(clip, path)
    if not data:
        link = element("a", os.path.basename(path), href=quote(path))
        return element("figure", element("p", link), element("figcaption", caption, ": too large for this page"))
    source = f"data:{_kind(path)};base64,{base64.b64encode(data).decode()}"
    if _kind(path).startswith("image"):
        shown = element("img", src=source, alt=caption)
    else:
        shown = element("video", src=source, controls=True, loop=True, muted=True, playsinline=True)
    return element("figure", shown, element("figcaption", caption))


def _caption(clip: Mapping[str, Any], path: str) -> str:
    who = clip.get("operator") or clip.get("lane")
    if not who:
        return os.path.splitext(os.path.basename(path))[0]
    return f"{who}, seed {clip['seed']}" if clip.get("seed") is not None else str(who)
