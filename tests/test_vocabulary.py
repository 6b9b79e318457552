"""The words of the code: names say what a thing is, and the shares below may only fall.

Each number is the count at the last change of this file. A lower count is written here; a higher
one is a name to choose again. CONTRIBUTING.md lists what is meant.
"""

import ast
import gc
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import rlvitals

SOURCE = Path(rlvitals.__file__).parent

VAGUE = {
    "found",
    "one",
    "said",
    "told",
    "at",
    "now",
    "own",
    "held",
    "known",
    "kept",
    "made",
    "seen",
    "whole",
    "given",
    "asked",
    "shown",
    "chosen",
    "left",
    "where",
    "why",
    "before",
    "since",
    "part",
    "parts",
    "word",
    "words",
    "place",
    "other",
    "others",
    "few",
    "many",
    "least",
    "most",
    "rest",
    "here",
    "there",
    "meant",
    "wanted",
    "due",
    "lost",
    "gone",
    "gained",
    "grave",
    "later",
    "early",
    "named",
    "taken",
    "counted",
    "done",
    "ended",
    "began",
    "begun",
    "over",
    "such",
    "same",
    "both",
    "all_",
    "these",
    "those",
    "this",
    "that",
    "what",
    "who",
    "which",
    "whose",
    "alone",
    "beside",
    "apart",
    "about",
    "away",
    "back",
    "again",
    "still",
    "yet",
}
PARTICIPLE = re.compile(r"(ed|en|own|old|aid|ound|eld|ept|one)$")
OPENINGS = {"What", "Whether", "Which", "Where", "How", "Whose", "When", "One", "Since"}
ROOT = "root"  # modules that lie in no folder


class Ratchet(NamedTuple):
    """What a folder has left."""

    vague: float  # percent of its bound names, rounded up
    functions: int  # named by a participle or an adverb
    openings: int  # modules whose docstring begins with one of OPENINGS
    constants: int


RATCHETS = {
    "agents": Ratchet(0.0, 0, 0, 8),
    "alerts": Ratchet(0.0, 0, 0, 14),
    "bucket": Ratchet(0.0, 3, 0, 27),
    "capture": Ratchet(0.0, 0, 0, 13),
    "checkpoints": Ratchet(0.9, 9, 1, 67),
    "cli": Ratchet(0.4, 0, 0, 77),
    "clickhouse": Ratchet(0.0, 0, 0, 32),
    "comparison": Ratchet(0.9, 3, 0, 25),
    "diagnosis": Ratchet(2.1, 0, 0, 67),
    "doctor": Ratchet(0.7, 0, 0, 17),
    "faults": Ratchet(0.9, 3, 0, 47),
    "following": Ratchet(2.0, 0, 1, 13),
    "hosted": Ratchet(0.0, 0, 0, 9),
    "integrations": Ratchet(0.2, 4, 1, 21),
    "intervene": Ratchet(0.0, 0, 0, 0),
    "metrics": Ratchet(0.9, 2, 2, 657),
    "readers": Ratchet(1.7, 27, 3, 382),
    "rollouts": Ratchet(2.5, 0, 0, 44),
    "root": Ratchet(3.3, 7, 1, 13),
    "rules": Ratchet(0.9, 2, 3, 677),
    "sanity_checks": Ratchet(3.5, 3, 0, 3),
    "server": Ratchet(0.0, 0, 0, 41),
    "signals": Ratchet(0.4, 1, 0, 45),
    "startup": Ratchet(0.0, 0, 0, 0),
    "storage": Ratchet(0.7, 8, 0, 108),
    "tracking": Ratchet(0.3, 9, 0, 87),
    "trainers": Ratchet(0.6, 12, 0, 179),
    "views": Ratchet(0.9, 3, 0, 135),
    "wandb": Ratchet(0.0, 1, 0, 2),
}
# Each file of its kind ends with one: a descriptor is no constant.
DESCRIPTORS = {
    *("RULE", "READER", "COMMAND", "FIGURE", "SINK", "NAMES", "DIALECT", "METRICS", "MEASURE"),
    *("TRAIN_COMMAND", "T"),
}
SHARED_CONSTANTS = 1  # CATALOGUE, of metrics and of rules
SHARED_MODULE_NAMES = 85  # base names of modules in several folders; `errors`, `sb3` are W&B's


def folder(path):
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ROOT


@cache
def trees():
    return {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


@pytest.fixture(scope="module", autouse=True)
def uncollected():
    """A million nodes of trees: to walk them takes longer than to parse, and later tests 1 s each.

    That is: in each full garbage collection, with which each Trainer begins.
    """
    gc.disable()
    yield
    trees.cache_clear()
    gc.enable()


def bound_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def constants(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            for name in getattr(target, "elts", [target]):
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id


@cache
def counts():
    """Return bound names, vague ones, participle functions and openings of each folder."""
    table = defaultdict(Counter)
    for path, tree in trees().items():
        place = table[folder(path)]
        names = [name for name in bound_names(tree) if name not in {"self", "cls", "_"}]
        place["names"] += len(names)
        place["vague"] += sum(name in VAGUE for name in names)
        place["constants"] += len(set(constants(tree)))
        place["openings"] += (ast.get_docstring(tree) or ".").split()[0].strip("`:,") in OPENINGS
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                name = node.name
                place["functions"] += name.strip("_") in VAGUE or bool(PARTICIPLE.search(name))
    return table


def test_every_folder_has_its_numbers():
    assert set(RATCHETS) == set(counts())


@pytest.mark.parametrize("place", sorted(RATCHETS))
def test_names_say_what_things_are(place):
    count, bound = counts()[place], RATCHETS[place]
    assert 100 * count["vague"] <= bound.vague * count["names"]
    assert count["functions"] <= bound.functions
    assert count["openings"] <= bound.openings
    assert count["constants"] <= bound.constants


def test_constants_have_names_of_their_own():
    """A metric is named within its group: `policy.LOSS` and `value.LOSS` are two."""
    owners = defaultdict(set)
    for path, tree in trees().items():
        if path.parent == SOURCE / "metrics" / "catalogue":
            continue
        for name in set(constants(tree)):
            owners[name].add(path)
    shared = {n for n, paths in owners.items() if len(paths) > 1 and n not in DESCRIPTORS}
    assert len(shared) <= SHARED_CONSTANTS, sorted(shared)


def test_modules_have_names_of_their_own():
    names = Counter(path.stem for path in trees() if path.stem != "__init__")
    shared = {name for name, count in names.items() if count > 1}
    assert len(shared) <= SHARED_MODULE_NAMES, sorted(shared)


def test_test_modules_have_names_of_their_own():
    """The folders of tests are no packages: pytest imports each module by its base name."""
    names = Counter(path.name for path in (SOURCE.parents[1] / "tests").rglob("*.py"))
    assert not [name for name, count in names.items() if count > 1 and name != "conftest.py"]
