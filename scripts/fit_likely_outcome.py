"""Fit the model of `rlvitals.rules.likely_outcome` to published curves, and test it on others.

MIRRORS holds the repositories of the lists in `faults/real`, as `scripts/score_real_runs.py` reads
them. Only curves that may be looked at are used: `classic-3.csv`, `classic-4.csv` and the even
halves of `classic-2.csv` and `classic-5.csv`. Their odd halves choose nothing and score the result.

    scripts/fit_likely_outcome.py MIRRORS          # the table, and its score by cross-validation

Each curve is judged by a model that saw no curve of its repository. Printed are the share of right
verdicts of the rules alone and with the model, as the verdict combines them, and the constants of
the module.
"""

import argparse
import csv
import multiprocessing
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from score_real_runs import ACCEPTED, GOOD, HEALTHY, LISTS, contents, half, main_run

import rlvitals
from rlvitals.diagnosis.verdict import proven_verdict
from rlvitals.rules import likely_outcome as model
from rlvitals.rules.answers import prefer_evaluation
from rlvitals.rules.standing import outcome
from rlvitals.signals.curve_shape import SHAPE, curve_shape

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from weighing_models import minimise, softmax

Array = NDArray[np.float64]
WHOLE_LISTS = ("classic-3", "classic-4")
HALF_LISTS = ("classic-2", "classic-5")
OUTCOMES = (  # labels of "improved", "flat" and "lost"
    ("learning", "converged", "flat-solved"),
    ("flat-poor",),
    ("lost-from-best", "below-start", "unstable"),
)
WORDS = ("learning", "stalled", "collapsed")
RIDGE = 0.003  # of 0.0001 to 0.03 the score changes by less than 0.01
FOLDS = 12


class Curve(NamedTuple):
    """One labelled curve and what the rules alone say of it."""

    row: Mapping[str, str]
    shape: Array
    label: int  # index in OUTCOMES
    verdict: str


def rows() -> list[dict[str, str]]:
    """Return the labelled logs that may be looked at."""
    result = []
    for name in (*WHOLE_LISTS, *HALF_LISTS):
        with (LISTS / f"{name}.csv").open(newline="") as lines:
            result += [
                row
                for row in csv.DictReader(lines)
                if name in WHOLE_LISTS or half(row["repository"], ("even", "odd")) == "even"
            ]
    return result


def read(job: tuple[Path, Mapping[str, str]]) -> Curve | None:
    """Return a log's curve; None where there is none of the three outcomes, or too few points."""
    mirrors, row = job
    labels = [k for k, names in enumerate(OUTCOMES) if row["outcome"] in names]
    if not labels:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        try:
            trace = main_run(contents(mirrors, row, Path(scratch)))
            diagnosis = rlvitals.diagnose(trace, live=False)
        except (rlvitals.VitalsError, FileNotFoundError, ValueError):
            return None
    trace = diagnosis.trace
    picked = outcome(prefer_evaluation(trace))
    shape = None if picked is None else curve_shape(picked[1].values)
    if shape is None or picked is None or picked[0] not in model.JUDGED_METRICS:
        return None
    return Curve(row, shape, labels[0], proven_verdict(trace, diagnosis.findings).word.value)


def fit(shapes: Array, labels: NDArray[np.int64]) -> tuple[Array, Array, Array, Array]:
    """Return means, standard deviations, coefficients [numbers, 3] and intercepts [3]."""
    means, sds = shapes.mean(axis=0), shapes.std(axis=0)
    weight = np.full(len(labels), 1 / len(labels))
    free = np.full((shapes.shape[1], len(OUTCOMES)), np.inf)
    targets = np.eye(len(OUTCOMES))[labels]
    return means, sds, *minimise((shapes - means) / sds, targets, weight, (-free, free), RIDGE)


