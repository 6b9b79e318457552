"""Draws roots of runs with odd names, settings and numbers, and says which runs fit a search."""

import math
import operator
import shutil
import string

import numpy as np
from hypothesis import strategies as st

from rlvitals.storage import search_terms
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.storage.run_query import IndexedFinding
from rlvitals.storage.search_terms import FieldTerm, SettingTerm, TagTerm, TextTerm

ODD = "aBzé Ä%_\\'\"`{}:-.\t\n☃𝄞"
TEXTS = st.one_of(
    st.text(ODD, max_size=6),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6),
)
FOLDERS = st.text("aBé%_'\\{}-☃ ", min_size=1, max_size=4)
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.5, math.nan, math.inf, -math.inf]),
    st.floats(width=32),
)
VALUES = st.one_of(NUMBERS, TEXTS, st.booleans(), st.none(), st.integers(-3, 2**70), st.just([1]))
KEYS = st.sampled_from(["lr", "LR", "net/lr", "net/Lr", "env", "x_y", "x-y", "é", "seed"])
VERDICTS = st.sampled_from(["", "learning", "failed"])
METRICS = st.sampled_from(["loss", "train/é", "it's", "{p:String}"])
SERIES = st.lists(st.tuples(st.integers(-20, 60), NUMBERS), max_size=25)
JOBS = st.fixed_dictionaries(
    {"scheduler": st.just("Slurm"), "id": TEXTS.filter(bool)},
    optional={"array_index": st.just("7"), "node": TEXTS, "restarts": st.sampled_from("02")},
)
RUN = st.fixed_dictionaries(
    {
        "name": TEXTS, "project": TEXTS, "group": TEXTS, "notes": TEXTS,
        "tags": st.lists(TEXTS, max_size=2).map(tuple),
        "seed": st.none() | st.integers(-(2**70), 2**70) | st.integers(0, 2),
        "settings": st.dictionaries(KEYS, VALUES, max_size=4),
        "verdict": VERDICTS,
        "job": st.just({}) | JOBS,
        "attempts": st.lists(st.dictionaries(METRICS, SERIES, max_size=2), max_size=2),
    }
)  # fmt: skip
ROOTS = st.dictionaries(FOLDERS.filter(lambda name: name.strip()), RUN, max_size=4)
OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
WORDS = st.one_of(
    TEXTS,
    st.builds("{}:{}".format, st.sampled_from(["tag", *search_terms.SEARCH_FIELDS]), TEXTS),
    st.builds(
        "{}{}{}".format,
        KEYS,
        st.sampled_from(list(OPERATORS)),
        st.sampled_from(["1", "0.5", "-0", "inf", "nan", "true", "null", "é", "1e300"]) | TEXTS,
    ),
)


def write(root, runs):
    """Write a root's runs, new from the beginning."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for folder, content in runs.items():
        write_run(root / folder, content)


def write_run(folder, content):
    """Write a run; each attempt is a file."""
    fields = ("name", "project", "group", "notes", "tags", "seed", "settings")
    more = {"job": content["job"]} if content.get("job") else {}
    run = RunFolder.create(folder, About(**{name: content[name] for name in fields}, more=more))
    for attempt in content["attempts"]:
        run, number, file = run.begin()
        writer = Writer(file)
        append(writer, attempt)
        writer.close()
        run.events.append("finish", attempt=number, status="finished")


def append(writer, series):
    """Append series, one block each."""
    for key, points in series.items():
        steps = np.array([step for step, _ in points], np.int64)
        values = np.array([[value for _, value in points]], np.float64)
        writer.scalars((key,), steps, 1e9 + np.arange(len(steps)) / 7, values)
    writer.flush()


def verdicts(runs):
    """Return what a judge says of the runs: words, summaries and findings."""
    words = {path: run["verdict"] for path, run in runs.items() if run["verdict"]}
    rows = {
        path: [
            IndexedFinding("rule", "error", "loss", -1, 5, None, runs[path]["notes"]),
            IndexedFinding("other", "note", "é", 0, 2**40, 0.5, "'"),
        ]
        for path in words
    }
    return words, {path: f"{{{word}}}" for path, word in words.items()}, rows


def fits(record, words):
    """Return whether a run fits a search, by the documented meaning of the words."""
    return all(_fits_term(record, term) for term in search_terms.parse(words))


def _fits_term(record, term):
    entry = record.entry
    match term:
        case TextTerm(text):
            texts = (entry.path, entry.name, entry.project, entry.group, record.notes)
            return any(
                contains(t, text) for t in (*texts, entry.status, entry.verdict, *entry.tags)
            )
        case TagTerm(tag):
            return tag in entry.tags
        case FieldTerm("notes", text):
            return contains(record.notes, text)
        case FieldTerm(field, text):
            return contains(getattr(entry, field), text)
        case SettingTerm(key, sign, operand):
            return any(
                (cell.key == key or fold(cell.key).endswith(fold(f"/{key}")))
                and _compares(cell, sign, operand)
                for cell in record.settings
            )


def _compares(cell, sign, operand):
    value = cell.text if isinstance(operand, str) else cell.number
    return value is not None and OPERATORS[sign](value, operand)


def contains(text, part):
    return fold(part) in fold(text)


def fold(text):
    """Lower the ASCII letters."""
    return text.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))
