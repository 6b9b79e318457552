"""What a number is by the words beside it, where no claim of its own says more.

"0.23 in the median" is a median, "1.3 at most" a maximum, "step 31,744" a step of the log. The
column is the finding's own, one that its rule needs, or one that the sentence names; the window is
any that the finding has. A number whose words say nothing of this kind derives from nothing.
"""

import re
from collections.abc import Iterator

import numpy as np
from derivations import ANY_NUMBER, NUMBER, Case, columns, head, reads, trimmed, windows

from rlvitals.metrics import environments
from rlvitals.rules import CATALOGUE
from rlvitals.rules.standing import label
from rlvitals.types import Series

N = rf"({NUMBER})"
RULES = {rule.name: rule for rule in CATALOGUE}


def related(case: Case, text: str, rule: str) -> Iterator[Series]:
    """Return the columns that a sentence of a rule may speak of."""
    names = {case.finding.metric} if case.finding else set()
    if rule in RULES:
        names |= {metric.name for metric in (*RULES[rule].needs, *RULES[rule].needs_any)}
    names |= {own for own in case.trace.series if label(own) in text.lower() or own in text}
    for name, words in ALIASES.items():
        if words in text:
            names.add(name)
    for name in sorted(names):
        found = [name] if name in case.trace else [*case.trace.family(name)]
        for own in found:
            yield from columns(case, own if own in case.trace else f"{name}/{own}")
    if case.finding is not None and case.finding.curve is not None:
        yield case.finding.curve.series.finite()


# Words that stand for a column without being its label.
ALIASES = {
    "policy/approx_kl": "KL", "policy/clip_fraction": "clipped", "value/loss": "value loss",
    "policy/kl_to_reference": "KL", "policy/kl_signed": "signed estimate of KL",
    "value/explained_variance": "explain", "exploration/entropy": "ntropy",
    "optimiser/grad_norm": "grad", "policy/loss": "policy loss", "outcome/return": "return",
    "optimiser/loss": "loss", "policy/ratio": "ratio", "value/q_mean": "Q",
    "outcome/episode_length": "episodes", "optimiser/learning_rate": "learning rate",
    "exploration/std": "standard deviation", "policy/clip_fraction_effective": "clipped",
    "exploration/entropy_sum": "ntropy", "exploration/entropy_sequence": "ntropy",
    "policy/action_entropy": "ntropy", "language/truncated_share": "cut at",
    "preference/rejected_logp": "rejected", "preference/chosen_reward": "chosen",
    "optimiser/policy_loss": "policy loss", "policy/kl_to_reference_per_token": "KL",
}  # fmt: skip


def median(values):
    yield float(np.median(values))
    yield float(np.median(np.abs(values)))
    yield abs(float(np.median(values)))


def extreme(values):
    yield from (float(values.max()), float(values.min()), float(np.abs(values).max()))


def start(values):
    yield from (float(values[0]), head(values), trimmed(values[: max(values.size // 5, 1)]))
    yield from (float(np.median(values[:5])), float(values[:5].mean()))
    yield trimmed(values[: max(round(values.size / 5), 1)])
    yield float(np.median(values[: max(3, values.size // 10)]))
    yield float(values[: max(10, values.size // 10)].mean())


def end(values):
    yield float(values[-1])
    for n in (5, 10, 20, values.size // 10, values.size // 5, round(values.size / 5)):
        tail = values[-max(n, 1) :]
        yield from (float(np.median(tail)), float(tail.mean()), trimmed(tail))


def mean(values):
    yield float(values.mean())


def size(values):
    yield float(values.size)


def any_value(values):
    yield from values.tolist()


def negated(values):
    for value in start(values):
        yield 1 - value
    for value in end(values):
        yield 1 - value


# The words, the number in them, and what it may be. The first that fits a number counts.
PHRASES = [
    (rf"(?:from|goes?|went|rises from|shrank from|grew from) {N} to", (start, median)),
    (rf"(?:from|goes?|went|rises from|shrank from|grew from) {NUMBER}[\w ]* to {N}", (end, median)),
    (rf"[:,] {N} to {NUMBER}", (start,)),
    (rf"[:,] {NUMBER} to {N}", (end,)),
    (rf"{N}[^,;:]{{0,40}} in the (?:last|late)\b", (end, mean)),
    (rf"{N} in the first fifth", (start,)),
    (rf"median(?: explained variance is| gradient norm is|:) {N}", (median,)),
    (rf"{N}[^,;:()]{{0,60}} in the median", (median,)),
    (rf"{N} (?:in size|at most|at worst|at the extreme)", (extreme,)),
    (rf"reach(?:es)? {N}", (extreme,)),
    (rf"best {N}|{N} at (?:its )?best", (extreme,)),
    (rf"{N}[\w ]{{0,30}} at (?:the start|first)", (start,)),
    (rf"{N} before\b", (start, median, end)),
    (rf"{N}[\w ]{{0,30}} (?:at the end|now)\b|ends at {N}", (end,)),
    (rf"{N}[\w% ]{{0,30}} on average", (mean,)),
    (rf"(?:over|all|in) {N} (?:updates|points|values)", (size,)),
    (rf"as low as {N}", (end,)),
    (rf"down to {N}", (end,)),
    (rf"(?:jumps|spikes)[\w ,]*(?: to|:) {N}", (any_value,)),
    (rf"(?:is|are|stays) {N}\b", (any_value, median, end)),
]  # fmt: skip
STEP = re.compile(rf"(?:step|at) {N}")


def underived(text: str, case: Case, rule: str) -> str:
    """Say which number of a sentence its words do not derive; empty where they do for all."""
    series = list(related(case, text, rule))
    steps = _steps(case)
    for number in ANY_NUMBER.finditer(text):
        printed = number.group()
        if _named(text, number, case) or _bound(text, number, case):
            continue
        if _is_step(text, number) and int(float(printed.replace(",", ""))) in steps:
            continue
        phrase = _phrase(text, number)
        if phrase is None:
            return f"{printed}: its words name no statistic"
        values = [
            value
            for each in series
            for window in windows(case, each)
            if len(window)
            for function in phrase
            for value in function(window.values)
        ]
        if not any(reads(printed, value) for value in values):
            return f"{printed} is not {' or '.join(f.__name__ for f in phrase)} of any column"
    return ""


def _phrase(text, number):
    for words, functions in PHRASES:
        for found in re.finditer(words, text):
            if any(found.span(i) == number.span() for i in range(1, found.re.groups + 1)):
                return functions
    return None


def _steps(case: Case) -> set[int]:
    return {int(step) for series in case.trace.series.values() for step in series.steps}


def _is_step(text, number) -> bool:
    return any(found.span(1) == number.span() for found in STEP.finditer(text))


def _named(text, number, case: Case) -> bool:
    """Return whether a number is a setting beside its name, or what the environment pays."""
    value = number.group()
    for name, setting in case.trace.settings.items():
        if name in text and isinstance(setting, int | float) and reads(value, float(setting)):
            return True
    env = environments.lookup(str(case.trace.settings.get("env_id", "")))
    known = [] if env is None else [env.pays, env.max_return, env.random_return, env.reach]
    return any(k is not None and reads(value, float(k)) for k in known) and env.name in text


def _bound(text, number, case: Case) -> bool:
    """Return whether a number is the finding's limit, where the words before say so."""
    before = text[: number.start()]
    limit = re.search(r"(?:limit|above|below|within|beyond|target|of|\() ?$", before)
    return bool(case.finding and limit and reads(number.group(), case.finding.bound.value))
