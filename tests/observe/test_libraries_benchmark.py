"""benchmarks/libraries.py: it sees what an observer costs, and not how a process happened to be placed."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import libraries


def noisy_lives(cost, count=10, pairs=10):
    """A machine on which a process is up to 10 % slower than another, and some windows 50 % slower than others."""
    dice = random.Random(3)
    for _ in range(count):
        placement = dice.uniform(1.0, 1.1)
        yield [
            tuple(placement * share * dice.gauss(1, 0.02) * dice.choice((1, 1, 1, 1.5)) for share in (1, 1 + cost))
            for _ in range(pairs)
        ]


@pytest.mark.parametrize(("cost", "least", "most"), [(0.0, 0.97, 1.0), (0.03, 0.94, 0.971), (0.1, 0.87, 0.91)])
def test_the_bound_is_close_below_the_true_ratio(cost, least, most):
    bound = libraries.lower_bound(libraries.ratios(list(noisy_lives(cost))))

    assert least < bound <= most


def test_windows_of_one_process_are_not_independent():
    alike = [[0.90 + n / 50] * 20 for n in range(6)]  # each process says something else, and each very surely

    assert libraries.lower_bound(alike) < 0.93


LOOP = """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
def run():
    for n in range(3000):
        if any(env.step(n % 2)[2:4]):
            env.reset()
    return 3000
"""


def test_a_planted_slowdown_of_real_processes_shows(python):
    plain, planted = (
        libraries.ratios(libraries.compare(LOOP, python, lives=1, pairs=9, plant=plant))[0] for plant in (0, 0.5)
    )

    assert libraries.p50(planted) < 0.75 < libraries.p50(plain)


def test_a_script_that_is_not_observed_is_refused(python):
    with pytest.raises(RuntimeError, match="Nothing in this script was observed"):
        libraries.compare("def run(): return 1", python, lives=1, pairs=1)


def test_instructions_are_those_of_the_windows_that_one_process_has_more():
    fewer = libraries.read_counts("==7== \nsteps 100\n==7== I   refs:      1,000,500\n")
    more = libraries.read_counts("steps 300\n==8== I refs: 1,001,500\n")

    assert (fewer, libraries.per_step(fewer, more)) == ((1_000_500, 100), 5.0)
    with pytest.raises(RuntimeError, match="no such program"):
        libraries.read_counts("valgrind: no such program\n")
