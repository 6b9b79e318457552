"""The models that `weighing.py` compares: all are fitted on rows and answer with probabilities."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from weighing_classes import CLASSES, RULES
from weighing_table import Row

Array = NDArray[np.float64]
RIDGE = (
    0.3  # of both models: of 0.03 to 1 the least log loss of classes on withheld tasks of tier 1
)
PRIOR_RUNS = 10.0  # healthy runs that the range of all of them counts beside a profile's own
MAX_Z = 4.0
STEPS = 250

# Evidence whose sign is known: a coefficient may not speak the other way.
EVIDENCE: Mapping[str, Mapping[str, int]] = {
    "step too large": {"kl.level": 1, "kl.peak": 1, "clip.level": 1, "rate.level": 1,
                       "entropy.ratio": -1, "kl.zeros": -1},
    "not trained": {"kl.level": -1, "kl.zeros": 1, "clip.level": -1, "clip.zeros": 1,
                    "frozen columns": 1, "rate.level": -1, "rate.zeros": 1, "no updates": 1,
                    "learning starts": 1, "entropy.same": 1},
    "no reward": {"return.same": 1, "value loss.level": -1, "return.jitter": -1},
    "reward too large or noisy": {"value loss.level": 1, "value loss.peak": 1, "loss.level": 1,
                                  "return.outliers": 1, "gradient.level": 1},
    "changed in mid-run": {"return.lost": 1, "return.lost in noise": 1, "return.step": -1},
    "wrong direction": {"return.below start": 1, "return.change": -1, "return.best at": -1},
    "samples do not fit": {"return.lost": -1},
    "critic": {"explained.level": -1, "explained.end": -1, "explained.low": 1},
    "targets": {"q.growth": 1},
    "explores too much": {"entropy.level": 1, "epsilon.end": 1, "std.level": 1,
                          "temperature.level": 1, "entropy.ratio": 1},
    "explores too little": {"entropy.level": -1, "epsilon.end": -1, "temperature.level": -1},
    "ends of episodes": {},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """Healthy ranges by profile, shrunk to those of all healthy runs."""

    names: tuple[str, ...]
    signs: Array  # [features]
    ranges: Mapping[str, tuple[Array, Array]]  # profile: middle and spread, each [features]
    facts: tuple[str, ...]  # of each feature: its part before the point

    @classmethod
    def fit(cls, rows: Sequence[Row]) -> "Scale":
        names = tuple(rows[0].features)
        healthy = [row for row in rows if row.label == "healthy"]
        middle, spread = _range(_raw(healthy, names))
        spread = np.maximum(spread, 0.05)
        ranges = {"": (middle, spread)}
        for profile in {row.profile for row in healthy}:
            values = _raw([row for row in healthy if row.profile == profile], names)
            own_middle, own_spread = _range(values)
            weight = np.isfinite(values).sum(axis=0) / (
                np.isfinite(values).sum(axis=0) + PRIOR_RUNS
            )
            ranges[profile] = (
                np.where(
                    weight > 0, weight * np.nan_to_num(own_middle) + (1 - weight) * middle, middle
                ),
                np.maximum(
                    np.where(
                        weight > 0,
                        weight * np.nan_to_num(own_spread) + (1 - weight) * spread,
                        spread,
                    ),
                    0.05,
                ),
            )
        facts = tuple(name.split(".")[0] for name in names)
        return cls(names, np.array([rows[0].signs[n] for n in names], float), ranges, facts)

    def z(self, profile: str, features: Mapping[str, float]) -> Array:
        """Return deviations from healthy, 0 where not logged; the measures of a fact share 1."""
        values = np.array([_number(features[name]) for name in self.names])
        middle, spread = self.ranges.get(profile, self.ranges[""])
        z = np.clip((values - middle) / spread, -MAX_Z, MAX_Z)
        logged = np.isfinite(z)
        counts = Counter(fact for fact, there in zip(self.facts, logged, strict=True) if there)
        share = np.array([1 / np.sqrt(max(counts[fact], 1)) for fact in self.facts])
        return np.where(logged, z, 0.0) * share

    def matrix(self, rows: Sequence[Row]) -> Array:
        """Return the deviations of rows: [rows, features]."""
        return np.array([self.z(row.profile, row.features) for row in rows])

    def badness(self, z: Array) -> Array:
        """Turn deviations so that more of any speaks of a fault; logged in both ways is a size."""
        return np.where(self.signs == 0, np.abs(z), self.signs * z)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _raw(rows: Sequence[Row], names: Sequence[str]) -> Array:
    return np.array([[_number(row.features[name]) for name in names] for row in rows])


def _range(values: Array) -> tuple[Array, Array]:
    """Return the median and the width of the middle 80 %, as standard deviations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column of NaN
        middle = np.nanmedian(values, axis=0)
        low, high = np.nanpercentile(values, (10, 90), axis=0)
    spread = (high - low) / 2.563
    return np.nan_to_num(middle), np.where(np.isfinite(spread), spread, 1.0)


