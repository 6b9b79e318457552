"""Name the metric of a language trainer's key by its words, where no table knows the key.

    meaning("rollout/response_len/mean")   # "language/length_mean"
    meaning("policy/entropy_avg")          # "exploration/entropy"
    meaning("eval/aime24/pass@8")          # "outcome/eval_task/aime24/pass@8"
    meaning("actor/lambda_loss")           # None: "lambda" is of no subject

A key is a subject ("response length"), a statistic over the batch ("mean", "max"), and words for
the place where it was taken ("train", "actor"). The longest subject whose words the key has is
taken, if every other word is one of a place; a key with any further word names something else.
`data/key_grammar.toml` lists the words.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources

from rlvitals.metrics.frameworks import GENERIC
from rlvitals.metrics.frameworks.key import Table
from rlvitals.metrics.profile import LANGUAGE_FRAMEWORKS
from rlvitals.startup.fast_dataclass import dataclass

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words of keys, as `data/key_grammar.toml` lists them."""

    compounds: tuple[tuple[re.Pattern[str], str], ...]
    held_out: Words
    leaf: Words
    folder: Words
    no_part: Words
    language: tuple[str, ...]  # prefixes of canonical names
    statistics: Mapping[str, str]  # word -> statistic
    ranks: tuple[str, ...]  # statistics, the least usual first
    synonyms: Mapping[str, str]  # word -> the word that stands for it
    subjects: tuple[tuple[Words, str], ...]
    of_statistic: Mapping[str, Mapping[str, str]]
    of_held_out: Mapping[str, str]


@cache
def grammar() -> Grammar:
    """Return the grammar of keys."""
    text = resources.files("rlvitals.metrics").joinpath("data/key_grammar.toml").read_text("utf-8")
    data = tomllib.loads(text)
    subjects = data["subjects"].items()
    return Grammar(
        compounds=tuple((re.compile(pattern), term) for pattern, term in data["compounds"]),
        held_out=frozenset(data["held_out"]),
        leaf=frozenset(data["leaf"]),
        folder=frozenset((*data["leaf"], *data["folder"])),
        no_part=frozenset(data["no_part"]),
        language=tuple(data["language"]),
        statistics={term: name for name, texts in data["statistics"].items() for term in texts},
        ranks=tuple(data["statistics"]),
        synonyms={term: name for name, texts in data["synonyms"].items() for term in texts},
        subjects=tuple((frozenset(t.split()), name) for name, texts in subjects for t in texts),
        of_statistic=data["of_statistic"],
        of_held_out=data["of_held_out"],
    )


def name_keys(
    table: Table | None, names: Mapping[str, tuple[str, str] | None]
) -> Iterator[tuple[str, str]]:
    """Yield (key, canonical name) for a language trainer's keys that have no metric yet.

    `names` are all keys of a log with the canonical name and the reduction that its `table` gives
    them. Each metric is named once, and none that the table has named.
    """
    # Known by the kind of its number alone, as `own_numbers` says, and no count.
    kinds = ("language/statistic/", "language/extreme/", "language/share/", "language/length/")
    unnamed = [
        key
        for key, name in names.items()
        if name is None or (name[1] in {"", "by its name"} and name[0].startswith(kinds))
    ]
    if table is None or table is GENERIC:
        is_language = any((meaning(key) or "").startswith(grammar().language) for key in unnamed)
    else:
        is_language = table.framework in LANGUAGE_FRAMEWORKS
    used = {name[0] for name in names.values() if name}
    for key in unnamed if is_language else ():
        metric = meaning(key)
        if metric is not None and metric not in used:
            used.add(metric)
            yield key, metric


@lru_cache(maxsize=4096)
def meaning(key: str) -> str | None:
    """Return the canonical name that the words of a key give; None where they give none."""
    if len(key) > 120:  # characters: a longer key is no name
        return None
    held_out = bool(grammar().held_out & _terms(key))
    return _by_family(key, held_out=held_out) or _by_subject(key, held_out=held_out)


