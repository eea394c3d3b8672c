import pytest

from mosaic.submit.header import total_timesteps


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("#!/bin/sh\n# @description: two phases\n# @total_timesteps: 50000\n", 50_000),
        ("#!/bin/sh\n#@total_timesteps 1_000,000\n", 1_000_000),
        ("#!/bin/sh\n# @total_timesteps: many\n", None),
        ("#!/bin/sh\n# @total_timesteps: 0\n", None),
        ("#!/bin/sh\necho @total_timesteps: 7\n", None),
        (f"# @total_timesteps: {'9' * 40}\n", None),
        ("", None),
    ],
)
def test_the_header_of_a_script_has_its_total_steps(tmp_path, text, total):
    script = tmp_path / "train.sh"
    script.write_text(text)

    assert total_timesteps(str(script)) == total


def test_a_missing_script_has_no_total_steps(tmp_path):
    assert total_timesteps(str(tmp_path / "gone.sh")) is None
