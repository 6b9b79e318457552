"""`rlvitals report`: the file it writes, what it says of runs it cannot read, its exit codes."""

import re

import pytest
from small_logs import write

import rlvitals


def page_of(path):
    return path.read_text(encoding="utf-8")


def test_one_run_becomes_one_file(call, failing, tmp_path):
    code, out, errors = call("report", failing)
    page = page_of(tmp_path / "report.html")
    assert (code, errors) == (0, "")
    assert re.fullmatch(r"report.html: \d+ kB\n", out)
    assert page.startswith("<!DOCTYPE html>\n")
    assert "kl-above-target" in page
    assert "outcome/return" in page
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".html"] == ["report.html"]


def test_the_page_is_opened_in_the_browser(call, healthy, tmp_path, monkeypatch):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    assert call("report", healthy, "--open")[0] == 0
    assert opened.read_text().strip() == (tmp_path / "report.html").as_uri()
    assert call("report", healthy, "--open", "--markdown")[0] == 2


def test_it_is_written_where_one_says(call, healthy, tmp_path):
    assert call("report", healthy, "-o", tmp_path / "new" / "page.html")[0] == 0
    assert (tmp_path / "new" / "page.html").stat().st_size > 30_000


def test_a_place_that_takes_no_file_is_wrong_usage(call, healthy, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, errors = call("report", healthy, "-o", tmp_path / "file" / "page.html")
    assert code == 2
    assert "no report can be written there" in errors


def test_nothing_readable_writes_nothing(call, tmp_path):
    (tmp_path / "empty").mkdir()
    code, out, errors = call("report", tmp_path / "empty")
    assert (code, out) == (3, "")
    assert "no training log in this folder" in errors
    assert not (tmp_path / "report.html").exists()


def test_a_run_that_cannot_be_read_stops_no_other(call, healthy, failing, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, errors = call("report", healthy, tmp_path / "empty", failing)
    page = page_of(tmp_path / "report.html")
    assert code == 3
    assert "no training log in this folder" in errors
    assert "3 runs" in page
    assert page.index("unreadable") < page.index("kl-above-target") < page.index("learning")
    assert page.count('class="run"') == 2


def test_labels_name_the_runs_and_their_count_must_fit(call, healthy, failing, tmp_path):
    assert call("report", healthy, failing, "--labels", "good", "bad")[0] == 0
    page = page_of(tmp_path / "report.html")
    assert ">good</a>" in page
    assert ">bad</a>" in page
    assert call("report", healthy, failing, "--labels", "same", "same")[0] == 0
    assert page_of(tmp_path / "report.html").count('class="run"') == 2
    code, _, errors = call("report", healthy, failing, "--labels", "good")
    assert code == 2
    assert "1 label for 2 runs" in errors


@pytest.mark.parametrize("to", ["stdout", "file"])
def test_markdown_for_a_pull_request(call, failing, tmp_path, to):
    output_flags = ["-o", tmp_path / "comment.md"] if to == "file" else []
    code, out, _ = call("report", failing, "--markdown", *output_flags)
    text = (tmp_path / "comment.md").read_text(encoding="utf-8") if output_flags else out
    assert code == 0
    assert text.startswith("## ")
    assert "`kl-above-target`" in text
    assert not (tmp_path / "report.html").exists()


def test_what_a_person_says_of_the_run_is_heard(call, tmp_path):
    run = write(tmp_path / "run", kl=0.1)
    call("report", run, "--set", "target_kl=0.25", "--map", "my/score=outcome/success_rate")
    page = page_of(tmp_path / "report.html")
    assert "target_kl" in page
    assert "outcome/success_rate" in page


def test_what_no_table_knows_is_drawn_all_the_same(call, healthy, tmp_path):
    call("report", healthy)
    page = page_of(tmp_path / "report.html")
    assert "Unknown names: shown, not judged" in page
    assert '"title":"my/score"' in page
    call("report", healthy, "--map", "my/score=outcome/success_rate")
    assert '"title":"my/score"' not in page_of(tmp_path / "report.html")


def test_a_run_folder_tells_its_environment_events_completions_and_checkpoints(call, tmp_path):
    folder = tmp_path / "mine"
    run = rlvitals.start(folder, settings={"learning_rate": 3e-4})
    for step in range(30):
        run.log(step, {"reward": step / 30, "kl": 0.01})
    run.log_table(29, "completions", {"prompt": ["2+2?"], "completion": ["it is\n4"], "r": [0.75]})
    run.log_text(29, "remark", "looks fine")
    with rlvitals.Checkpoints(folder).save(29) as place:
        (place / "weights.bin").write_bytes(b"1234")
    run.finish()
    assert call("report", folder)[0] == 0
    page = page_of(tmp_path / "report.html")
    for text in ("it is\n4", "0.75", "looks fine", "checkpoint-29", "numpy", "learning_rate",
                 ">start<", ">finish<"):  # fmt: skip
        assert text in page
