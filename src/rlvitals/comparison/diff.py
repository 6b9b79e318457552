"""Diff two runs: settings, code, environment, and the step where metrics diverge."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from rlvitals import metrics
from rlvitals.comparison.divergence_step import Divergence, find_divergence
from rlvitals.comparison.failed_runs import MIN_STEPS_SHARE
from rlvitals.comparison.grouping import is_experiment_setting
from rlvitals.rules import standing
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking.environment import SEED_NAME
from rlvitals.types import Trace

Area = Literal["setting", "seed", "code", "package", "machine", "environment"]
Facts = Mapping[str, object]  # as `tracking.environment` names them; empty: unknown

AREA_NOUNS: Mapping[Area, tuple[str, str]] = {  # singular, plural
    "setting": ("setting", "settings"),
    "code": ("fact of the code", "facts of the code"),
    "package": ("package", "packages"),
    "machine": ("fact of the machine", "facts of the machine"),
    "environment": ("variable", "variables"),
}
# The metrics that the trainer computes directly with a setting.
METRICS_BY_SETTING: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("optimiser/", "policy/approx_kl", "policy/clip_fraction"),
    "clip_range": ("policy/clip_fraction", "policy/approx_kl"),
    "entropy_coef": ("exploration/entropy",),
    "gamma": ("value/",),
    "gae_lambda": ("value/",),
    "value_coef": ("value/", "optimiser/"),
    "max_grad_norm": ("optimiser/",),
    "kl_coef": ("policy/", "reward/"),
    "beta": ("policy/",),
    "batch_size": ("optimiser/", "throughput/"),
    "n_envs": ("throughput/", "outcome/"),
    "temperature": ("exploration/", "scheduler/"),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting, package or fact that differs."""

    area: Area
    key: str
    first: str  # empty: absent
    second: str


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The differences between two runs."""

    first: str  # the runs' names
    second: str
    sentence: str
    changed: tuple[Difference, ...]
    partings: tuple[Divergence, ...]  # by step
    suggests: tuple[str, ...]
    unknown: tuple[str, ...]  # facts that were not recorded


def diff_runs(first: Trace, second: Trace, facts: tuple[Facts, Facts] = ({}, {})) -> RunDiff:
    """Return the differences between two runs; `facts` are those of each run."""
    changed = (*_diff_settings(first, second), *_diff_code(*facts), *_diff_environment(*facts))
    partings = [
        find_divergence(name, first[name], second[name])
        for name in first.series
        # Counters, and the load of the machine.
        if name in second
        and not name.startswith(("progress/", "throughput/machine", "reward/component/"))
    ]
    partings.sort(
        key=lambda p: (_is_performance(p), p.step is None, p.step or 0, -abs(p.size), p.metric)
    )
    training_partings = [parting for parting in partings if not _is_performance(parting)]
    # Count the differences and name the first divergence.
    counts = {area: sum(difference.area == area for difference in changed) for area in AREA_NOUNS}
    phrases = [f"{n} {AREA_NOUNS[area][n > 1]}" for area, n in counts.items() if n]
    if any(difference.area == "seed" for difference in changed):
        phrases.append("the seed")
    differences_text = (
        f"they differ in {', '.join(phrases)}" if phrases else "nothing that was recorded differs"
    )
    diverged = [divergence for divergence in training_partings if divergence.step is not None]
    if not diverged:
        sentence = f"{differences_text}; no metric parts beyond noise"
    else:
        sentence = (
            f"{differences_text}; {diverged[0].metric} parts first, at step {diverged[0].step:,}"
        )
    return RunDiff(
        first=first.name,
        second=second.name,
        sentence=sentence,
        changed=changed,
        partings=tuple(partings),
        suggests=tuple(_suggest((first, second), changed, training_partings)),
        unknown=tuple(_list_unrecorded((first.name, second.name), facts)),
    )


def _is_performance(divergence: Divergence) -> bool:
    """Return whether a metric measures the machine, not the training."""
    metric = metrics.find(divergence.metric)
    return metric is not None and metric.kind == "performance"


def _list_unrecorded(names: tuple[str, str], facts: tuple[Facts, Facts]) -> Iterator[str]:
    """Yield the facts that were not recorded, with the run's name."""
    subjects = {"git": "the code", "packages": "the packages", "host": "the machine"}
    for key, subject in subjects.items():
        runs = [name for name, known in zip(names, facts, strict=True) if not known.get(key)]
        if runs:
            yield f"{subject} of {'both' if len(runs) > 1 else runs[0]}"


def _diff_settings(first: Trace, second: Trace) -> Iterator[Difference]:
    for key in dict.fromkeys((*first.settings, *second.settings)):
        first_value, second_value = first.settings.get(key), second.settings.get(key)
        if first_value == second_value:
            continue
        if SEED_NAME.search(key):
            yield _difference("seed", key, first_value, second_value)
        elif is_experiment_setting(key):
            yield _difference("setting", key, first_value, second_value)


def _difference(area: Area, key: str, first: object, second: object) -> Difference:
    return Difference(area, key, _format_value(first), _format_value(second))


def _format_value(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _mapping(facts: Facts, key: str) -> Mapping[str, object]:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}


