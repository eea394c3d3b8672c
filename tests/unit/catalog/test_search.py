"""The trainer config of a search's driver."""

import pytest

from mosaic.catalog.request import RunOptions
from mosaic.catalog.search import Search, search_config
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot


def test_trials_that_the_driver_replaces_are_not_continued_as_well(tmp_path):
    options = RunOptions(on="slurm:spot", requeue_as_resume=2)
    search = Search("lr", "toy", {}, {"steps": "int:1:9"}, of_trials=options)

    with pytest.raises(BadConfig, match=r"--requeue-as-resume.*Leave it out"):
        search_config(search, StateRoot(tmp_path))
