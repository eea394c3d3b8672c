"""Paths of the daemon's machine in what a node is sent, as placeholders that the node replaces by its own paths."""

import json
import re
from collections.abc import Mapping

ROOT = "@MOSAIC_NODE_ROOT@"  # the node's state folder
CODE = "@MOSAIC_NODE_CODE@"  # the folder with the packages mosaic and mosaic_sdk
TICKET = "MOSAIC_NODE"  # the variable with what a job needs to take its launch, as JSON


def replace_paths(text: str, moves: Mapping[str, str]) -> str:
    """JSON in which every path that is one of `moves`, or below it, leads to the new place. The longest one counts."""
    spelled = {_spelled(before): _spelled(after) for before, after in moves.items()}
    ordered = sorted(spelled, key=len, reverse=True)
    if not ordered:
        return text
    pattern = "|".join(re.escape(path) for path in ordered)
    # Where a name goes on it is another path: /home/me/mosaic-old.
    return re.sub(rf'({pattern})(?=[/":\\]|$)', lambda match: spelled[match[1]], text)


def settle(text: str, root: str, code: str) -> str:
    """On the node: the text with its own paths."""
    return text.replace(ROOT, _spelled(root)).replace(CODE, _spelled(code))


def _spelled(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)[1:-1]
