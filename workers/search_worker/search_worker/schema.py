"""The search worker's parameter schema: its settings, and how a search is resumed."""

from typing import Any

from search_worker.config import SearchConfig

RESUME = {"resume_from": "{checkpoint}"}


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    return schema_of(SearchConfig, title="Search worker", resume=RESUME)
