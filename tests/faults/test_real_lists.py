"""The lists of published real logs and the halves that score them: `scripts/score_real_runs.py`."""

import csv
import json
import runpy
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "scripts" / "score_real_runs.py"
LISTS = sorted((ROOT / "faults" / "real").glob("*.csv"))
OUTSIDE = {"cannot-tell", "too-short", "not-a-training-curve"}


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def rows(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def ids(script, chosen):
    return [row["id"] for _, part in script["rows_of"](chosen) for row in part]


def test_each_row_is_in_one_half(script):
    listed = [row["id"] for file in LISTS for row in rows(file)]
    halves = [name for half in script["HALVES"] for name in ids(script, half)]
    assert sorted(halves) == sorted(listed)
    assert len(set(listed)) == len(listed)


def test_without_a_half_no_unseen_run_is_scored(script):
    unseen = {name for half in script["UNSEEN"] for name in ids(script, half)}
    assert unseen
    assert not unseen & set(ids(script, None))


def test_no_repository_of_an_unseen_half_is_open(script):
    listed = [
        (half, row["repository"].lower())
        for half in script["HALVES"]
        for _, part in script["rows_of"](half)
        for row in part
    ]
    unseen = {name for half, name in listed if half in script["UNSEEN"]}
    assert not unseen & {name for half, name in listed if half not in script["UNSEEN"]}


def test_no_repository_and_no_log_is_in_two_sets(script):
    files = defaultdict(list)  # the lists of a set end in the same number
    for pattern in script["SETS"]:
        files[pattern.rpartition("-")[2]] += [file for file in LISTS if file.match(pattern)]
    assert sorted(file for part in files.values() for file in part) == LISTS
    for column in ("repository", "sha256"):
        sets = [
            {row[column].lower() for file in part for row in rows(file)} for part in files.values()
        ]
        assert all(sets)
        assert sum(map(len, sets)) == len(set().union(*sets))


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_labels_are_of_the_vocabulary(script, file):
    for row in rows(file):
        assert row["outcome"] in script["CURVES"] | OUTSIDE
        assert row["process"] in {"healthy", "faulty", "undecidable"}
        assert row["confidence"] in {"sure", "likely", "unsure"}
        assert row["evidence"]


@pytest.mark.parametrize("option", ["--wrong", "--json=scores.json"])
@pytest.mark.parametrize("half", ["new", "new3", "new4", "new5", "new6", "new7", "new8", "new9"])
def test_single_runs_of_an_unseen_half_are_refused(script, half, option, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["score_real_runs.py", "mirrors", "--half", half, option])
    with pytest.raises(SystemExit) as stop:
        script["main"]()
    assert stop.value.code == 2
    assert f"show single runs of {half}" in capsys.readouterr().err


def test_a_notebook_is_judged_by_its_main_table(script, tmp_path):
    def shown(names, count):
        values = [[n, *[n / 10] * (len(names) - 1)] for n in range(1, count + 1)]
        cells = ["".join(f"<td>{value:g}</td>" for value in row) for row in values]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        head = "".join(f"<th>{name}</th>" for name in names)
        return (
            f"<div><progress value='{count}' max='{count}'></progress> [{count}/{count}]</div>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def notebook(*pages):
        cells = [
            {
                "cell_type": "code", "metadata": {}, "execution_count": 1,
                "source": "trainer.train()",
                "outputs": [
                    {"output_type": "display_data", "metadata": {}, "data": {"text/html": page}}
                ],
            }
            for page in pages
        ]  # fmt: skip
        path = tmp_path / "train.ipynb"
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
        return script["main_run"](path).series

    stage = shown(["Step", "Training Loss"], 30)
    grpo = ["Step", "Training Loss", "reward", "reward_std", "completion_length", "kl"]
    assert "outcome/reward" in notebook(stage, shown(grpo, 12))
    assert "preference/margin" in notebook(stage, shown([*grpo[:2], "rewards / margins"], 12))
