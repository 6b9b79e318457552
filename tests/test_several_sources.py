"""One run that its trainer, TensorBoard and a tracker logged: nothing is counted twice."""

import json

import leveldb
import numpy as np
import tfrecords

import rlvitals
from rlvitals.cli import main

ROWS = 60
STEPS = 2048 * np.arange(1, ROWS + 1)
RETURN = np.linspace(20, 400, ROWS) + 3 * np.sin(np.arange(ROWS))
KL = 0.01 + 0.002 * np.cos(np.arange(ROWS))
START = 1_700_000_000


def events(folder, returns=RETURN, steps=STEPS):
    """Write an event file into a folder; the last steps may be left out."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        tfrecords.event(
            int(step),
            tfrecords.simple("rollout/ep_rew_mean", value),
            tfrecords.simple("train/approx_kl", kl),
            time=START + 2.0 * i,
        )
        for i, (step, value, kl) in enumerate(zip(steps, returns, KL, strict=False))
    ]
    data = tfrecords.VERSION + b"".join(records)
    (folder / "events.out.tfevents.1700000000.host.1.0").write_bytes(data)


def table(folder):
    """Every other row, and the entropy, which stands here alone."""
    head = "time/total_timesteps,rollout/ep_rew_mean,train/entropy_loss\n"
    rows = [f"{STEPS[i]},{RETURN[i]:.6g},{-0.6 + i / 200}\n" for i in range(0, ROWS, 2)]
    (folder / "progress.csv").write_text(head + "".join(rows))


def tracker(folder):
    """By its own row numbers: the critic's share, which stands here alone."""
    records = []
    for i in range(ROWS):
        row = {"_step": i, "_timestamp": START + 2.0 * i, "train/explained_variance": i / ROWS}
        items = [
            tfrecords.text(1, tfrecords.text(1, key) + tfrecords.text(16, json.dumps(value)))
            for key, value in row.items()
        ]
        history = b"".join(items) + tfrecords.text(2, tfrecords.integer(1, i))
        records.append(tfrecords.integer(1, i) + tfrecords.text(2, history))
    place = folder / "wandb" / "run-20231114_221320-abc"
    place.mkdir(parents=True)
    (place / "run-abc.wandb").write_bytes(leveldb.framed(leveldb.WANDB, records)[0])


def test_each_metric_is_read_once_and_stands_at_the_trainer_s_steps(tmp_path):
    for write in (events, table, tracker):
        write(tmp_path)
    run = rlvitals.trace(tmp_path)
    assert run.step_unit == "environment steps"
    for name in ("outcome/return", "policy/approx_kl", "value/explained_variance"):
        assert run[name].steps.tolist() == STEPS.tolist(), name
    assert run["exploration/entropy"].steps.tolist() == STEPS[::2].tolist()
    assert run.measured["outcome/return"].where.startswith("events")
    tracked = "wandb/run-20231114_221320-abc/run-abc.wandb counts other steps than events"
    assert any(note.startswith(tracked) and note.endswith("wall times") for note in run.notes)
    taken = [note for note in run.notes if "read from" in note]
    assert len(taken) == 1
    assert taken[0].startswith("progress.csv: 1 of its 2 metrics is read from events")


def test_more_sources_of_a_run_change_no_finding(tmp_path):
    for name, writers in {"alone": (events,), "merged": (events, table, tracker)}.items():
        (tmp_path / name).mkdir()
        for write in writers:
            write(tmp_path / name)
    alone = rlvitals.diagnose(tmp_path / "alone")
    merged = rlvitals.diagnose(tmp_path / "merged")
    assert merged.verdict == alone.verdict
    judged = {rule.name for rule in alone.clear} | {rule.name for rule, _ in alone.findings}
    assert judged < {rule.name for rule in merged.clear} | {r.name for r, _ in merged.findings}
    found = {rule.name: (f.began, f.observed) for rule, f in merged.findings}
    assert {rule.name: (f.began, f.observed) for rule, f in alone.findings}.items() <= found.items()


def test_where_numbers_come_from_is_one_line_of_a_report(tmp_path, capsys):
    for write in (events, table, tracker):
        write(tmp_path)
    main(["diagnose", str(tmp_path)])
    short = capsys.readouterr().out
    main(["diagnose", "-v", str(tmp_path)])
    whole = capsys.readouterr().out
    main(["diagnose", "--json", str(tmp_path)])
    notes = json.loads(capsys.readouterr().out)["trace"]["notes"]
    (source,) = [note for note in notes if " read from " in note]
    assert "1 note on which of several files or keys is read: -v" in short
    assert " read from " not in short
    assert source in " ".join(whole.split())
