"""A worker that damages files on order: what a worker can do as its user, in its namespaces. A script, not a test.

    insider.py ORDERS RECORD

Prints telemetry like the toy worker (RECORD is its private record) and reads one JSON line per order from the FIFO
ORDERS: {"kind": …, "path": …, "donor": …, "answer": FILE} or {"finish": true}.
"""

import json
import os
import sys
import threading
from pathlib import Path

# MOSAIC runs a script with its folder on sys.path, so the damage is found beside it.
from damage import inflict
from mosaic_sdk.cli import conduct
from toy_worker.config import ToyConfig
from toy_worker.telemetry import Telemetry

LINES_PER_S = 10


class Insider:
    def __init__(self, orders: str, telemetry: Telemetry) -> None:
        self._orders = orders
        self._telemetry = telemetry
        self._is_told_to_finish = threading.Event()

    def run(self) -> dict[str, int]:
        threading.Thread(target=self._listen, daemon=True).start()
        step = 0
        while not self._is_told_to_finish.wait(1 / LINES_PER_S):
            self._telemetry.step(step, float(step))
            if step % 10 == 0:
                self._telemetry.metric("insider/step", float(step), step)
            step += 1
        return {"total_steps": step}

    def _listen(self) -> None:
        while not self._is_told_to_finish.is_set():
            with open(self._orders) as orders:
                for line in orders:
                    self._obey(json.loads(line))

    def _obey(self, order: dict[str, str]) -> None:
        if order.get("finish"):
            self._is_told_to_finish.set()
            return
        result = inflict(order["kind"], Path(order["path"]), Path(order["donor"]))
        answer = Path(order["answer"])
        part = answer.with_suffix(".part")
        part.write_text(json.dumps(result))
        part.rename(answer)


def main() -> int:
    orders, record = sys.argv[1:]
    # Where it was submitted from: the run's own folder may become unreadable.
    os.chdir("/")
    telemetry = Telemetry(ToyConfig(run_id=os.environ["MOSAIC_RUN_ID"], record=record, record_sync=True))
    code = conduct(Insider(orders, telemetry).run, telemetry)
    telemetry.record.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
