"""Compare the stratified bootstrap of an interquartile mean with rliable's: time and interval.

10 tasks x 10 seeds x 50,000 resamples. rliable is installed into `.venv-peers/` once; where it
cannot be, it is left out, and said so. CPU time, ours the median of 7. `--oracle FILE` writes what
rliable answers to cases of several sizes: the tests hold ours against it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from diagnosing_peers import HERE, Peer, environment

from rlvitals.comparison import statistics as samples

PEER = Peer("rliable", "peers.ask_rliable", ("rliable==1.2.0", "pandas<3"))
RESAMPLES = 50_000
ROUNDS = 7
SIZES = {"10 seeds, 10 tasks": (10, 10), "12 seeds, 1 task": (12, 1), "15 seeds, 3 tasks": (15, 3)}


def main(argv: Sequence[str] = ()) -> list[str]:
    """Print the table and return its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", type=Path, metavar="FILE", help="write rliable's answers")
    args = parser.parse_args(argv)
    cases = {name: _case(*size) for name, size in SIZES.items()}
    if args.oracle:
        args.oracle.write_text(json.dumps(_ask(cases), indent=1) + "\n")
        return []
    name = next(iter(SIZES))
    scores = [np.array(column) for column in np.array(cases[name]["scores"]).T]
    seconds, interval = _ours(scores)
    rows = [_row("rlvitals", seconds, interval, seconds)]
    peer_answer = _ask({name: cases[name]})
    if peer_answer is None:
        print("rliable cannot be installed: left out")
    else:
        answer = peer_answer["cases"][name]
        rows.append(_row(peer_answer["by"], answer["seconds"], answer["interval"], seconds))
    print(f"{name}, {RESAMPLES:,} resamples, one thread")
    print("| | CPU s | times ours | 95 % interval |", "| --- | --- | --- | --- |", *rows, sep="\n")
    return rows


def _row(name: str, seconds: float, interval: Sequence[float], ours: float) -> str:
    low, high = interval
    return f"| {name} | {seconds:.3f} | {seconds / ours:.0f} | {low:.4f} to {high:.4f} |"


def _case(seeds: int, tasks: int) -> dict[str, object]:
    rng = np.random.default_rng(seeds + tasks)
    scores, other_scores = (rng.lognormal(shift, 0.6, (seeds, tasks)) for shift in (0.2, 0.0))
    levels = np.linspace(0, 5, 11)
    return {
        "scores": scores.round(4).tolist(),
        "other": other_scores.round(4).tolist(),
        "levels": levels.tolist(),
        "resamples": RESAMPLES,
    }


def _ours(scores: Sequence[samples.Array]) -> tuple[float, tuple[float, float]]:
    times = []
    for _ in range(ROUNDS + 1):
        start_time = time.process_time()
        interval = samples.bootstrap(scores, resamples=RESAMPLES)
        times.append(time.process_time() - start_time)
    return statistics.median(times[1:]), (interval.low, interval.high)


def _ask(cases: dict[str, dict[str, object]]) -> dict[str, object] | None:
    python = environment(PEER)
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "asked.json", Path(folder) / "told.json"
        request.write_text(json.dumps(cases))
        module = HERE / "peers" / "ask_rliable.py"
        subprocess.run([python, str(module), str(request), str(answer)], check=True)
        return json.loads(answer.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
