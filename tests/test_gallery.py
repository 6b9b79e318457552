"""The gallery shows every fault, by a run that no result chose, and the rules' pages link to it."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rlvitals import rules
from rlvitals.faults import folder, ground_truth
from rlvitals.faults.catalogue import FAULTS, find_fault

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

import draw_gallery  # noqa: E402 - a script, not installed
import write_docs  # noqa: E402

PAGE = draw_gallery.PAGE.read_text()
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}
MAX_BYTES = 3_000_000  # of all pictures


def test_every_fault_has_its_section_in_the_order_of_the_catalogue():
    assert list(SECTIONS) == [fault.name for fault in FAULTS]
    for name, text in SECTIONS.items():
        assert f"](gallery/{name}.svg)" in text
        assert "```text\n" in text
        assert text.count("The symptom: ") == 1


def test_every_picture_is_of_a_fault_and_all_are_small():
    pictures = sorted(draw_gallery.PICTURES.iterdir())
    assert [path.name for path in pictures] == sorted(f"{name}.svg" for name in SECTIONS)
    assert sum(path.stat().st_size for path in pictures) < MAX_BYTES
    for path in pictures:
        text = path.read_text()
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - ours
        assert path.stem in text
        # A browser leaves out the spaces that a text begins with: a unit would touch its title.
        assert not re.search(r">[ ]+[^\s<][^<]*</text>", text), path.name


@pytest.mark.parametrize("name", ["weight-nan", "reward-flipped"])
def test_a_run_is_chosen_by_its_name_and_its_true_return(name):
    runs = folder.read(draw_gallery.RUNS)
    levels = ground_truth.levels(runs)
    run = draw_gallery.choose(find_fault(name), runs, levels)
    assert "\n```text\n" in SECTIONS[name]
    assert f" {run.name}: " in SECTIONS[name]
    assert f"({run.task})" in SECTIONS[name]
    assert ground_truth.label(run, levels[run.task]) is ground_truth.Label.BROKEN


def test_a_rule_that_a_report_names_links_to_it():
    names = {rule.name for rule in rules.CATALOGUE}
    shown = {
        rule
        for text in SECTIONS.values()
        for rule in re.findall(r"^\w+\[(.*?)\]", text, re.MULTILINE)
    }
    assert len(shown & names) > 10
    for rule in names:
        page = (ROOT / "docs" / "rules" / f"{rule}.md").read_text()
        faults = write_docs.gallery_faults(rule)
        assert bool(faults) == (rule in shown)
        assert all(f"](../gallery.md#{fault})" in page for fault in faults)
