"""Compare a small weighed model with the hand-made order of causes, on withheld worlds.

A world is withheld with its trainer and its environment, or with its whole framework. Fitted are
tier 1 and the dev half of the worlds; `--final` scores the test half, which nothing was chosen by.
Boosted trees are shown where scikit-learn is installed.

    python benchmarks/weighing.py --cache /tmp/weighing
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from weighing_classes import CLASSES
from weighing_lives import lives
from weighing_models import Weighed, softmax, temperature
from weighing_systems import (
    LABELS,
    Answer,
    Fold,
    compare,
    ring_like,
    rings,
    same_framework,
    same_half,
    same_pair,
    withheld,
)
from weighing_table import Row, load

ROOT = Path(__file__).parents[1] / "faults"
DRAWS = 2000
RIDGES = (0.03, 0.1, 0.3, 1.0)


@dataclass(slots=True)
class Score:
    """A mean over runs with its interval by world."""

    values: list[tuple[str, float]] = field(default_factory=list)  # world, value

    def draws(self) -> np.ndarray:
        worlds = sorted({world for world, _ in self.values})
        place = {world: i for i, world in enumerate(worlds)}
        sums, counts = np.zeros(len(worlds)), np.zeros(len(worlds))
        for world, value in self.values:
            sums[place[world]] += value
            counts[place[world]] += 1
        picks = np.random.default_rng(0).integers(0, len(worlds), (DRAWS, len(worlds)))
        return sums[picks].sum(axis=1) / counts[picks].sum(axis=1)

    def __str__(self) -> str:
        if not self.values:
            return "-"
        low, high = np.percentile(self.draws(), (2.5, 97.5))
        return f"{np.mean([v for _, v in self.values]):.2f} [{low:.2f}, {high:.2f}]"


def measures(answers: Sequence[Answer]) -> dict[str, Score]:
    """Return every score of a system."""
    broken = [a for a in answers if a.row.label == "broken"]
    named = [a for a in broken if a.row.decidable]
    weighed = [a for a in named if a.row.mechanism]
    healthy = [a for a in answers if a.row.label == "healthy"]

    def share(group: Sequence[Answer], value: Callable[[Answer], float]) -> Score:
        return Score([(a.row.world, float(value(a))) for a in group])

    return {
        "alarm on a broken run": share(broken, lambda a: a.alarm),
        "healthy runs with an alarm": share(healthy, lambda a: a.alarm),
        "cause first (rule)": share(named, lambda a: a.first(1, by_rule=True)),
        "cause among three (rule)": share(named, lambda a: a.first(3, by_rule=True)),
        "cause first (class)": share(named, lambda a: a.first(1, by_rule=False)),
        "cause among three (class)": share(named, lambda a: a.first(3, by_rule=False)),
        "class first, alarm or not": share(weighed, lambda a: a.forced(1, by_rule=False)),
        "Brier, healthy against broken": share(
            [*broken, *healthy], lambda a: (a.broken - (a.row.label == "broken")) ** 2
        ),
    }


def table(systems: dict[str, Sequence[Answer]]) -> None:
    """Print the scores of each system, and the model's difference from the order."""
    scores = {name: measures(answers) for name, answers in systems.items()}
    print("| |", " | ".join(scores), "| weighed less order | n |")
    print("| --- |" + " --: |" * (len(scores) + 2))
    for key, own in scores["order"].items():
        print(f"| {key} |", " | ".join(str(s[key]) for s in scores.values()), end=" | ")
        print(difference(scores["weighed"][key], own), "|", len(own.values), "|")
    print()


def difference(one: Score, other: Score) -> str:
    """Return the paired difference of two scores of the same runs."""
    if not one.values:
        return "-"
    paired = Score([(w, a - b) for (w, a), (_, b) in zip(one.values, other.values, strict=True)])
    low, high = np.percentile(paired.draws(), (2.5, 97.5))
    return f"{np.mean([v for _, v in paired.values]):+.2f} [{low:+.2f}, {high:+.2f}]"


