"""Two runs: what differs in settings, code, environment; since when metrics part; and so what."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlvitals import metrics
from rlvitals.comparison.divergence_step import Parting, parting
from rlvitals.comparison.grouping import counts
from rlvitals.rules import standing
from rlvitals.tracking.environment import SEED_NAME
from rlvitals.types import Trace

Area = Literal["setting", "seed", "code", "package", "machine", "environment"]
Facts = Mapping[str, object]  # as `recording.facts.gather` names them; empty: not known

FILE = re.compile(r"^diff --git a/(\S+) ", re.MULTILINE)
AREAS: Mapping[Area, tuple[str, str]] = {  # one of them, and several
    "setting": ("setting", "settings"),
    "code": ("fact of the code", "facts of the code"),
    "package": ("package", "packages"),
    "machine": ("fact of the machine", "facts of the machine"),
    "environment": ("variable", "variables"),
}
ENDS_EARLY = 0.9  # of the longer run's steps
SKIPPED = ("progress/", "throughput/machine", "reward/component/")  # counters, and the machine
# Which metrics a setting moves first: what the trainer computes with it.
MOVES: Mapping[str, tuple[str, ...]] = {
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
class Changed:
    """One thing that differs."""

    area: Area
    key: str
    first: str  # empty: absent
    second: str


@dataclass(frozen=True, slots=True)
class Apart:
    """What two runs differ in."""

    first: str  # the runs' names
    second: str
    sentence: str
    changed: tuple[Changed, ...]
    partings: tuple[Parting, ...]  # the earliest first
    suggests: tuple[str, ...]
    unknown: tuple[str, ...]  # what nobody recorded


def apart(one: Trace, other: Trace, facts: tuple[Facts, Facts] = ({}, {})) -> Apart:
    """Tell two runs apart."""
    changed = (*_settings(one, other), *_code(*facts), *_environment(*facts))
    found = [
        parting(name, one[name], other[name])
        for name in one.series
        if name in other and not name.startswith(SKIPPED)
    ]
    found.sort(key=lambda p: (_of_speed(p), p.step is None, p.step or 0, -abs(p.size), p.metric))
    unknown = tuple(_unknown((one.name, other.name), facts))
    partings = tuple(found)
    learned = [each for each in found if not _of_speed(each)]
    return Apart(
        first=one.name,
        second=other.name,
        sentence=_sentence(changed, learned),
        changed=changed,
        partings=partings,
        suggests=tuple(_suggests((one, other), changed, learned)),
        unknown=unknown,
    )


def _of_speed(found: Parting) -> bool:
    """Tell what the machine is like from what is learned."""
    known = metrics.find(found.metric)
    return known is not None and known.kind == "performance"


def _unknown(names: tuple[str, str], facts: tuple[Facts, Facts]) -> Iterator[str]:
    """Say what nobody recorded, of which run."""
    for key, what in (("git", "the code"), ("packages", "the packages"), ("host", "the machine")):
        lacking = [name for name, held in zip(names, facts, strict=True) if not held.get(key)]
        if lacking:
            yield f"{what} of {'both' if len(lacking) > 1 else lacking[0]}"


def _settings(one: Trace, other: Trace) -> Iterator[Changed]:
    for key in dict.fromkeys((*one.settings, *other.settings)):
        a, b = one.settings.get(key), other.settings.get(key)
        if a == b:
            continue
        if SEED_NAME.search(key):
            yield Changed("seed", key, _said(a), _said(b))
        elif counts(key):
            yield Changed("setting", key, _said(a), _said(b))


def _said(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _mapping(facts: Facts, key: str) -> Mapping[str, object]:
    found = facts.get(key)
    return found if isinstance(found, Mapping) else {}


def _code(one: Facts, other: Facts) -> Iterator[Changed]:
    a, b = _mapping(one, "git"), _mapping(other, "git")
    if not a or not b:
        return
    for key in ("remote", "branch", "commit"):
        if a.get(key) != b.get(key):
            yield Changed("code", key, _said(a.get(key)), _said(b.get(key)))
    mine, theirs = _files(_said(a.get("diff"))), _files(_said(b.get("diff")))
    for file in sorted({*mine, *theirs}):
        if mine.get(file) != theirs.get(file):
            told = ("changed here" if file in held else "as committed" for held in (mine, theirs))
            yield Changed("code", file, *told)
    first, second = (" ".join(map(str, _listed(facts.get("command")))) for facts in (one, other))
    if first != second:
        yield Changed("code", "command", first, second)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _files(diff: str) -> dict[str, str]:
    """Split a diff by file; nothing where all is as committed."""
    starts = [*FILE.finditer(diff)]
    ends = (*(found.start() for found in starts[1:]), len(diff))
    return {m[1]: diff[m.start() : end] for m, end in zip(starts, ends, strict=False)}


def _environment(one: Facts, other: Facts) -> Iterator[Changed]:
    if one.get("python") and other.get("python") and one["python"] != other["python"]:
        yield Changed("package", "python", _said(one["python"]), _said(other["python"]))
    areas: tuple[tuple[str, Area], ...] = (
        ("packages", "package"),
        ("host", "machine"),
        ("environment", "environment"),
    )
    for name, area in areas:
        a, b = _mapping(one, name), _mapping(other, name)
        if not a or not b:
            continue
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key) and not SEED_NAME.search(key):
                yield Changed(area, key, _said(a.get(key)), _said(b.get(key)))


def _sentence(changed: Sequence[Changed], partings: Sequence[Parting]) -> str:
    """Say what differs and what parts first."""
    counted = {area: sum(one.area == area for one in changed) for area in AREAS}
    parts = [f"{n} {AREAS[area][n > 1]}" for area, n in counted.items() if n]
    if any(one.area == "seed" for one in changed):
        parts.append("the seed")
    differ = f"they differ in {', '.join(parts)}" if parts else "nothing that was recorded differs"
    held = [one for one in partings if one.step is not None]
    if not held:
        return f"{differ}; no metric parts beyond noise"
    return f"{differ}; {held[0].metric} parts first, at step {held[0].step:,}"


def _suggests(
    runs: tuple[Trace, Trace], changed: Sequence[Changed], partings: Sequence[Parting]
) -> Iterator[str]:
    """Say what the order of things suggests; none of it is proof."""
    held = [found for found in partings if found.step is not None]
    equal = min((p.unequal for p in partings if p.unequal is not None), default=None)
    settings = [found.key for found in changed if found.area == "setting"]
    if equal is None and not held and any(not found.why for found in partings):
        yield "nothing shows that they are two different trainings"
    if equal is not None and equal > runs[0].first_number:
        cause = "what differs took effect" if settings else "something not repeatable came in"
        yield f"they are the same to the last digit before step {equal:,}: {cause} there"
    if held:
        yield from _moved(held, settings)
    if held and not settings:
        yield from _elsewhere(changed)
    yield from _of_outcome(held, partings)
    short, long = sorted(runs, key=lambda run: run.last_step)
    if short.last_step < ENDS_EARLY * long.last_step:
        yield (
            f"{short.name} ends at step {short.last_step:,}, {long.name} at {long.last_step:,}:"
            " nothing is compared beyond"
        )


def _of_outcome(held: Sequence[Parting], partings: Sequence[Parting]) -> Iterator[str]:
    """Say whether the outcome parts, and whether something did before it."""
    ends = [found for found in held if found.metric in standing.OUTCOMES]
    judged = [p for p in partings if p.metric in standing.OUTCOMES and not p.why]
    if ends and (ends[0].step or 0) > (held[0].step or 0):
        yield f"{held[0].metric} parted before {ends[0].metric} did: the cause is upstream of it"
    elif held and judged and not ends:
        yield "the outcome does not part: the difference does not matter yet, or not at all"


def _moved(held: Sequence[Parting], settings: Sequence[str]) -> Iterator[str]:
    """Name the settings that differ and are known to move what parted first."""
    first = held[0].step or 0
    early = [found.metric for found in held if found.step == first]
    for key in settings:
        moved = [name for name in early if name.startswith(MOVES.get(key, ("\0",)))]
        if moved:
            yield f"{key} differs, and is known to move {', '.join(moved)}"


def _elsewhere(changed: Sequence[Changed]) -> Iterator[str]:
    """Name what differs where no setting does."""
    areas = {found.area for found in changed}
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