def weights(rows: Sequence[Row]) -> Array:
    """Return a weight for each row: a world counts as the root of its runs."""
    counts = Counter(row.world for row in rows)
    raw = np.array([1 / np.sqrt(counts[row.world]) for row in rows])
    return raw / raw.sum()


def minimise(
    x: Array, targets: Array, weight: Array, bounds: tuple[Array, Array], ridge: float
) -> tuple[Array, Array]:
    """Fit a softmax with ridge and bounds; return coefficients [features, k], intercepts [k].

    Accelerated projected gradient; `targets` [rows, k] sum to 1, each of `bounds` is [features, k].
    """
    low, high = bounds
    coefficients, intercepts = np.zeros_like(low), np.zeros(targets.shape[1])
    ahead, ahead_intercepts, momentum = coefficients, intercepts, 1.0
    rate = 1 / (0.5 * np.linalg.norm(x * np.sqrt(weight)[:, None], 2) ** 2 + 0.5 + ridge)
    for _ in range(STEPS):
        error = (softmax(x @ ahead + ahead_intercepts) - targets) * weight[:, None]
        new = np.clip(ahead - rate * (x.T @ error + ridge * ahead), low, high)
        new_intercepts = ahead_intercepts - rate * error.sum(axis=0)
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / next_momentum
        ahead = new + push * (new - coefficients)
        ahead_intercepts = new_intercepts + push * (new_intercepts - intercepts)
        coefficients, intercepts, momentum = new, new_intercepts, next_momentum
    return coefficients, intercepts


