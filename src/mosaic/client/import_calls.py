"""The call that imports a run of another program."""

from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.client.caller import Caller

if TYPE_CHECKING:
    from mosaic.client.importing import ImportStream


class ImportCalls(Caller):
    def import_run(self, format: str, path: str | Path) -> "ImportStream":
        """A stream that imports one run of another program; `path` and `format` are its identity."""
        from mosaic.client.importing import ImportStream

        return ImportStream(self._stub.ImportRun(metadata=self._metadata), format, str(path), self.target)
