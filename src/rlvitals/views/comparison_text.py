"""Write what a comparison shows as sentences of its page."""

from math import isfinite

from rlvitals.comparison.result import Against, Comparison, Group
from rlvitals.comparison.statistics import MIN_SEEDS
from rlvitals.rules.standing import label
from rlvitals.views.phrases import number


def headline(result: Comparison) -> str:
    """Return the answer in one line."""
    if not result.against:
        return f"{result.sentence[0].upper()}{result.sentence[1:]}"
    reference = result.against[0].reference
    if len(result.against) == 1:
        pair = result.against[0]
        if pair.word == "cannot tell" and _has_few_seeds(pair, result):
            return f"Too few seeds to compare {pair.group} with {reference}"
        if pair.word == "cannot tell":
            return f"No clear difference between {pair.group} and {reference}"
        return f"{pair.group} is {pair.word} than {reference}"
    if _needs_seeds(result):
        return f"Too few seeds to compare {len(result.groups)} groups"
    texts = []
    for verdict, text in (
        ("better", "better"), ("worse", "worse"), ("cannot tell", "without a clear difference"),
    ):  # fmt: skip
        names = [pair.group for pair in result.against if pair.word == verdict]
        if names:
            is_short = len(result.against) <= 3  # names fit into a headline
            texts.append(f"{' and '.join(names) if is_short else len(names)} {text}")
    return f"Against {reference}: {', '.join(texts)}"


def explanation(result: Comparison) -> str:
    """Return the numbers behind the headline; of several groups only why nothing can be said."""
    if len(result.against) > 1 and _needs_seeds(result):
        seeds = min(group.seeds for group in result.groups)
        return f"{_few_seeds(seeds)}."
    if len(result.against) != 1:
        return ""
    pair = result.against[0]
    groups = {group.label: group for group in result.groups}
    group, reference = groups[pair.group], groups[pair.reference]
    text = f"{label(result.metric)} {number(group.mean)} against {number(reference.mean)}"
    difference = pair.difference
    if isfinite(difference.low):
        text += f", a difference of {difference.value:+.4g} "
        text += f"(95 % interval {difference.low:+.4g} to {difference.high:+.4g})"
    return f"{text}. {answer(pair, group, reference, name_word=False)}".rstrip()


def answer(pair: Against, group: Group, reference: Group, *, name_word: bool = True) -> str:
    """Return how a group compares with the reference, and why nothing can be said if so."""
    if pair.word != "cannot tell":
        return pair.word if name_word else ""
    seeds = min(group.seeds, reference.seeds)
    if seeds < MIN_SEEDS:
        reason = _few_seeds(seeds)
    elif pair.difference.value == 0 and pair.difference.low == pair.difference.high:
        reason = "the scores are equal"
    elif not pair.difference.excludes_zero:
        reason = "the interval of the difference includes 0"
    else:
        reason = f"{pair.permutation:.0%} of random regroupings of these runs differ as much"
    if pair.more_seeds is not None:
        noun = "seed" if pair.more_seeds == 1 else "seeds"
        reason += (
            f"; {pair.more_seeds} more {noun} in each group would narrow the interval "
            f"to ±{pair.matters:.3g}"
        )
    return f"no clear difference: {reason}" if name_word else f"{reason[0].upper()}{reason[1:]}."


def _has_few_seeds(pair: Against, result: Comparison) -> bool:
    seeds = [group.seeds for group in result.groups if group.label in {pair.group, pair.reference}]
    return min(seeds) < MIN_SEEDS


def _needs_seeds(result: Comparison) -> bool:
    """Return whether no group can be compared, for want of seeds."""
    return all(
        pair.word == "cannot tell" and _has_few_seeds(pair, result) for pair in result.against
    )


def _few_seeds(seeds: int) -> str:
    start = "1 seed in a group does" if seeds == 1 else f"{seeds} seeds in a group do"
    return f"{start} not show how far seeds differ, {MIN_SEEDS} are needed"
