"""Compare a small weighed model with the hand-made order of causes, on withheld worlds.

A world is withheld with its trainer and its environment, or with its whole framework. Fitted are
tier 1 and the dev half of the worlds; `--final` scores the test half, which nothing was chosen by.
Boosted trees are shown where scikit-learn is installed.

    python benchmarks/weighing.py --cache /tmp/weighing
"""

import argparse
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from weighing_features import CLASS_BY_RULE, CLASSES, RULES
from weighing_lives import lives
from weighing_models import Boosted, Weighed, softmax, temperature, usual_rules
from weighing_table import Row, load

ROOT = Path(__file__).parents[1] / "faults"
DRAWS = 2000
RIDGES = (0.03, 0.1, 0.3, 1.0)
Model = Weighed | Boosted


@dataclass(slots=True)
class Answer:
    """What one system says of a run that it has not seen."""

    row: Row
    broken: float  # probability; of the order: from how often its alarms are right
    alarm: bool
    classes: tuple[str, ...]  # the likeliest first
    rules: tuple[str, ...]  # the rule that would be named for each
    scores: np.ndarray | None = None
    names: tuple[str, ...] = ()  # of the scores

    def first(self, count: int, *, by_rule: bool) -> bool:
        """Return whether the cause is among the first `count`, if there is an alarm."""
        return self.alarm and self.forced(count, by_rule=by_rule)

    def forced(self, count: int, *, by_rule: bool) -> bool:
        """Return the same whether there is an alarm or not."""
        pairs = list(zip(self.classes, self.rules, strict=True))[:count]
        if self.row.verdict in self.row.expects:  # the process has failed, as it should have
            return True
        return any(
            rule in self.row.expects or (not by_rule and name == self.row.mechanism)
            for name, rule in pairs
        )


Fold = Callable[[Row], Callable[[Row], bool]]  # of a withheld row: which rows may be fitted


def same_pair(row: Row) -> Callable[[Row], bool]:
    """Withhold the trainer and the environment."""
    return lambda other: other.trainer != row.trainer and other.env != row.env


def same_framework(row: Row) -> Callable[[Row], bool]:
    """Withhold the whole framework and the environment."""
    return lambda other: other.framework != row.framework and other.env != row.env


def same_half(row: Row) -> Callable[[Row], bool]:
    """Withhold a random half of the runs: worlds are known."""
    return lambda other: _half(other) != _half(row)


def _half(row: Row) -> int:
    return hashlib.sha256(row.name.encode()).digest()[0] % 2


def by_order(rows: Sequence[Row], known: Sequence[Row]) -> list[Answer]:
    """Answer as the diagnosis does: its alarms, in its order."""
    rates = {
        alarm: (sum(r.label == "broken" for r in group) + 1) / (len(group) + 2)
        for alarm in (False, True)
        for group in ([r for r in known if _rings(r) == alarm and r.label in LABELS],)
    }
    answers = []
    for row in rows:
        pairs = zip(row.alarms, row.alarm_steps, strict=True)
        rules = tuple(rule if step >= row.onset else "(before the onset)" for rule, step in pairs)
        names = tuple(CLASS_BY_RULE.get(rule, rule) for rule in rules)
        answers.append(Answer(row, rates[_rings(row)], _rings(row), names, rules))
    return answers


LABELS = ("healthy", "broken")


def _rings(row: Row) -> bool:
    return bool(row.alarms) or row.verdict == "failed"


def by_model(model: Model, rows: Sequence[Row]) -> list[Answer]:
    """Answer by a fitted model: probability of a fault, classes, and within each class a rule."""
    answers = []
    for row, broken, scores in zip(rows, model.broken(rows), model.causes(rows), strict=True):
        names = tuple(model.classes[i] for i in np.argsort(-scores))
        answers.append(
            Answer(
                row,
                float(broken),
                False,
                names,
                _rules(row, names, model.usual),
                scores,
                model.classes,
            )
        )
    return answers


def _rules(row: Row, names: Sequence[str], usual: dict[str, str]) -> tuple[str, ...]:
    """Name the first finding of each class, else the rule that the class usually expects."""
    seen = (*row.alarms, *row.notes)
    return tuple(next((r for r in seen if r in RULES[n]), usual[n]) for n in names)


