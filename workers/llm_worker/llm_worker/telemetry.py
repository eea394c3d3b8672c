"""The record of one decision: a row of the ledger, and in short the answer's `report`."""

from mosaic_sdk.llm.record import Record, report_of

__all__ = ["Record", "report_of"]
