"""Group runs that repeat one experiment: all settings but the seed are equal."""

import re
from collections import Counter
from collections.abc import Sequence

from rlvitals import metrics
from rlvitals.errors import UsageError, nearest
from rlvitals.metrics import frameworks
from rlvitals.metrics.frameworks import lookup
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.tracking.environment import SEED_NAME
from rlvitals.types import Setting, Trace

PATH_KEY = "path"
# Settings that name a run, its machine or its output, or that were measured by it (the summary of
# the Hugging Face Trainer): they do not distinguish experiments.
NAME_SETTINGS = lazy_pattern(
    r"^(?:rlvitals|wandb|mlflow|trackio)/|^(?:id|name|group|tags|notes|date|time|timestamp)$"
    r"|(?:^|/)(?:run|exp|experiment|job|trial|project)_?(?:id|name|group|tags|notes)?$"
    r"|(?:^|[/_])(?:host|hostname|user|device|cuda|gpu|verbose|track|capture_video|entity|port|pid)$"
    r"|(?:^|[/_])(?:log|logs|logging|save|saving|output|out|tensorboard|tb|checkpoint|ckpt|results|"
    r"run|cache|work|local|monitor|video|eval)_?(?:dir|path|folder|file|root|to|interval|freq|"
    r"frequency|steps|level)$"
    r"|(?:^|/)(?:train_runtime|train_loss|\w+_per_second|total_flos|num_input_tokens_seen)$",
    re.IGNORECASE,
)
MAX_LABEL_CHARS = 60


@dataclass(frozen=True, slots=True)
class Member:
    """A run to compare, and its path."""

    trace: Trace
    path: str = ""

    @property
    def task(self) -> str:
        """Name of the environment: the tasks of a group are its strata."""
        return str(self.trace.settings.get("env_id", ""))

    @property
    def seed(self) -> str:
        """The seed as logged; empty where none was."""
        seed_value = self.trace.settings.get("seed")
        candidates = [value for key, value in self.trace.settings.items() if SEED_NAME.search(key)]
        return str(seed_value if seed_value is not None else next(iter(candidates), ""))


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs of one experiment."""

    label: str
    settings: dict[str, Setting | None]  # those in which the groups differ
    members: tuple[Member, ...]


def groups(members: Sequence[Member], by: Sequence[str] = ()) -> tuple[RunGroup, ...]:
    """Group runs that share every setting but the seed, in the order of the arguments.

    `by` names the settings to group by instead; "path" is the path on the command line. A path
    with several runs is an experiment, and so are paths of one run each where no setting differs.
    """
    group_keys = _resolve_keys(members, by) if by else differing_settings(members)
    paths = list(dict.fromkeys(member.path for member in members))
    several = any(sum(member.path == path for member in members) > 1 for path in paths)
    if not by and len(paths) > 1 and (several or not group_keys):
        group_keys = [*group_keys, PATH_KEY]
    groups_by_values: dict[tuple[Setting | None, ...], list[Member]] = {}
    for member in members:
        groups_by_values.setdefault(tuple(_value(member, key) for key in group_keys), []).append(
            member
        )
    # The settings that distinguish the groups, most distinctive first.
    rows = list(groups_by_values)
    order = _order_by_meaning(group_keys)
    label_keys: list[str] = []
    group_count = 1
    while group_count < len(rows):
        counts = {key: _count_distinct(group_keys, rows, [*label_keys, key]) for key in order}
        best_key = max(order, key=lambda key: counts[key])
        label_keys, group_count = [*label_keys, best_key], counts[best_key]
    if PATH_KEY not in label_keys:  # a path says what the user compares
        label_keys += [key for key in _order_by_meaning(group_keys) if key not in label_keys]
    # Labels may be equal after truncation.
    group_labels = [_label(group_keys, values, label_keys) for values in groups_by_values]
    label_counts = Counter(group_labels)
    labels = [
        f"{label} ({group_labels[: i + 1].count(label)})" if label_counts[label] > 1 else label
        for i, label in enumerate(group_labels)
    ]
    return tuple(
        RunGroup(label, dict(zip(group_keys, values, strict=True)), tuple(group_members))
        for label, (values, group_members) in zip(labels, groups_by_values.items(), strict=True)
    )


def _resolve_keys(members: Sequence[Member], by: Sequence[str]) -> list[str]:
    """Return the full names of the settings to group by; the part after the last / is enough."""
    settings = {key for member in members for key in member.trace.settings}
    keys = []
    for name in by:
        matches = sorted(key for key in settings if key.rpartition("/")[2] == name)
        if name in settings or name == PATH_KEY:
            keys.append(name)
        elif matches:
            keys.append(matches[0])
        elif (canonical_name := lookup.setting(frameworks.GENERIC, name)) in settings:
            keys.append(canonical_name)  # "lr" of RLlib is its learning_rate
        else:
            hint = (
                nearest(name, {*settings, PATH_KEY})
                or f"one of {', '.join([*sorted(settings)[:8], PATH_KEY])}"
            )
            raise UsageError(f"no run has a setting {name!r}", where="--by", hint=hint)
    return keys


def differing_settings(members: Sequence[Member]) -> list[str]:
    """List the settings in which runs differ, except seeds, names and the task."""
    settings = {key: None for member in members for key in member.trace.settings}
    return [
        key
        for key in settings
        if key != "env_id"
        and is_experiment_setting(key)
        and len({_value(member, key) for member in members}) > 1
    ]


def is_experiment_setting(key: str) -> bool:
    """Return whether a setting distinguishes experiments: it is no seed, name or path."""
    if SEED_NAME.search(key):
        return False
    return metrics.find(key) is not None or not NAME_SETTINGS.search(key)


def _value(member: Member, key: str) -> Setting | None:
    return member.path if key == PATH_KEY else member.trace.settings.get(key)


def _order_by_meaning(keys: Sequence[str]) -> list[str]:
    """Return the path first, then the settings that the catalogue knows."""
    return sorted(keys, key=lambda key: (key != PATH_KEY, metrics.find(key) is None))


def _count_distinct(
    keys: Sequence[str], rows: Sequence[tuple[Setting | None, ...]], label_keys: Sequence[str]
) -> int:
    """Count the groups that `label_keys` distinguish."""
    columns = [keys.index(key) for key in label_keys]
    return len({tuple(row[column] for column in columns) for row in rows})


def _label(keys: Sequence[str], values: Sequence[Setting | None], label_keys: Sequence[str]) -> str:
    settings = dict(zip(keys, values, strict=True))
    texts = [
        str(settings[key])
        if key == PATH_KEY
        else f"{key.rpartition('/')[2]}={format_setting(settings[key])}"
        for key in label_keys
    ]
    label = ", ".join(texts) or "all runs"
    if len(label) <= MAX_LABEL_CHARS:
        return label
    for count in range(len(texts) - 1, 0, -1):
        short = f"{', '.join(texts[:count])} and {len(texts) - count} more"
        if len(short) <= MAX_LABEL_CHARS:
            return short
    return f"{label[: MAX_LABEL_CHARS - 1]}…"


def format_setting(value: Setting | None) -> str:
    """Return the text of a setting's value."""
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
