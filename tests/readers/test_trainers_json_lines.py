"""The JSON lines of verl, prime-rl and danijar's elements, written as their sources write them."""

import json
import time

import numpy as np
import orjson
import pytest
from loading import read_log
from test_sources import build

from rlvitals.errors import UnreadableLog
from rlvitals.readers import plain_jsonl
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head
from rlvitals.readers.select import reader_of

READER = plain_jsonl.READER


class VerlLogger:
    """As `verl/utils/tracking.py`, FileLogger."""

    def __init__(self, path):
        self.file = path.open("wb", buffering=0)

    def log(self, data, step):
        line = orjson.dumps({"step": step, "data": data}, option=orjson.OPT_SERIALIZE_NUMPY)
        self.file.write(line + b"\n")


class PrimeMonitor:
    """As `prime_rl/monitors/file.py`, FileMonitor: trainer and orchestrator have one each."""

    def __init__(self, path):
        self.file = path.open("a", buffering=1)

    def log(self, metrics, step):
        self.file.write(json.dumps({"step": step, "time": time.time(), **metrics}) + "\n")


class ElementsOutput:
    """As `elements/logger.py`, JSONLOutput."""

    def __init__(self, path):
        self.path = path

    def write(self, by_step):
        lines = "".join(json.dumps({"step": s, **row}) + "\n" for s, row in by_step.items())
        with self.path.open("a") as file:
            file.write(lines)


def verl_row(step, reward):
    return {
        "training/global_step": step,
        "training/epoch": 0,
        "actor/kl_loss": np.float32(0.25),
        "critic/score/mean": reward,
        "timing_s/step": 31.5,
        "response_length/max": np.int64(128),
    }


def test_verl(tmp_path):
    path = tmp_path / "experiment.jsonl"
    logger = VerlLogger(path)
    logger.log({"val-core/gsm8k/acc/mean@1": 0.125}, step=0)  # before training
    for step in (1, 2, 3):
        logger.log(verl_row(step, step / 8), step)
    logger.log({"val-core/gsm8k/acc/mean@1": 0.5}, step=3)
    logger.file.close()
    log = read_log(path)
    assert log.notes == ()
    assert log.series["critic/score/mean"].steps.tolist() == [1, 2, 3]
    assert log.series["critic/score/mean"].values.tolist() == [1 / 8, 2 / 8, 3 / 8]
    assert log.series["val-core/gsm8k/acc/mean@1"].steps.tolist() == [0, 3]
    assert log.series["timing_s/step"].values.tolist() == [31.5] * 3
    assert log.series["response_length/max"].values.tolist() == [128.0] * 3


def test_verls_own_step_counts_where_data_names_another(tmp_path):
    path = tmp_path / "experiment.jsonl"
    logger = VerlLogger(path)
    logger.log(verl_row(1, 0.5), step=1)
    logger.log({"val-core/acc": 0.5}, step=1)  # has no training/global_step
    logger.file.close()
    log = read_log(path)
    assert log.series["val-core/acc"].steps.tolist() == [1]
    assert log.notes == ()


@pytest.mark.parametrize("resumed_at", [1, 4])
def test_a_restart_of_verl_truncates_its_file(tmp_path, resumed_at):
    path = tmp_path / "experiment.jsonl"
    logger = VerlLogger(path)
    for step in (1, 2, 3):
        logger.log(verl_row(step, 0.5), step)
    _, cursor = READER.read(path, None)
    logger.file.close()
    again = VerlLogger(path)
    log, cursor = READER.read(path, cursor)
    assert log.notes == (REPLACED_NOTE,)
    assert log.series == {}
    for step in range(resumed_at, resumed_at + 5):  # soon longer than the file before
        again.log(verl_row(step, 0.75), step)
        log, cursor = READER.read(path, cursor)
        assert log.series["critic/score/mean"].steps.tolist() == [step]
    again.file.close()
    expected = list(range(resumed_at, resumed_at + 5))
    assert read_log(path).series["critic/score/mean"].steps.tolist() == expected