def _diff_code(first_facts: Facts, second_facts: Facts) -> Iterator[Difference]:
    first_git, second_git = _mapping(first_facts, "git"), _mapping(second_facts, "git")
    if not first_git or not second_git:
        return
    for key in ("remote", "branch", "commit"):
        if first_git.get(key) != second_git.get(key):
            yield _difference("code", key, first_git.get(key), second_git.get(key))
    first_files = _split_by_file(_format_value(first_git.get("diff")))
    second_files = _split_by_file(_format_value(second_git.get("diff")))
    for file in sorted({*first_files, *second_files}):
        if first_files.get(file) != second_files.get(file):
            states = (
                "changed here" if file in files else "as committed"
                for files in (first_files, second_files)
            )
            yield Difference("code", file, *states)
    first, second = _format_command(first_facts), _format_command(second_facts)
    if first != second:
        yield Difference("code", "command", first, second)


def _format_command(facts: Facts) -> str:
    command = facts.get("command")
    return " ".join(map(str, command)) if isinstance(command, list | tuple) else ""


def _split_by_file(diff: str) -> dict[str, str]:
    """Split a diff by file; empty for an empty diff."""
    starts = [*re.finditer(r"^diff --git a/(\S+) ", diff, re.MULTILINE)]
    ends = (*(match.start() for match in starts[1:]), len(diff))
    return {match[1]: diff[match.start() : end] for match, end in zip(starts, ends, strict=False)}


def _diff_environment(first_facts: Facts, second_facts: Facts) -> Iterator[Difference]:
    first_python, second_python = first_facts.get("python"), second_facts.get("python")
    if first_python and second_python and first_python != second_python:
        yield _difference("package", "python", first_python, second_python)
    areas: tuple[tuple[str, Area], ...] = (
        ("packages", "package"),
        ("host", "machine"),
        ("environment", "environment"),
    )
    for name, area in areas:
        first_values, second_values = _mapping(first_facts, name), _mapping(second_facts, name)
        if not first_values or not second_values:
            continue
        for key in sorted({*first_values, *second_values}):
            first, second = first_values.get(key), second_values.get(key)
            if first != second and not SEED_NAME.search(key):
                yield _difference(area, key, first, second)


def _suggest(
    runs: tuple[Trace, Trace], changed: Sequence[Difference], partings: Sequence[Divergence]
) -> Iterator[str]:
    """Yield the likely causes of the divergence; correlation only, no proof."""
    diverged = [divergence for divergence in partings if divergence.step is not None]
    unequal_step = min((p.unequal for p in partings if p.unequal is not None), default=None)
    settings = [difference.key for difference in changed if difference.area == "setting"]
    if unequal_step is None and not diverged and any(not divergence.why for divergence in partings):
        yield "nothing shows that they are two different trainings"
    if unequal_step is not None and unequal_step > runs[0].first_number:
        cause = "what differs took effect" if settings else "something not repeatable came in"
        yield f"they are the same to the last digit before step {unequal_step:,}: {cause} there"
    if diverged:
        # Changed settings that are known to move the first diverging metrics.
        first_step = diverged[0].step or 0
        first_metrics = [
            divergence.metric for divergence in diverged if divergence.step == first_step
        ]
        for key in settings:
            affected = [
                name
                for name in first_metrics
                if name.startswith(METRICS_BY_SETTING.get(key, ("\0",)))
            ]
            if affected:
                yield f"{key} differs, and is known to move {', '.join(affected)}"
    if diverged and not settings:
        yield from _suggest_other_areas(changed)
    yield from _suggest_by_outcome(diverged, partings)
    short, long = sorted(runs, key=lambda run: run.last_step)
    if short.last_step < MIN_STEPS_SHARE * long.last_step:
        yield (
            f"{short.name} ends at step {short.last_step:,}, {long.name} at {long.last_step:,}:"
            " nothing is compared beyond"
        )


def _suggest_by_outcome(
    diverged: Sequence[Divergence], partings: Sequence[Divergence]
) -> Iterator[str]:
    """Yield whether the outcome diverges, and whether another metric does earlier."""
    outcomes = [
        divergence for divergence in diverged if divergence.metric in standing.OUTCOME_NAMES
    ]
    comparable = [p for p in partings if p.metric in standing.OUTCOME_NAMES and not p.why]
    if outcomes and (outcomes[0].step or 0) > (diverged[0].step or 0):
        first, outcome = diverged[0].metric, outcomes[0].metric
        yield f"{first} parted before {outcome} did: the cause is upstream of it"
    elif diverged and comparable and not outcomes:
        yield "the outcome does not part: the difference does not matter yet, or not at all"


def _suggest_other_areas(changed: Sequence[Difference]) -> Iterator[str]:
    """Yield which other area differs where no setting does."""
    areas = {difference.area for difference in changed}
    if "code" in areas:
        yield "no setting differs: the code does"
    elif "package" in areas:
        yield "neither settings nor code differ: a package does"
    elif "seed" in areas:
        yield "the seed alone differs: runs part by that; compare groups of seeds"
    elif areas:
        yield "settings, code and packages are the same: the machine or its variables differ"
    else:
        yield "nothing recorded differs: something that is not recorded does, or is not repeatable"
