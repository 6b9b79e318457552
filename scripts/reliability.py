"""Measure whether the probabilities of `rlvitals.rules.likely_outcome` are reliable.

MIRRORS holds the repositories of the lists in `faults/real`, as `scripts/score_real_runs.py` reads
them. The curves of the lists 7 to 12 are taken, of both halves: the model was fitted to earlier
ones. No single run is shown. Of a curve the outcome that the model holds for the most probable is
compared with its label, in five bins of equally many curves.

    scripts/reliability.py MIRRORS            # the bins, the Brier score and its skill
    scripts/reliability.py MIRRORS --write    # and faults/real/reliability.json with its picture
"""

import argparse
import json
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from fit_likely_outcome import OUTCOMES, read
from matplotlib.figure import Figure
from score_real_runs import HALVES, LISTS, interval, rows_of

from rlvitals.rules.likely_outcome import probabilities_of

ROOT = Path(__file__).resolve().parent.parent
RESULT = LISTS / "reliability.json"
PICTURE = ROOT / "docs" / "pictures" / "reliability.svg"
LATER_LISTS = tuple(f"classic-{number}" for number in (7, 8, 9, 10, 11, 12))
BINS = 5


def labelled_rows() -> list[dict[str, str]]:
    """Return the rows of the lists that are later than those of the fit, of both halves."""
    lists = (pair for half in HALVES for pair in rows_of(half))
    return [row for name, rows in lists if name in LATER_LISTS for row in rows]


def measure(probabilities: np.ndarray, labels: np.ndarray, groups: Sequence[str]) -> dict:
    """Return the bins and scores of probabilities [n, 3] of labels [n], with their repositories."""
    said, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = []
    for rows in np.array_split(np.argsort(said, kind="stable"), BINS):
        by_repository = defaultdict(list)
        for row in rows:
            by_repository[groups[row]].append(bool(is_right[row]))
        bounds = interval(list(by_repository.values()))
        numbers = (said[rows].mean(), is_right[rows].mean(), bounds.low, bounds.high)
        names = ("said", "right", "low", "high")
        shares = {name: round(float(n), 3) for name, n in zip(names, numbers, strict=True)}
        bins.append({"curves": len(rows), **shares})
    targets = np.eye(probabilities.shape[1])[labels]
    brier = float(((probabilities - targets) ** 2).sum(axis=1).mean())
    base = float(((targets.mean(axis=0) - targets) ** 2).sum(axis=1).mean())
    return {
        "curves": len(labels), "repositories": len(set(groups)), "bins": bins,
        "brier": round(brier, 3), "base": round(base, 3), "skill": round(1 - brier / base, 3),
    }  # fmt: skip


def draw(result: Mapping, path: Path) -> None:
    """Draw the share of right answers over what was said, with intervals."""
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot((0.3, 1), (0.3, 1), color="0.6", linewidth=1, linestyle="--")
    x = np.array([each["said"] for each in result["bins"]])
    y, low, high = (np.array([b[key] for b in result["bins"]]) for key in ("right", "low", "high"))
    axes.errorbar(x, y, (y - low, high - y), fmt="o", color="#2166ac", capsize=3)
    axes.set(xlim=(0.3, 1.02), ylim=(0.1, 1.05), xlabel="probability of the likeliest outcome",
             ylabel="share of curves that had it")  # fmt: skip
    axes.set_title(f"{result['curves']} published curves, five bins, 95 %", fontsize=10)
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Print the bins and the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="keep the result, and draw it")
    args = parser.parse_args()
    jobs = [(args.mirrors, row) for row in labelled_rows()]
    with multiprocessing.Pool(args.jobs, maxtasksperchild=50) as pool:
        curves = [curve for curve in pool.map(read, jobs, chunksize=4) if curve is not None]
    probabilities = np.array([probabilities_of(curve.shape) for curve in curves])
    labels = np.array([curve.label for curve in curves])
    result = measure(probabilities, labels, [curve.row["repository"] for curve in curves])
    for each in result["bins"]:
        print("{said:.2f} said, {right:.2f} right [{low:.2f}, {high:.2f}], {curves}".format(**each))
    print("Brier {brier}, of base rates {base}, skill {skill}".format(**result))
    print("labels", {" ".join(o): int((labels == k).sum()) for k, o in enumerate(OUTCOMES)})
    if args.write:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        draw(result, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
