import struct

import pytest

from mosaic.ingest.names import NameSets
from mosaic.ingest.points import FEW, points_of
from mosaic.ingest.rows import Row

MANY = 3 * FEW


def row(names: NameSets, seq: int, words: tuple[str, ...], *values: float) -> Row:
    return (seq, 1000 + seq, 10 * seq, names.ref(words), struct.pack(f"<{len(values)}d", *values), b"")


@pytest.mark.parametrize("many", [1, FEW, MANY])
def test_every_name_has_its_points_in_order(many):
    names = NameSets([])
    rows = [row(names, seq, ("a", "b"), seq, -seq) for seq in range(many)]

    points = points_of(rows, names)

    seqs = [*range(many)]
    steps, times = [10 * seq for seq in seqs], [1000 + seq for seq in seqs]
    assert points == {"a": (steps, seqs, times), "b": (steps, [-seq for seq in seqs], times)}


@pytest.mark.parametrize("sets", [[("a", "b"), ("c",)], [("a", "b"), ("b",)], [("a", "a"), ("c",)]])
def test_rows_in_any_order_give_the_points_that_they_give_one_by_one(sets):
    names = NameSets([])
    rows = []
    for seq in range(MANY * len(sets)):
        words = sets[seq % len(sets)]
        rows.append(row(names, seq, words, *(seq + place / 10 for place in range(len(words)))))

    points = points_of(rows, names)

    singly: dict[str, tuple[list[int], list[float], list[int]]] = {}
    for one in rows:
        for name, columns in points_of([one], names).items():
            for column, more in zip(singly.setdefault(name, ([], [], [])), columns, strict=True):
                column.extend(more)
    assert points == singly
    assert [*points] == [*singly]


@pytest.mark.parametrize("many", [1, MANY])
@pytest.mark.parametrize("values", [(1.0,), (1.0, 2.0, 3.0)])
def test_a_row_without_a_value_for_each_name_is_refused(many, values):
    names = NameSets([])
    rows = [row(names, seq, ("a", "b"), 1.0, 2.0) for seq in range(many - 1)]
    rows.append(row(names, many, ("a", "b"), *values))

    with pytest.raises(ValueError, match=r"value|argument"):
        points_of(rows, names)
