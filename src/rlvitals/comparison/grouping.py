"""Which runs repeat one experiment: those that differ in their seed alone, or as a person says."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals import metrics
from rlvitals.errors import UsageError, nearest
from rlvitals.tracking.environment import SEED_NAME
from rlvitals.types import Setting, Trace

TASK = "env_id"
PATH = "path"
# Settings that name a run, say where it ran and what it wrote, or were measured by it (the Hugging
# Face Trainer's summary): they make no other experiment.
NAMES = re.compile(
    r"^(?:rlvitals|wandb|mlflow|trackio)/|^(?:id|name|group|tags|notes|date|time|timestamp)$"
    r"|(?:^|/)(?:run|exp|experiment|job|trial|project)_?(?:id|name|group|tags|notes)?$"
    r"|(?:^|[/_])(?:host|hostname|user|device|cuda|gpu|verbose|track|capture_video|entity|port|pid)$"
    r"|(?:^|[/_])(?:log|logs|logging|save|saving|output|out|tensorboard|tb|checkpoint|ckpt|results|"
    r"run|cache|work|local|monitor|video|eval)_?(?:dir|path|folder|file|root|to|interval|freq|"
    r"frequency|steps|level)$"
    r"|(?:^|/)(?:train_runtime|train_loss|\w+_per_second|total_flos|num_input_tokens_seen)$",
    re.IGNORECASE,
)
LONGEST = 60  # characters of a group's label


@dataclass(frozen=True, slots=True)
class Member:
    """A run that is compared, and the path that it was found at."""

    trace: Trace
    path: str = ""

    @property
    def task(self) -> str:
        """What it was trained on: the tasks of a group are its strata."""
        return str(self.trace.settings.get(TASK, ""))

    @property
    def seed(self) -> str:
        """Its seed as logged; empty where it logged none."""
        own = self.trace.settings.get("seed")
        found = [value for key, value in self.trace.settings.items() if SEED_NAME.search(key)]
        return str(own if own is not None else next(iter(found), ""))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Runs of one experiment."""

    label: str
    settings: dict[str, Setting | None]  # those in which the groups differ
    members: tuple[Member, ...]


def groups(members: Sequence[Member], by: Sequence[str] = ()) -> tuple[Gathered, ...]:
    """Put runs that share every setting but the seed together, in the order they were given.

    `by` names the settings to group by instead; "path" is the path that a person named. Paths
    that hold several runs are experiments of their own, and so are paths of one run each where
    nothing else tells them apart.
    """
    keys = _chosen(members, by) if by else _apart(members)
    paths = list(dict.fromkeys(one.path for one in members))
    several = any(sum(one.path == path for one in members) > 1 for path in paths)
    if not by and len(paths) > 1 and (several or not keys):
        keys = [*keys, PATH]
    found: dict[tuple[Setting | None, ...], list[Member]] = {}
    for one in members:
        found.setdefault(tuple(_value(one, key) for key in keys), []).append(one)
    shown = _shown(keys, list(found))
    labels = _told_apart([_label(keys, values, shown) for values in found])
    return tuple(
        Gathered(label, dict(zip(keys, values, strict=True)), tuple(held))
        for label, (values, held) in zip(labels, found.items(), strict=True)
    )


def _chosen(members: Sequence[Member], by: Sequence[str]) -> list[str]:
    """Check the names to group by; a setting's own part of its name is enough."""
    known = {key for one in members for key in one.trace.settings}
    keys = []
    for text in by:
        ends = sorted(key for key in known if key.rpartition("/")[2] == text)
        if text in known or text == PATH:
            keys.append(text)
        elif ends:
            keys.append(ends[0])
        else:
            hint = (
                nearest(text, {*known, PATH}) or f"one of {', '.join([*sorted(known)[:8], PATH])}"
            )
            raise UsageError(f"no run has a setting {text!r}", where="--by", hint=hint)
    return keys


def _apart(members: Sequence[Member]) -> list[str]:
    """List the settings in which runs differ and that are no seed, no name and no task."""
    known = {key: None for one in members for key in one.trace.settings}
    return [
        key
        for key in known
        if key != TASK and counts(key) and len({_value(one, key) for one in members}) > 1
    ]


def counts(key: str) -> bool:
    """Tell whether a setting can make another experiment: no seed, no name, no place."""
    if SEED_NAME.search(key):
        return False
    return metrics.find(key) is not None or not NAMES.search(key)


def _value(member: Member, key: str) -> Setting | None:
    return member.path if key == PATH else member.trace.settings.get(key)


def _shown(keys: Sequence[str], rows: Sequence[tuple[Setting | None, ...]]) -> list[str]:
    """Choose the settings that tell the groups apart in a label: those that tell most first."""
    order = sorted(keys, key=lambda key: (key != PATH, metrics.find(key) is None))
    shown: list[str] = []
    told = 1
    while told < len(rows):
        counted = {key: _distinct(keys, rows, [*shown, key]) for key in order}
        best = max(order, key=lambda key: counted[key])
        shown, told = [*shown, best], counted[best]
    return shown


def _distinct(
    keys: Sequence[str], rows: Sequence[tuple[Setting | None, ...]], chosen: Sequence[str]
) -> int:
    """Count the groups that some settings tell apart."""
    places = [keys.index(key) for key in chosen]
    return len({tuple(row[place] for place in places) for row in rows})


def _label(keys: Sequence[str], values: Sequence[Setting | None], shown: Sequence[str]) -> str:
    own = dict(zip(keys, values, strict=True))
    parts = [
        str(own[key]) if key == PATH else f"{key.rpartition('/')[2]}={_written(own[key])}"
        for key in shown
    ]
    label = ", ".join(parts) or "all runs"
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _told_apart(labels: Sequence[str]) -> list[str]:
    """Number the labels that are the same once they are cut."""
    counted = Counter(labels)
    return [
        f"{label} ({labels[: i + 1].count(label)})" if counted[label] > 1 else label
        for i, label in enumerate(labels)
    ]


def _written(value: Setting | None) -> str:
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