def _by_family(key: str, *, held_out: bool) -> str | None:
    """Return the name of a family's member: the end of the key is its own."""
    folders = key.split("/")[:-1]
    tries = re.fullmatch(
        r"(?:.+/)?((?:pass|mean|best|avg|maj)(?:@|_at_)\d+(?:[/_]mean)?)", key
    )  # solved in k tries
    if tries is not None:
        if held_out:
            return f"outcome/eval_task/{_member([*folders, tries[1]])}"
        return f"outcome/pass_rate/{tries[1].replace('@', '_at_')}"
    component = re.fullmatch(r"(?:.+/)?rewards?/([^/]*?[A-Za-z][^/]*?)(?:/(?:mean|avg))?", key)
    if component is not None and not held_out:
        terms = _terms(component[1])
        if not terms & (grammar().no_part | grammar().statistics.keys()):
            return f"reward/component/{component[1]}"
    if reason := re.fullmatch(r".*?(?:termination|stop|finish)_reasons?/([^/]+)", key):
        return f"language/stop_reason/{reason[1]}"
    error = re.fullmatch(r".*?errors?(?:_count|_ratio|_rate)?/([^/]+)", key)
    return None if error is None else f"language/error/{error[1]}"


def _by_subject(key: str, *, held_out: bool) -> str | None:
    grammar_ = grammar()
    spelling = key
    for pattern, compound in grammar_.compounds:
        spelling = pattern.sub(compound, spelling)
    path, _, leaf = spelling.rpartition("/")
    terms = _terms(leaf)
    statistic = _statistic(terms)
    while path and not terms - grammar_.statistics.keys() - grammar_.leaf:  # "reward/mean"
        path, _, leaf = path.rpartition("/")
        terms |= _terms(leaf)
        statistic = statistic or _statistic(terms)
    grouped = {"group", "zero"} & (terms | _terms(path))
    terms -= grammar_.held_out | (grammar_.statistics.keys() - ({"std"} if grouped else set()))
    folders = _terms(path) - grammar_.held_out - grammar_.statistics.keys()
    covers = [
        (len(subject), len(subject & terms), metric, subject)
        for subject, metric in grammar_.subjects
        if subject <= terms | folders
        and subject & terms
        and terms - subject <= grammar_.leaf
        and folders - subject <= grammar_.folder
    ]
    if not covers:
        return _held_out_task(key) if held_out and folders - grammar_.folder else None
    _, _, metric, subject = max(covers, key=lambda cover: cover[:2])
    if statistic not in {"", "mean"} and "std" not in subject:
        metrics = grammar_.of_statistic.get(metric, {})
        if statistic not in metrics:
            kind = "held_out" if held_out else "extreme"
            return f"language/{kind}/{metric}/{statistic}"
        metric = metrics[statistic]
    if not held_out:
        return metric
    return grammar_.of_held_out.get(metric, f"language/held_out/{metric}")


def _held_out_task(key: str) -> str | None:
    """Return the score on one held-out set: "eval/aime24/reward/mean"."""
    *folders, leaf = key.split("/")
    if leaf in grammar().statistics and len(folders) > 1:
        leaf = folders.pop()
    scores = grammar().of_held_out.keys() - {"optimiser/loss"}
    return f"outcome/eval_task/{_member([*folders, leaf])}" if meaning(leaf) in scores else None


def _member(segments: list[str]) -> str:
    remaining = [s for s in segments if s.lower() not in grammar().held_out]
    return "/".join(remaining) or segments[-1]


def _terms(text: str) -> set[str]:
    spelt = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    synonyms = grammar().synonyms
    return {synonyms.get(term.lower(), term.lower()) for term in spelt}


def _statistic(terms: set[str]) -> str:
    """Return the statistic that words name, "" for none: the least usual of several."""
    statistics = grammar().statistics
    logged = {statistics[term] for term in terms if term in statistics}
    return next((name for name in grammar().ranks if name in logged), "")
