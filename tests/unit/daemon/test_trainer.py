from dataclasses import fields

from mosaic.daemon.trainer import MOST_SESSIONS, Session, Trainer


def test_sessions_of_runs_that_are_over_do_not_pile_up():
    trainer = Trainer(**{field.name: None for field in fields(Trainer) if field.name not in ("sessions", "listening")})

    for number in range(3 * MOST_SESSIONS):
        trainer._remember(str(number), Session("", None))

    assert list(trainer.sessions) == [str(number) for number in range(2 * MOST_SESSIONS, 3 * MOST_SESSIONS)]
