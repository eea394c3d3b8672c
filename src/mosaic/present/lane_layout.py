"""How many lanes stand side by side."""

NARROWEST_PX = 280


def columns_for(lanes: int, width: int) -> int:
    """As many as have room, in rows of about the same length: four lanes as 2 + 2, not as 3 + 1."""
    fit = max(1, min(lanes, width // NARROWEST_PX))
    rows = -(-lanes // fit)
    # Two rows of two are larger than one row of four, unless the screen is very wide.
    if rows == 1 and lanes >= 4 and width // lanes < 2 * NARROWEST_PX:
        rows = 2
    return max(1, -(-lanes // rows)) if lanes else 1
