"""Which runs repeat one experiment: those that differ in their seed alone, or as a person says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals import metrics
from rlvitals.errors import UsageError, nearest
from rlvitals.recording.facts import SEED
from rlvitals.records import Setting, Trace

TASK = "env_id"
PATH = "path"
# Settings that name a run or say where it ran: they make no other experiment.
NAMES = re.compile(
    r"(?:^|[/_.\-])(?:id|name|run|group|tags|notes|date|time|timestamp|host|hostname|user|device|"
    r"cuda|gpu|verbose|track|capture_video|entity|dir|folder|path|file|log|port|pid)$"
    r"|^(?:rlvitals|wandb|mlflow|trackio)/|(?:_|^)(?:log|save|output|tensorboard|run)_?"
    r"(?:dir|path|folder|name|root|interval|freq|to|log|steps)$",
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
        found = [value for key, value in self.trace.settings.items() if SEED.search(key)]
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
    return tuple(
        Gathered(_label(keys, values, shown), dict(zip(keys, values, strict=True)), tuple(held))
        for values, held in found.items()
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
    if SEED.search(key):
        return False
    return metrics.find(key) is not None or not NAMES.search(key)


def _value(member: Member, key: str) -> Setting | None:
    return member.path if key == PATH else member.trace.settings.get(key)


def _shown(keys: Sequence[str], rows: Sequence[tuple[Setting | None, ...]]) -> list[str]:
    """Choose the settings that tell the groups apart in a label: the fewest, in their order."""
    shown: list[str] = []
    order = sorted(keys, key=lambda key: (key != PATH, metrics.find(key) is None))
    for key in order:
        told = {tuple(row[keys.index(one)] for one in shown) for row in rows}
        more = {tuple(row[keys.index(one)] for one in [*shown, key]) for row in rows}
        if len(more) > len(told):
            shown.append(key)
    return shown


def _label(keys: Sequence[str], values: Sequence[Setting | None], shown: Sequence[str]) -> str:
    own = dict(zip(keys, values, strict=True))
    parts = [
        str(own[key]) if key == PATH else f"{key.rpartition('/')[2]}={_written(own[key])}"
        for key in shown
    ]
    label = ", ".join(parts) or "all runs"
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _written(value: Setting | None) -> str:
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