def validate(curves: Sequence[Curve], shapes: Array, labels: NDArray[np.int64]) -> Array:
    """Return probabilities [curves, 3], each by a model without the curve's repository."""
    repositories = sorted({curve.row["repository"] for curve in curves})
    order = np.random.default_rng(0).permutation(len(repositories))
    fold_of = {name: int(place) % FOLDS for name, place in zip(repositories, order, strict=True)}
    folds = np.array([fold_of[curve.row["repository"]] for curve in curves])
    result = np.zeros((len(curves), len(OUTCOMES)))
    for fold in range(FOLDS):
        means, sds, coefficients, intercepts = fit(shapes[folds != fold], labels[folds != fold])
        scores = (shapes[folds == fold] - means) / sds @ coefficients + intercepts
        result[folds == fold] = softmax(scores)
    return result


def combine(curve: Curve, p: Array) -> str:
    """Return the verdict of the rules with the model's, as `diagnosis.verdict` combines them.

    Without what a task, a window or a dip excuses: that leaves a few verdicts as they were.
    """
    if p[2] >= model.MIN_LOST and curve.verdict in {"unknown", "stalled"}:
        return "collapsed"
    is_flat = curve.verdict == "unknown" and p[0] <= model.MAX_IMPROVED
    return "stalled" if is_flat else curve.verdict


def describe(name: str, curves: Sequence[Curve], words: Sequence[str]) -> str:
    """Write the shares of right verdicts of all curves and of bad ones, and the grave mistakes."""
    right = [word in ACCEPTED[c.row["outcome"]] for c, word in zip(curves, words, strict=True)]
    bad = [c.row["outcome"] not in HEALTHY for c in curves]
    of_bad = [hit for hit, is_bad in zip(right, bad, strict=True) if is_bad]
    good_words = [word in GOOD for word in words]
    praised = sum(is_bad and good for is_bad, good in zip(bad, good_words, strict=True))
    blamed = sum(
        not is_bad and not good and word != "unknown"
        for is_bad, good, word in zip(bad, good_words, words, strict=True)
    )
    return (
        f"{name:16} right {np.mean(right):.3f}, of bad runs {np.mean(of_bad):.3f}; "
        f"bad called good {praised} of {sum(bad)}, healthy called bad {blamed} of "
        f"{len(bad) - sum(bad)}; answered {1 - words.count('unknown') / len(words):.3f}"
    )


def main() -> int:
    """Print the scores by cross-validation and the constants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    with multiprocessing.Pool(args.jobs, maxtasksperchild=50) as pool:
        read_curves = pool.map(read, [(args.mirrors, row) for row in rows()], chunksize=4)
    curves = [curve for curve in read_curves if curve is not None]
    shapes = np.array([curve.shape for curve in curves])
    labels = np.array([curve.label for curve in curves])
    probabilities = validate(curves, shapes, labels)
    print(describe("rules", curves, [curve.verdict for curve in curves]))
    print(describe("model", curves, [WORDS[int(p.argmax())] for p in probabilities]))
    combined = [combine(c, p) for c, p in zip(curves, probabilities, strict=True)]
    print(describe("rules and model", curves, combined))
    print("said; right; curves")
    for low, high in ((0.3, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)):
        said = (probabilities.max(axis=1) >= low) & (probabilities.max(axis=1) < high)
        share = (probabilities.argmax(axis=1) == labels)[said].mean() if said.any() else np.nan
        print(f"  {low:.1f} to {min(high, 1):.1f}  {share:.2f}  {said.sum()}")
    means, sds, coefficients, intercepts = fit(shapes, labels)
    print(f"FITTED_CURVES = {len(curves)}")
    print(f"FITTED_REPOSITORIES = {len({curve.row['repository'] for curve in curves})}")
    print(f"INTERCEPTS = ({', '.join(f'{value:.3f}' for value in intercepts)})")
    print("WEIGHTS = {")
    for name, mean, sd, row in zip(SHAPE, means, sds, coefficients, strict=True):
        values = ", ".join(f"{value:.3f}" for value in (mean, sd, *row))
        print(f'    "{name}": ({values}),')
    print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
