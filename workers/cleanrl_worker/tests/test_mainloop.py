"""The main loop, observed through its range()."""

import ast

import pytest
from cleanrl_worker.mainloop import MainLoop, Stopped

BY_UPDATES = """
numbers = [n for n in range(3)]
global_step = 0
for update in range(1, 6):
    for step in range(0, 10):
        global_step += 1
    log.append(("turn", update, global_step))
"""
BY_STEPS = """
for global_step in range(250):
    log.append(global_step)
"""


def run(source, *, save_every=0, begin=lambda: None, during=lambda loop: None):
    log, saves, steps = [], [], []
    script = {"log": log}
    node = next(part for part in ast.parse(source).body if isinstance(part, ast.For))
    loop = MainLoop(
        node,
        script,
        begin=begin,
        save=lambda turn, step: saves.append((turn, step)),
        report=steps.append,
        save_every=save_every,
    )
    during(loop)
    stopped = False
    try:
        exec(compile(source, "script.py", "exec"), script)
    except Stopped:
        stopped = True
    return loop, log, saves, steps, stopped, script


def test_the_script_counts_as_without_the_launcher():
    loop, log, saves, steps, _, script = run(BY_UPDATES)

    assert log == [("turn", n, n * 10) for n in range(1, 6)]
    assert script["numbers"] == [0, 1, 2]
    assert "range" not in script
    assert saves == [(6, 50)]
    assert steps == [0, 10, 20, 30, 40, 50]
    assert loop.is_over


@pytest.mark.parametrize(
    ("source", "every", "expected"),
    [
        (BY_UPDATES, 20, [(3, 20), (5, 40), (6, 50)]),
        (BY_UPDATES, 15, [(3, 20), (4, 30), (6, 50)]),
        (BY_STEPS, 100, [(100, 100), (200, 200), (250, 250)]),
        (BY_STEPS, 7, [(n, n) for n in range(7, 250, 7)] + [(250, 250)]),
    ],
)
def test_it_is_saved_at_the_first_safe_point_after_each_interval(source, every, expected):
    assert run(source, save_every=every)[2] == expected


def test_it_begins_at_the_given_turn():
    _, log, saves, _, _, _ = run(BY_STEPS, begin=lambda: 240)

    assert log == list(range(240, 250))
    assert saves == [(250, 250)]


def test_between_two_safe_points_the_current_step_is_known():
    source = BY_STEPS.replace("log.append(global_step)", "log.append(now())")

    def during(loop):
        loop._script["now"] = lambda: loop.now

    log = run(source, during=during)[1]

    assert log == [(step, step) for step in range(250)]


def test_a_stop_saves_and_ends_at_the_next_turn():
    source = BY_STEPS.replace("log.append(global_step)", "log.append(global_step)\n    if global_step == 33: stop()")

    def during(loop):
        loop._script["stop"] = loop.stop

    _, log, saves, _, stopped, _ = run(source, during=during)

    assert stopped
    assert log[-1] == 33
    assert saves == [(34, 34)]
