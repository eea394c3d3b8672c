import sys

from mosaic.gui.hub.outbox import Outbox


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_calls_are_made_in_order():
    outbox, made = Outbox(), []
    for i in range(5):
        outbox.put(lambda i=i: made.append(i))

    outbox.deliver()

    assert made == [0, 1, 2, 3, 4]


def test_a_storm_of_calls_is_spread_over_ticks():
    clock, made = Clock(), []
    outbox = Outbox(budget_s=0.015, clock=clock)

    def slow(i):
        clock.now += 0.006
        made.append(i)

    for i in range(7):
        outbox.put(lambda i=i: slow(i))
    sizes = []
    while len(outbox):
        outbox.deliver()
        sizes.append(len(made))

    assert sizes == [3, 6, 7]


def test_a_call_that_puts_another_one_does_not_prolong_the_tick():
    outbox = Outbox()

    def again():
        outbox.put(again)

    outbox.put(again)
    outbox.deliver()

    assert len(outbox) == 1


def test_a_call_that_fails_is_reported_and_the_next_ones_are_made(monkeypatch):
    reported, made = [], []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: reported.append(str(error)))
    outbox = Outbox()
    outbox.put(lambda: [].pop())
    outbox.put(lambda: made.append(1))

    outbox.deliver()

    assert (reported, made) == (["pop from empty list"], [1])
