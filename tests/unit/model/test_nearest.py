"""Suggestions for a name that does not exist."""

from mosaic.model.nearest import nearest


def test_names_of_another_type_are_no_suggestions():
    assert nearest("run", [b"run", 7, "runs"]) == ["runs"]
