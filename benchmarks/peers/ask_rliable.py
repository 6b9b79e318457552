"""Ask rliable about scores: `ask_rliable.py IN OUT`, both JSON; in rliable's own environment.

IN holds cases by name, each with `scores` and `other` [runs][tasks], `levels` and `resamples`.
OUT holds what was asked beside what rliable answers, and the CPU seconds of the IQM's interval.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rliable import library, metrics


def answer(case: dict[str, Any]) -> dict[str, Any]:
    scores, other_scores = np.array(case["scores"]), np.array(case["other"])
    resamples, state = case["resamples"], np.random.RandomState(0)
    start_time = time.process_time()
    points, intervals = library.get_interval_estimates(
        {"it": scores},
        lambda held: np.array([metrics.aggregate_iqm(held)]),
        reps=resamples,
        random_state=state,
    )
    seconds = time.process_time() - start_time
    profiles, _ = library.create_performance_profile(
        {"it": scores}, np.array(case["levels"]), reps=2
    )
    pairs, spans = library.get_interval_estimates(
        {"it": (scores, other_scores)},
        lambda a, b: np.array([metrics.probability_of_improvement(a, b)]),
        reps=2000,
        random_state=state,
    )
    return {
        **case,
        "iqm": float(points["it"][0]),
        "interval": intervals["it"][:, 0].tolist(),
        "seconds": seconds,
        "mean": float(metrics.aggregate_mean(scores)),
        "profile": profiles["it"].tolist(),
        "improvement": float(pairs["it"][0]),
        "improvement_interval": spans["it"][:, 0].tolist(),
    }


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text())
    told = {name: answer(case) for name, case in asked.items()}
    Path(sys.argv[2]).write_text(
        json.dumps({"by": f"rliable {version('rliable')}", "cases": told}, indent=1) + "\n"
    )
