"""Ranges of a search, as users write them."""

import pytest
from mosaic_sdk.search_space import Dimension, parse_dimension


@pytest.mark.parametrize(
    ("text", "dimension", "ends"),
    [
        ("log:1e-5:1e-2", Dimension("log", 1e-5, 1e-2), [1e-5, 1e-2]),
        ("float:0:0.1", Dimension("float", 0.0, 0.1), [0.0, 0.1]),
        ("float:-1:1:0.5", Dimension("float", -1.0, 1.0, 0.5), [-1.0, 1.0]),
        ("int:16:256:16", Dimension("int", 16.0, 256.0, 16.0), [16, 256]),
        ("logint:1:1e3", Dimension("logint", 1.0, 1000.0), [1, 1000]),
        ("choice:64,128, relu,true", Dimension("choice", choices=(64, 128, "relu", True)), [64, 128, "relu", True]),
    ],
)
def test_a_range_is_read_with_the_values_that_limit_it(text, dimension, ends):
    found = parse_dimension("x", text)

    assert (found, found.ends) == (dimension, ends)
    assert [type(end) for end in found.ends] == [type(end) for end in ends]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1:2", "x: '1:2' is not a valid range. Write log:LOW:HIGH"),
        ("log:1", "x: 'log:1' needs a lowest and a highest value"),
        ("log:1:2:3", "x: 'log:1:2:3' needs a lowest and a highest value"),
        ("float:a:2", "x: 'a' is not a number"),
        ("float:nan:2", "x: 'nan' is not a finite number"),
        ("int:1:2.5", "x: '2.5' is not an integer"),
        ("int:2:2", "the lowest value must be less than the highest"),
        ("log:0:1", "a logarithmic range starts above 0"),
        ("int:1:3:5", "the step must be more than 0 and fit"),
        ("choice:a", "has 1 value; give at least 2"),
        ("choice:1,2,1", "has a value twice"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=r"^x: ") as refusal:
        parse_dimension("x", text)

    assert sentence in str(refusal.value)
