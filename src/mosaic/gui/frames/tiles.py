"""Which pictures a run has besides its own: the lanes of an evaluation, the environments of a grid."""

from typing import TYPE_CHECKING, Any

from mosaic_sdk.fastlane.control import create_fastlane_name, lanes
from mosaic_sdk.fastlane.grid import columns_of

if TYPE_CHECKING:
    from mosaic.client import Run


def tiles_of(run_id: str) -> list[int]:
    """The numbers of the run's tiles in this machine's shared memory, from 1 on."""
    start = f"{create_fastlane_name(run_id)}.t"
    ends = [name.removeprefix(start) for name in lanes(run_id) if name.startswith(start)]
    return sorted(int(end) for end in ends if end.isdigit())


def names_of(tiles: list[int], run: "Run | None") -> list[str]:
    """The choices: the whole picture, then each part of it. Lanes count from 0, as in `mosaic eval`."""
    if not tiles:
        return []
    if run is not None and run.area == "evals":
        return ["All lanes", *(f"Lane {tile - 1}" for tile in tiles)]
    return ["All environments", "Environment 0", *(f"Environment {tile}" for tile in tiles)]


def first_cell(pixels: Any, count: int) -> Any:
    """The part of a grid of `count` pictures that shows the first: the worker publishes no separate picture of it."""
    columns = columns_of(count)
    rows = -(-count // columns)
    return pixels[: pixels.shape[0] // rows, : pixels.shape[1] // columns]