def rule_by_rule(order: Sequence[Answer], model: Sequence[Answer]) -> None:
    """Print, for each rule that the order puts first, how often either names the cause."""
    pairs = list(zip(order, model, strict=True))
    groups: dict[str, list[tuple[Answer, Answer]]] = defaultdict(list)
    for one, other in pairs:
        if one.row.label == "broken" and one.row.decidable and one.row.mechanism:
            groups[one.rules[0] if one.rules else "(no alarm)"].append((one, other))
    print("| first by the order | runs | order right | weighed right, alarm or not |")
    print("| --- | --: | --: | --: |")
    for rule, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        right = [sum(a.forced(1, by_rule=False) for a in side) for side in zip(*group, strict=True)]
        print(f"| {rule} | {len(group)} | {right[0]} | {right[1]} |")
    print()


def calibrated(answers: Sequence[Answer]) -> None:
    """Print temperature, log loss and reliability of the classes on withheld worlds."""
    known = [
        a for a in answers
        if a.row.label == "broken" and a.row.mechanism in a.names and a.row.decidable
    ]  # fmt: skip
    losses, hits = [], []
    for world in sorted({a.row.world for a in known}):
        inside = [a for a in known if a.row.world == world]
        rest = [a for a in known if a.row.world != world]
        divisor = temperature(
            [a.scores for a in rest], [a.names.index(a.row.mechanism) for a in rest]
        )
        for a in inside:
            p = softmax(a.scores / divisor)
            losses.append(-np.log(p[a.names.index(a.row.mechanism)] + 1e-9))
            hits.append((float(p.max()), a.names[int(p.argmax())] == a.row.mechanism))
    equal = np.log(len(CLASSES))
    print(f"temperature {divisor:.2f}; log loss {np.mean(losses):.2f}, of equal shares {equal:.2f}")
    for i in range(5):
        inside = [right for p, right in hits if min(int(5 * p), 4) == i]
        if inside:
            print(f"  said {i / 5} to {(i + 1) / 5}: right in {sum(inside)} of {len(inside)}")
    print()


def families(rows: Sequence[Row]) -> None:
    """Withhold each class with each trainer: is there an alarm, and is it told from known ones?"""
    print("| class withheld | runs | alarm | the order's alarm | AUC against known classes |")
    print("| --- | --: | --: | --: | --: |")
    groups = ("sb3-ppo", "")  # the last: all other trainers
    every: tuple[list[float], list[float]] = ([], [])
    for name in CLASSES:
        alarms, order, unknown, known = [], [], [], []
        for group in groups:
            inside = [r for r in rows if _in_group(r, group) and r.label in LABELS]
            targets = [r for r in inside if r.mechanism == name and r.label == "broken"]
            if not targets:
                continue
            model = Weighed().fit(
                [r for r in rows if not _in_group(r, group) and r.mechanism != name]
            )
            healthy = [r for r in inside if r.label == "healthy"]
            limit = sorted(model.broken(healthy))[-1 - sum(map(rings, healthy))]
            alarms += list(model.broken(targets) > limit)
            order += [rings(r) for r in targets]
            others = [
                r for r in inside
                if r.label == "broken" and r.decidable and r.mechanism not in {"", name}
            ]  # fmt: skip
            unknown += list(softmax(model.causes(targets)).max(axis=1))
            known += list(softmax(model.causes(others)).max(axis=1))
        every[0].extend(unknown)
        every[1].extend(known)
        print(
            f"| {name} | {len(alarms)} | {np.mean(alarms):.2f} | {np.mean(order):.2f} "
            f"| {_auc(known, unknown):.2f} |"
        )
    print(f"AUC over all classes {_auc(every[1], every[0]):.2f}\n")


def _in_group(row: Row, group: str) -> bool:
    return (row.trainer == "sb3-ppo") == bool(group)


def _auc(high: Sequence[float], low: Sequence[float]) -> float:
    """Return the chance that one of `high` is above one of `low`."""
    one, other = np.array(high)[:, None], np.array(low)[None, :]
    return float(np.mean((one > other) + 0.5 * (one == other)))


