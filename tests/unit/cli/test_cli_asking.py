"""The words of `mosaic runs`, `mosaic tag` and their tables."""

import argparse
import re
from dataclasses import replace

import pytest

from mosaic.cli.asked_runs import columns_csv, columns_table, parse_columns
from mosaic.cli.main import build_parser


def parse(*words):
    return build_parser().parse_args(list(words))


def test_a_descending_order_is_not_taken_for_an_option():
    assert parse("runs", "--sort", "-return").sort == "-return"
    assert parse("runs", "--sort", "-return,seed", "--all").all
    assert parse("runs", "--sort=seed").sort == "seed"


def test_an_option_in_the_place_of_an_order_stays_an_option(capsys):
    with pytest.raises(SystemExit):
        parse("runs", "--sort", "--all")

    assert "--sort: expected one argument" in capsys.readouterr().err


def test_tags_to_add_and_to_remove_are_told_from_runs_and_options():
    args = parse("tag", "last", "+a", "-b", "run-2", "--json", "-v", "--", "-v")

    assert (args.runs, args.program, args.json, args.verbose) == (["last", "run-2"], ["+a", "-b", "-v"], True, True)


def test_columns_are_names_with_commas():
    assert parse_columns('a, "b,c" ,a') == ("a", "b,c")
    with pytest.raises(argparse.ArgumentTypeError, match="not a list of names"):
        parse_columns("a,,b")


def test_cells_are_short_in_a_table_and_exact_in_csv(make_run):
    values = {"lr": 0.00012345678, "seed": 123456, "age": 7260.0, "progress": 50.0, "tags": ["a", "b"], "x": None}
    run = replace(make_run(), chosen={**values, "note": "bad \x1b[31mseed\nhere", "layers": [64, 64]})
    names = [*values, "note", "layers"]

    table = columns_table([run], names, ["01J"]).splitlines()[1]
    sheet = columns_csv([run], names)

    cells = ["01J", "0.0001235", "123456", "2h01m", "50%", "a b", "-", "bad seed here", "[64,64]"]
    assert re.split(r"\s{2,}", table) == cells
    assert sheet.splitlines()[1] == f'{run.run_id},0.00012345678,123456,7260.0,50.0,a b,,"bad \x1b[31mseed'