def softmax(scores: Array) -> Array:
    """Return probabilities along the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@dataclass(slots=True)
class Weighed:
    """Healthy against broken by a monotone logistic model, and the mechanism by a multinomial."""

    ridge: float = RIDGE
    part: str = ""  # "findings" or "numbers": the features of that kind alone
    scale: Scale = field(init=False)
    alarm: tuple[Array, float] = field(init=False)
    cause: tuple[Array, Array] = field(init=False)
    classes: tuple[str, ...] = field(init=False)
    usual: dict[str, str] = field(init=False)  # the rule that most runs of a class expect

    def fit(self, rows: Sequence[Row]) -> "Weighed":
        self.scale = Scale.fit(rows)
        known = [row for row in rows if row.label in {"healthy", "broken"}]
        x, broken = self.scale.badness(self.scale.matrix(known)), _broken(known)
        low, high = np.zeros((x.shape[1], 2)), np.zeros((x.shape[1], 2))
        high[self._used(), 1] = np.inf
        targets = np.stack([1 - broken, broken], axis=1)
        coefficients, intercepts = minimise(x, targets, weights(known), (low, high), self.ridge)
        self.alarm = coefficients[:, 1], float(intercepts[1] - intercepts[0])
        named = [row for row in known if row.mechanism and row.label == "broken"]
        self.classes = tuple(name for name in CLASSES if any(r.mechanism == name for r in named))
        self.usual = usual_rules(named)
        x = self.scale.matrix(named)
        targets = np.array(
            [[row.mechanism == name for name in self.classes] for row in named], float
        )
        self.cause = minimise(x, targets, weights(named), self._bounds(), self.ridge)
        return self

    def _bounds(self) -> tuple[Array, Array]:
        shape = (len(self.scale.names), len(self.classes))
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        for j, name in enumerate(self.classes):
            for feature, sign in {**EVIDENCE[name], f"finding: {name}": 1}.items():
                i = self.scale.names.index(feature)
                (low if sign > 0 else high)[i, j] = 0.0
        low[~self._used()] = high[~self._used()] = 0.0
        return low, high

    def _used(self) -> NDArray[np.bool_]:
        by_rule = np.array([name.startswith(("finding", "verdict")) for name in self.scale.names])
        return {"findings": by_rule, "numbers": ~by_rule}.get(self.part, by_rule | True)

    def broken(self, rows: Sequence[Row]) -> Array:
        """Return the probability that each run is broken."""
        return self.broken_z(self.scale.matrix(rows))

    def broken_z(self, z: Array) -> Array:
        coefficients, intercept = self.alarm
        return 1 / (1 + np.exp(-(self.scale.badness(z) @ coefficients + intercept)))

    def causes(self, rows: Sequence[Row]) -> Array:
        """Return scores [rows, classes]: their softmax is the probability of each class."""
        coefficients, intercepts = self.cause
        return self.scale.matrix(rows) @ coefficients + intercepts


@dataclass(slots=True)
class Boosted:
    """The same questions to boosted trees on the same features: the upper mark."""

    classes: tuple[str, ...] = field(init=False)
    usual: dict[str, str] = field(init=False)
    scale: Scale = field(init=False)
    models: list = field(init=False)

    def fit(self, rows: Sequence[Row]) -> "Boosted":
        from sklearn.ensemble import HistGradientBoostingClassifier

        self.scale = Scale.fit(rows)
        known = [row for row in rows if row.label in {"healthy", "broken"}]
        named = [row for row in known if row.mechanism and row.label == "broken"]
        self.classes = tuple(name for name in CLASSES if any(r.mechanism == name for r in named))
        self.usual = usual_rules(named)
        options = {"max_iter": 30, "max_leaf_nodes": 6, "min_samples_leaf": 5, "max_bins": 32,
                   "l2_regularization": 1.0, "random_state": 0}  # fmt: skip
        self.models = []
        for group, answers in (
            (known, [int(row.label == "broken") for row in known]),
            (named, [self.classes.index(row.mechanism) for row in named]),
        ):
            model = HistGradientBoostingClassifier(**options)
            weight = weights(group) * len(group)
            self.models.append(model.fit(_zeros(group, self.scale), answers, sample_weight=weight))
        return self

    def broken(self, rows: Sequence[Row]) -> Array:
        return self.models[0].predict_proba(_zeros(rows, self.scale))[:, 1]

    def causes(self, rows: Sequence[Row]) -> Array:
        return np.log(self.models[1].predict_proba(_zeros(rows, self.scale)) + 1e-6)


def _zeros(rows: Sequence[Row], scale: Scale) -> Array:
    """Return raw features [rows, features], -99 where not logged: a column may be empty."""
    return np.nan_to_num(_raw(rows, scale.names), nan=-99.0)


def _broken(rows: Sequence[Row]) -> Array:
    return np.array([row.label == "broken" for row in rows], float)


def usual_rules(rows: Sequence[Row]) -> dict[str, str]:
    """Return the rule that most runs of each class expect, one of the class before others."""
    counts = {name: Counter[str]() for name in CLASSES}
    for row in rows:
        own = [rule for rule in row.expects if rule in RULES[row.mechanism]] or list(row.expects)
        counts[row.mechanism].update(own[:1])
    return {name: count.most_common(1)[0][0] if count else "" for name, count in counts.items()}


def temperature(scores: Sequence[Array], right: Sequence[int]) -> float:
    """Return the number that scores are divided by for the least log loss on withheld runs."""
    grid = np.geomspace(0.25, 8.0, 41)
    losses = [
        sum(-np.log(softmax(s / t)[i] + 1e-9) for s, i in zip(scores, right, strict=True))
        for t in grid
    ]
    return float(grid[int(np.argmin(losses))])
