import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

from mosaic.catalog.environment import own_environment


def test_threads_that_locate_packages_do_not_invalidate_the_import_caches_at_the_same_time(monkeypatch):
    inside, most, lock, meeting = 0, 0, threading.Lock(), threading.Event()

    def invalidate():
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        meeting.wait(0.05)  # time for another thread to interfere, if it can
        with lock:
            inside -= 1

    monkeypatch.setattr(importlib, "invalidate_caches", invalidate)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(own_environment().locate, ["mosaic"] * 4))

    assert most == 1
    assert found[0].name == "mosaic"
