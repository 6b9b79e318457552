"""Find the table a log speaks, and what one of its keys means there."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from rlvitals.metrics.frameworks import generic, language_loop, own_numbers
from rlvitals.metrics.frameworks.key import Name, Table
from rlvitals.types import Log


def choose_table(log: Log, keys: Collection[str], tables: Sequence[Table]) -> Table | None:
    """Return the table of a log by its reader, framework and keys, else by its file's name.

    The name of a file counts where its keys are nobody's, or everybody's: a reward, its spread, a
    KL, and no length of responses.
    """
    table = choose(log.source, keys, tables, log.framework)
    algorithm = r"(?<![a-z])(?:grpo|rlhf|rlvr|rloo|dapo|gspo|drgrpo|remax)(?![a-z])"
    if not re.search(algorithm, re.split(r"[/\\]", log.where)[-1], re.IGNORECASE):
        return table
    if table is None or table is generic.NAMES:
        return language_loop.NAMES
    matches = (find(table, key) for key in keys)
    lengths = any(match and match[0].startswith("language/") for match in matches)
    # These know the keys of any loop with groups.
    grouped = table.framework in {"trl-grpo", "unsloth", "ms-swift"}
    return language_loop.NAMES if grouped and not lengths else table


def choose(
    source: str, keys: Collection[str], tables: Sequence[Table], framework: str = ""
) -> Table | None:
    """Pick the table of a log: its reader's own, else the one that knows most of its keys.

    A log that says its `framework` is read by that one's tables: "trl" by those of "trl-grpo" and
    "trl-dpo" too, and "trl-grpo" by that one whatever its marks. None where no table knows a
    single key. Of equals the earlier table wins.
    """
    said = [t for t in tables if framework and f"{t.framework}-".startswith(f"{framework}-")]
    best = _fullest(keys, said, framework)
    if best is None or not _count_keys(best, keys):
        own = [table for table in tables if source in table.sources]
        if not own:
            best = _fullest(keys, tables)
            return best if best and _count_keys(best, keys) else None
        best = _fullest(keys, own) or own[0]
    # Plain names are asked for whatever a table does not know: it need not yield to theirs.
    other = _fullest(keys, tables) if best.yields else None
    yields = other and not other.loose and _count_keys(other, keys) > _count_keys(best, keys)
    return other if yields else best


def _fullest(keys: Collection[str], tables: Sequence[Table], framework: str = "") -> Table | None:
    fit = [t for t in tables if (framework and t.framework == framework) or _has_mark(t, keys)]
    plain = [t for t in fit if t.loose and not t.marks]

    def rank(table: Table) -> tuple[int, bool]:
        # Loose names with marks are read beside the plain ones, not instead of them.
        both = (table, *plain) if table.loose and table.marks else (table,)
        count = sum(any(find(one, key) for one in both) for key in keys)
        return count, count == 1 and table.loose  # one plain name is no evidence of a framework

    return max(fit, key=rank, default=None)


def _count_keys(table: Table, keys: Collection[str]) -> int:
    return sum(find(table, key) is not None for key in keys)


def find(table: Table, key: str) -> tuple[str, Name] | None:
    """Return the canonical name of a key and how it is measured; None for an unknown key."""
    for bare in _without_prefix(table, key):
        if name := table.keys.get(bare):
            return name.metric.name, name
        # One match tells whether any family has the key.
        patterns = tuple([family.pattern for family in table.families])
        if patterns and _either(patterns).fullmatch(bare) is not None:
            for family in table.families:
                if match := re.fullmatch(family.pattern, bare):
                    return "/".join((family.name.metric.name, *match.groups())), family.name
        if table.other_prefixes and re.match(rf"(?:{table.other_prefixes})/.", bare):
            name = own_numbers.name(bare)
            return f"{name.metric.name}/{bare}", name
    return None


@lru_cache(maxsize=256)  # tables
def _either(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns))


def setting(table: Table, key: str) -> str | None:
    """Return the canonical name of a setting; None for an unknown one."""
    bare = re.sub(rf"\A(?:{table.settings_under})", "", key) if table.settings_under else key
    return table.settings.get(key) or table.settings.get(bare)


def _has_mark(table: Table, keys: Collection[str]) -> bool:
    if not table.marks and not table.mark_pattern:
        return True
    bare = {bare for key in keys for bare in _without_prefix(table, key)}
    if any(bare.issuperset(mark) for mark in table.marks):
        return True
    return bool(table.mark_pattern) and any(re.fullmatch(table.mark_pattern, key) for key in bare)


def _without_prefix(table: Table, key: str) -> list[str]:
    # Weights & Biases joins nested keys with dots, frameworks and tables with slashes.
    spelt = [key] if "." not in key or "/" in key else [key, key.replace(".", "/")]
    if table.loose:
        spelt.append(re.sub(r"[ -]+", "_", key.strip()).lower())
    return [
        *spelt,
        *(one.removeprefix(p) for one in spelt for p in table.prefixes if one.startswith(p)),
    ]
