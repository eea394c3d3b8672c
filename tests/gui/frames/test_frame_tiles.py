import numpy as np

from mosaic.gui.frames.tiles import first_cell, names_of


def test_the_first_cell_of_a_grid_is_its_first_environment():
    picture = np.arange(4 * 6).reshape(4, 6, 1)

    assert first_cell(picture, 4).shape == (2, 3, 1)
    assert first_cell(picture, 2).shape == (4, 3, 1)


def test_no_choice_without_tiles():
    assert names_of([], None) == []
    assert names_of([1, 2], None) == ["All environments", "Environment 0", "Environment 1", "Environment 2"]
