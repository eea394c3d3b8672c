"""Prints what rliable computes for a few scores, with the indexes that it drew, as JSON: rliable.json is its output.

make .venv-rliable/.ready && .venv-rliable/bin/python tests/unit/stats/rliable_values.py > tests/unit/stats/rliable.json
"""

import json
from importlib import metadata

import numpy as np
from rliable import library, metrics

REPS = 200
AVERAGES = {
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "iqm": metrics.aggregate_iqm,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


class Recorder:
    """np.random.choice, which rliable draws with, and what it has returned."""

    def __init__(self):
        self.drawn = []
        self._choice = np.random.choice

    def __call__(self, *args, **kwargs):
        indexes = self._choice(*args, **kwargs)
        self.drawn.append(np.asarray(indexes))
        return indexes

    def take(self):
        drawn, self.drawn = self.drawn, []
        return drawn


def averages_of(scores, recorder):
    found = {}
    for name, average in AVERAGES.items():
        point, interval = library.get_interval_estimates(
            {"a": scores}, lambda x, f=average: np.array([f(x)]), reps=REPS
        )
        found[name] = {
            "value": float(point["a"][0]),
            "interval": interval["a"].ravel().tolist(),
            "draws": [draw.tolist() for draw in recorder.take()[-REPS:]],
        }
    return found


def profile_of(scores, recorder):
    thresholds = np.linspace(scores.min(), scores.max(), 9)
    share, band = library.create_performance_profile({"a": scores}, thresholds, reps=REPS)
    draws = [draw.tolist() for draw in recorder.take()[-REPS:]]
    return {"thresholds": thresholds.tolist(), "share": share["a"].tolist(), "band": band["a"].tolist(), "draws": draws}


def improvement_of(left, right, recorder):
    point, interval = library.get_interval_estimates(
        {"a,b": (left, right)}, metrics.probability_of_improvement, reps=REPS
    )
    drawn = recorder.take()
    pairs = [(drawn[i].tolist(), drawn[i + 1].tolist()) for i in range(len(drawn) - 2 * REPS, len(drawn), 2)]
    return {"value": float(point["a,b"]), "interval": interval["a,b"].ravel().tolist(), "draws": pairs}


def main():
    generator = np.random.default_rng(7)
    many = generator.normal([0.4, 0.9, 1.3], 0.4, (6, 3)).round(2)
    others = generator.normal([0.5, 0.8, 0.9], 0.4, (5, 3)).round(2)
    one = generator.normal(100, 30, (7, 1)).round()
    one[2] = one[5]  # a tie
    two = generator.normal(80, 30, (4, 1)).round()
    two[0] = one[2]
    np.random.seed(0)
    np.random.choice = recorder = Recorder()
    cases = []
    for left, right in ((many, others), (one, two)):
        cases.append(
            {
                "left": left.tolist(),
                "right": right.tolist(),
                "averages": averages_of(left, recorder),
                "profile": profile_of(left, recorder),
                "improvement": improvement_of(left, right, recorder),
            }
        )
    print(json.dumps({"rliable": metadata.version("rliable"), "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
