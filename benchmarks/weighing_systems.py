"""The systems that `weighing.py` compares, and what each says of runs of withheld worlds."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from weighing_classes import CLASS_BY_RULE, RULES
from weighing_models import Boosted, Weighed, usual_rules
from weighing_table import Row

MIN_CHANGE = 0.5  # of the noise
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
        for group in ([r for r in known if rings(r) == alarm and r.label in LABELS],)
    }
    answers = []
    for row in rows:
        pairs = zip(row.alarms, row.alarm_steps, strict=True)
        rules = tuple(rule if step >= row.onset else "(before the onset)" for rule, step in pairs)
        names = tuple(CLASS_BY_RULE.get(rule, rule) for rule in rules)
        answers.append(Answer(row, rates[rings(row)], rings(row), names, rules))
    return answers


LABELS = ("healthy", "broken")


def rings(row: Row) -> bool:
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
    rings = [np.sinh(row.features["return.change"]) < MIN_CHANGE for row in rows]  # NaN: no
    return [
        Answer(row, 0.7 if ring else 0.3, bool(ring), (), ())
        for row, ring in zip(rows, rings, strict=True)
    ]