def withheld(
    make: Callable[[], Model], rows: Sequence[Row], targets: Sequence[Row], fold: Fold
) -> list[Answer]:
    """Answer on the targets, each by a model that saw neither its trainer nor its environment."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in targets:
        key = (_half(row),) if fold is same_half else (row.trainer, row.env)
        groups[key].append(row)
    answers = []
    for group in groups.values():
        allowed = [row for row in rows if fold(group[0])(row)]
        answers += by_model(make().fit(allowed), group)
    return answers


def ring_like(answers: Sequence[Answer], reference: Sequence[Answer]) -> float:
    """Set alarms where a model is surest, on as many healthy runs as the order rings on."""
    healthy = sorted((a.broken for a in answers if a.row.label == "healthy"), reverse=True)
    count = sum(a.alarm for a in reference if a.row.label == "healthy")
    limit = healthy[count] if count < len(healthy) else 0.0
    for answer in answers:
        answer.alarm = answer.broken > limit
    return limit


def joined(order: Sequence[Answer], model: Sequence[Answer]) -> list[Answer]:
    """Keep the order's alarms and what decides; among its causes, the weighed one comes first."""
    by_name = {answer.row.name: answer for answer in model}
    answers = []
    for answer in order:
        other = by_name[answer.row.name]
        classes, rules = answer.classes, answer.rules
        if not answer.row.is_decided and rules:
            rank = {name: i for i, name in enumerate(other.classes)}
            pairs = sorted(
                zip(classes, rules, strict=True), key=lambda pair: rank.get(pair[0], len(rank))
            )
            classes, rules = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
        answers.append(Answer(answer.row, other.broken, answer.alarm, classes, rules))
    return answers


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


def compare(rows: Sequence[Row], targets: Sequence[Row], fold: Fold, *, boosted: bool) -> dict:
    """Return the answers of every system on withheld targets, in the order of the targets."""
    targets = [row for row in targets if row.label in LABELS]
    order = []
    for row in targets:
        order += by_order([row], [other for other in rows if fold(row)(other)])
    base = float(np.mean([row.label == "broken" for row in rows if row.label in LABELS]))
    systems: dict[str, Sequence[Answer]] = {"order": order}
    place = {row.name: i for i, row in enumerate(targets)}
    makers: dict[str, Callable[[], Model]] = {"weighed": Weighed}
    if fold is same_pair:
        makers["findings alone"] = lambda: Weighed(part="findings")
        makers["numbers alone"] = lambda: Weighed(part="numbers")
    if boosted:
        makers["boosted"] = Boosted
    for name, make in makers.items():
        answers = withheld(make, rows, targets, fold)
        systems[name] = sorted(answers, key=lambda a: place[a.row.name])
        ring_like(systems[name], order)
    systems["joined"] = joined(order, systems["weighed"])
    systems["order, filled"] = filled(order, rows, fold)
    systems["last third"] = thirds(targets)
    systems["base rate"] = [Answer(row, base, False, (), ()) for row in targets]
    return systems


def filled(order: Sequence[Answer], rows: Sequence[Row], fold: Fold) -> list[Answer]:
    """Let the order guess on: after its alarms, the commonest classes of the fitted runs."""
    answers = []
    for answer in order:
        named = [
            row for row in rows
            if fold(answer.row)(row) and row.label == "broken" and row.mechanism
        ]  # fmt: skip
        common = [name for name, _ in Counter(row.mechanism for row in named).most_common()]
        more = [name for name in common if name not in answer.classes]
        usual = usual_rules(named)
        classes = (*answer.classes, *more)
        rules = (*answer.rules, *(usual[name] for name in more))
        answers.append(Answer(answer.row, answer.broken, answer.alarm, classes, rules))
    return answers


def thirds(rows: Sequence[Row]) -> list[Answer]:
    """Ring where the last third is not above the first by half a deviation of the noise."""
    answers = []
    for row in rows:
        change = row.features["return.change"]
        ring = change is not None and np.sinh(change) < 0.5
        answers.append(Answer(row, 0.7 if ring else 0.3, bool(ring), (), ()))
    return answers


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
    print(
        f"temperature {divisor:.2f}; log loss {np.mean(losses):.2f}, of equal shares {np.log(len(CLASSES)):.2f}"
    )
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        bin_ = [right for p, right in hits if low <= p < low + 0.2 or (low == 0.8 and p == 1.0)]
        if bin_:
            print(f"  said {low:.1f} to {low + 0.2:.1f}: right in {sum(bin_)} of {len(bin_)}")
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
            limit = sorted(model.broken(healthy))[-1 - sum(map(_rings, healthy))]
            alarms += list(model.broken(targets) > limit)
            order += [_rings(r) for r in targets]
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
        print(
            f"ridge {ridge}: log loss of alarms {alarm:.3f}, of classes {cause:.3f}, right {right:.3f}"
        )


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