@pytest.mark.parametrize("resumed_at", [1, 4])
def test_a_restart_seen_late_is_read_from_its_start(tmp_path, resumed_at):
    path = tmp_path / "experiment.jsonl"
    logger = VerlLogger(path)
    for step in (1, 2, 3):
        logger.log(verl_row(step, 0.5), step)
    _, cursor = READER.read(path, None)
    logger.file.close()
    again = VerlLogger(path)
    for step in range(resumed_at, resumed_at + 9):
        again.log(verl_row(step, 0.75), step)
    log, _ = READER.read(path, cursor)
    again.file.close()
    assert REPLACED_NOTE in log.notes
    assert len(log.series["critic/score/mean"]) == 9


def test_prime_rls_trainer_and_orchestrator_share_a_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    trainer, orchestrator = PrimeMonitor(path), PrimeMonitor(path)
    start = time.time()
    for step in range(4):
        orchestrator.log({"reward/mean": step / 4, "time/step": 9.5, "progress/tokens": 64}, step)
        if step:  # one step behind
            trainer.log({"optim/lr": 1e-6, "optim/grad_norm": 0.5, "time/step": 3.5}, step - 1)
    trainer.file.close()
    orchestrator.file.close()
    log = read_log(path)
    assert log.notes == ()
    assert log.series["reward/mean"].steps.tolist() == [0, 1, 2, 3]
    assert log.series["optim/grad_norm"].steps.tolist() == [0, 1, 2]
    assert (log.series["reward/mean"].times >= start).all()
    # Both name a time of theirs alike: neither is lost.
    assert sorted(log.series["time/step"].values) == [3.5] * 3 + [9.5] * 4


def test_a_restart_of_prime_rl_goes_on_in_its_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for attempt in ((1, 2, 3, 4), (3, 4, 5)):
        monitor = PrimeMonitor(path)
        for step in attempt:
            monitor.log({"reward/mean": step / 8}, step)
        monitor.file.close()
    log = read_log(path)
    assert log.series["reward/mean"].steps.tolist() == [1, 2, 3, 4, 3, 4, 5]
    assert log.notes == ()


def test_elements_metrics_and_scores_are_one_run(tmp_path):
    (tmp_path / "dreamer").mkdir()
    metrics = ElementsOutput(tmp_path / "dreamer" / "metrics.jsonl")
    scores = ElementsOutput(tmp_path / "dreamer" / "scores.jsonl")
    for step in (1000, 2000):
        scores.write({step: {"episode/score": step / 100}})
        row = {"train/loss/image": 2.0, "fps/train": 64.0, "train/opt/updates": step / 8}
        metrics.write({step: {**row, "replay/inserts": 12.0}})
    (run,) = sources.find(tmp_path)
    assert run.name == "dreamer"
    found = {key: s.steps.tolist() for log in sources.read(run) for key, s in log.series.items()}
    keys = {"train/loss/image", "fps/train", "train/opt/updates", "replay/inserts", "episode/score"}
    assert set(found) == keys
    assert all(steps == [1000, 2000] for steps in found.values())


SAMPLES = {
    "verl's generations": ("rollouts/12.jsonl", {"input": "q", "output": "a", "gts": "x"}),
    "prime-rl's traces": ("rollouts/step_3/train/all/traces.jsonl", {"reward": 0.5}),
    "prime-rl's tokens": ("token_exports/step_3/rank_0.jsonl", {"token_ids": [1, 2]}),
    "chats": ("chats.jsonl", {"messages": [{"role": "user", "content": "q"}]}),
    "completions": ("dump.jsonl", {"prompt": "q", "completion": "a", "reward": 1.0}),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_samples_with_their_step_are_no_log(tmp_path, case):
    name, row = SAMPLES[case]
    rows = "".join(json.dumps({**row, "score": 1.0, "step": 12}) + "\n" for _ in range(3))
    build(tmp_path, {name: rows.encode()})
    path = tmp_path / name
    assert not READER.claims(path, read_head(path))
    with pytest.raises(UnreadableLog, match="not a training log"):
        reader_of(path)


def test_nulls_are_said(tmp_path):
    path = tmp_path / "m.jsonl"
    rows = [{"step": n, "reward": None if n % 2 else n, "kl": None, "loss": 1.0} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(path)
    assert log.notes == ("12 nulls left out: 8 under `kl`, 4 under `reward`",)
    assert len(log.series["reward"]) == 4
    more = dict.fromkeys("abcde")
    path.write_text(json.dumps({"step": 1, "loss": 1.0, **more}) + "\n")
    assert read_log(path).notes[0].endswith("1 under `c` and 2 more keys")
