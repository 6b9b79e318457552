"""A disk that is full: one error, the exit code of a failure, and a training that goes on later."""

import os
import shutil
import sys

import forked
import pytest
import rlhf_programs as programs
import small_disk
import trained
from trained import SAID, train

from rlvitals import VitalsError, Word, diagnose
from rlvitals.cli import main
from rlvitals.trainers import full_disk, schema
from rlvitals.trainers.language import console

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
SMALL = 100_000  # bytes: less than the weights, more than any log


@pytest.mark.soak
def test_a_checkpoint_that_does_not_fit_is_one_error_and_the_same_command_goes_on(
    tiny, tmp_path, capfd
):
    out, file = tmp_path / "out", tmp_path / "settings.json"
    shutil.copytree(tiny, out / "base")
    filling = SAID | {"rewards.functions": ("trained:filling",), "rewards.correctness": "filling"}
    file.write_text(schema.text(trained.config(out, **filling)), encoding="utf-8")
    command = ["train", "nsr", "--config", str(file)]
    assert forked.apart(lambda: sys.exit(main(command))) == 1
    told = capfd.readouterr()
    assert told.err.splitlines() == [
        "error: the disk is full: the training cannot go on",
        f"  at:  {out}",
        f"  try: {full_disk.DISK_FULL_HINT}",
    ]
    assert "Traceback" not in told.out
    assert "SafetensorError" in (out / "logs" / "debug.log").read_text()
    assert diagnose(out).verdict.word is Word.FAILED
    train(tmp_path / "straight", base=tiny, **SAID)
    train(out, **SAID)
    assert "is not sealed" not in capfd.readouterr().out
    end = "checkpoint-9"
    assert forked.state(out / end) == forked.state(tmp_path / "straight" / end)


@pytest.mark.soak
def test_rlhf_goes_on_until_what_it_trained_for_does_not_fit(tmp_path, capfd):
    def child():
        made = programs.training(tmp_path / "out")
        collect = made.ppo.collect_rollout

        def filling():
            if made.ppo.counters.updates == 3:
                small_disk.limit(SMALL)
            return collect()

        made.ppo.collect_rollout = filling
        with pytest.raises(VitalsError, match="the disk is full: what was trained last"):
            made.run()

    assert forked.apart(child) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "✓ Checkpoint saved: checkpoint-2 (due)" in lines
    assert not [line for line in lines if "Checkpoint saved: checkpoint-4" in line]
    told = "[checkpoint] checkpoint {} was not saved, the disk is full: training goes on"
    assert [line for line in lines if "not saved" in line] == [told.format(4), told.format(6)]
    programs.run(tmp_path / "whole")
    programs.run(tmp_path / "out")
    assert any("resumed at step 2" in line for line in programs.log(tmp_path / "out"))
    assert programs.last(tmp_path / "out") == programs.last(tmp_path / "whole")


def test_what_does_not_fit_before_training_begins_is_the_same_error(tmp_path, capfd):
    def child():
        small_disk.limit(SMALL)
        short = ["--warm-start-steps", "1", "--quick-test"]
        sys.exit(main(["train", "rlhf", *short, "--output-dir", str(tmp_path / "out")]))

    assert forked.apart(child) == 1
    told = capfd.readouterr()
    assert told.err.startswith("error: the disk is full: the training cannot go on\n  at:  ")
    assert "Traceback" not in told.out + told.err


def test_a_log_that_does_not_fit_ends_nothing(tmp_path, capfd):
    file = tmp_path / "debug.log"

    def child():
        with console.LogFiles(file, console.Progress(wanted=False)) as lines:
            lines.log.debug("what fits %s", "x" * 5000)
            small_disk.limit(5000)
            for _ in range(9):
                lines.log.info("on the console %s", "x" * 50)
                lines.write(["in the file alone"])

    assert forked.apart(child) == 0
    told = capfd.readouterr()
    assert (told.out.count("on the console"), told.err) == (9, "")
    assert "what fits" in file.read_text()
