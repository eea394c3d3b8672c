from mosaic.daemon.sessions import MOST_SESSIONS, Session, Sessions


def test_sessions_of_finished_runs_do_not_accumulate():
    sessions = Sessions(root=None, registry=None, tokens=None)

    for number in range(3 * MOST_SESSIONS):
        sessions._remember(str(number), Session("", None))

    assert list(sessions._sessions) == [str(number) for number in range(2 * MOST_SESSIONS, 3 * MOST_SESSIONS)]