def choose_ridge(rows: Sequence[Row]) -> None:
    """Print the log loss of each ridge on tier 1's withheld tasks."""
    tier = [row for row in rows if row.source == "tier-1" and row.label in LABELS]
    for ridge in RIDGES:
        answers = withheld(lambda r=ridge: Weighed(ridge=r), tier, tier, same_pair)
        alarm = np.mean([
            -np.log(max(a.broken if a.row.label == "broken" else 1 - a.broken, 1e-6))
            for a in answers
        ])  # fmt: skip
        known = [
            a
            for a in answers
            if a.row.label == "broken" and a.row.mechanism in a.names and a.row.decidable
        ]
        cause = np.mean([
            -np.log(softmax(a.scores)[a.names.index(a.row.mechanism)] + 1e-9) for a in known
        ])  # fmt: skip
        right = np.mean([a.classes[0] == a.row.mechanism for a in known])
        print(f"ridge {ridge}: log loss {alarm:.3f}, of classes {cause:.3f}, right {right:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder of the computed features")
    parser.add_argument("--ridge", action="store_true", help="compare strengths of the ridge")
    parser.add_argument("--lives", action="store_true", help="calibrate alarms on healthy lives")
    parser.add_argument("--final", action="store_true", help="score the test half of the worlds")
    args = parser.parse_args()
    rows = load(args.cache, "tier-1", ROOT) + load(args.cache, "dev", ROOT)
    if args.ridge:
        return choose_ridge(rows)
    if args.lives:
        every = [*rows, *load(args.cache, "kept", ROOT)]
        return lives([row for row in every if row.label == "healthy"])
    trees = find_spec("sklearn") is not None
    dev, tier = ([row for row in rows if row.source == name] for name in ("dev", "tier-1"))
    if args.final:
        test = load(args.cache, "test", ROOT)
        for title, fold in FOLDS.items():
            systems = compare(rows, [*dev, *test], fold, boosted=trees and fold is same_pair)
            for half in ("dev", "test", ""):
                show(f"worlds, {half or 'both'}, {title}", systems, half)
            carried(systems)
        return None
    for title, fold in FOLDS.items():
        systems = compare(rows, dev, fold, boosted=trees and fold is same_pair)
        show(f"worlds, dev, {title}", systems)
    show("tier 1, withheld likewise", compare(rows, tier, same_pair, boosted=trees))
    show("tier 1, worlds known", compare(rows, tier, same_half, boosted=trees))
    families(rows)
    return None


def show(title: str, systems: dict[str, Sequence[Answer]], half: str = "") -> None:
    """Print every table of the answers on a half of the worlds, or on all."""
    print(f"### {title}\n")
    chosen = {
        name: [answer for answer in answers if half in {"", answer.row.source}]
        for name, answers in systems.items()
    }
    for name, answers in chosen.items():
        if name not in UNRANKED:
            ring_like(answers, chosen["order"])
    table(chosen)
    rule_by_rule(chosen["order"], chosen["weighed"])
    calibrated(chosen["weighed"])


def carried(systems: dict[str, Sequence[Answer]]) -> None:
    """Print the alarms on the test half with the limit that the dev half sets."""
    order, model = systems["order"], systems["weighed"]
    halves = [[a for a in answers if a.row.source == "dev"] for answers in (model, order)]
    limit = ring_like(*halves)
    rings = {
        label: [a.broken > limit for a in model if a.row.source == "test" and a.row.label == label]
        for label in LABELS
    }
    counts = {label: f"{sum(rings[label])} of {len(rings[label])}" for label in LABELS}
    print(f"with the limit of dev, {limit:.3f}, weighed rings in test on {counts}\n")


# Their alarms are their own, not set to ring as often as the order's.
UNRANKED = ("order", "joined", "order, filled", "last third", "base rate")
FOLDS: dict[str, Fold] = {
    "trainer and environment withheld": same_pair,
    "framework and environment withheld": same_framework,
}


if __name__ == "__main__":
    main()
