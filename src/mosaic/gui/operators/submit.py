"""Submits an evaluation for a page that follows it by a feed of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient


async def submit(client: "AsyncTrainerClient", document: Mapping[str, Any], is_manual: bool) -> str:
    """The id of the new run."""
    evaluation = await client.evaluate(document, manual=is_manual)
    await evaluation.close()
    return evaluation.run_id
