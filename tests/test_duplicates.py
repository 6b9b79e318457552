"""One training that several trackers logged into folders of their own is listed once."""

import json
import shutil
import time

import numpy as np
import pytest
from following import Followed, of
from test_several_sources import KL, RETURN, STEPS, events
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import settings
from rlvitals.agents.workspace import Workspace
from rlvitals.cli import main
from rlvitals.diagnosis import batch
from rlvitals.following import changes
from rlvitals.readers.discovery import sources
from rlvitals.server.fleet import Fleet


def table(folder, returns=RETURN, kl=KL):
    folder.mkdir(parents=True)
    columns = zip(STEPS.tolist(), returns.tolist(), kl.tolist(), strict=True)
    rows = [f"{s},{r!r},{k!r}\n" for s, r, k in columns]
    head = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl\n"
    (folder / "progress.csv").write_text(head + "".join(rows))


def recorded(folder, returns=RETURN, **settings):
    with rlvitals.start(folder, settings=settings) as run:
        for step, value, kl in zip(STEPS.tolist(), returns.tolist(), KL.tolist(), strict=True):
            run.log(step, {"rollout/ep_rew_mean": value, "train/approx_kl": kl})


def listed(folder, capsys):
    capsys.readouterr()
    main(["diagnose", str(folder), "--json", "--fail-on", "never"])
    documents = json.loads(capsys.readouterr().out)
    documents = documents if isinstance(documents, list) else [documents]
    return {each["trace"]["name"]: each["trace"]["notes"] for each in documents}


def test_three_logs_of_a_training_are_one_run_that_names_the_others(tmp_path, capsys):
    recorded(tmp_path / "run", seed=1)
    events(tmp_path / "tb" / "ppo")
    table(tmp_path / "csv" / "ppo")
    ((name, notes),) = listed(tmp_path, capsys).items()
    assert name == "run"
    texts = [note for note in notes if "logs the same training" in note]
    assert [str(tmp_path / "csv/ppo") in texts[0], str(tmp_path / "tb/ppo") in texts[1]] == [1, 1]


def monitored(folder, returns=RETURN, length=20):
    """A CSV of SB3's logger beside its monitor, whose episodes are judged in place of the mean."""
    table(folder, returns)
    episodes = np.repeat(returns, 5) + np.random.default_rng(3).normal(size=5 * len(returns))
    lines = [f"{value:.6f},{length},{i}.0\n" for i, value in enumerate(episodes)]
    (folder / "0.monitor.csv").write_text('#{"t_start": 1.0}\nr,l,t\n' + "".join(lines))


def with_loss(folder, loss=RETURN):
    """Add a loss to the CSV of SB3's logger."""
    lines = (folder / "progress.csv").read_text().splitlines()
    rows = [f"{line},{value!r}" for line, value in zip(lines[1:], loss.tolist(), strict=True)]
    (folder / "progress.csv").write_text("\n".join([f"{lines[0]},train/loss", *rows, ""]))


def test_a_csv_beside_a_monitor_is_the_recorded_training_by_its_loss(tmp_path, capsys):
    with rlvitals.start(tmp_path / "run") as run:
        for step, value, kl in zip(STEPS.tolist(), RETURN.tolist(), KL.tolist(), strict=True):
            row = {"rollout/ep_rew_mean": value, "train/approx_kl": kl, "train/loss": value}
            run.log(step, row)
    for name in ("csv", "other"):
        monitored(tmp_path / name / "ppo")
    with_loss(tmp_path / "csv" / "ppo")
    with_loss(tmp_path / "other" / "ppo", RETURN + 0.01)
    runs = listed(tmp_path, capsys)
    assert set(runs) == {"csv/ppo", "other/ppo"}
    assert any("logs the same training" in note for note in runs["csv/ppo"])


def printed(file, returns):
    file.parent.mkdir(parents=True)
    rows = zip(STEPS.tolist(), returns.tolist(), strict=True)
    lines = [f"step={step} ep_rew_mean={value:.3g} loss={value / 3:.3g}" for step, value in rows]
    file.write_text("\n".join([*lines, ""]))


def test_what_a_training_printed_too_is_no_run_of_its_own(tmp_path, capsys):
    recorded(tmp_path / "run")
    printed(tmp_path / "console" / "ppo.log", RETURN)
    printed(tmp_path / "again" / "ppo.log", RETURN)
    assert list(listed(tmp_path, capsys)) == ["run"]
    printed(tmp_path / "seed-2" / "ppo.log", RETURN + 3 * KL / KL.max())
    assert len(listed(tmp_path, capsys)) == 2


def test_the_output_that_a_tracker_keeps_hides_no_copy(tmp_path, capsys):
    """A W&B folder has an output.log, and the person kept the output too."""
    recorded(tmp_path / "run", seed=1)
    events(tmp_path / "kept")
    rows = zip(STEPS.tolist(), RETURN.tolist(), strict=True)
    lines = "".join(f"step={step} ep_rew_mean={value!r}\n" for step, value in rows)
    for file in ("kept/output.log", "output.txt"):
        (tmp_path / file).write_text(lines)
    (run,) = sources.find(tmp_path / "kept")
    assert run.trackers == {"tensorboard", "console"}
    assert len(listed(tmp_path, capsys)) == 1


def test_what_a_training_printed_beside_its_monitor_is_no_run_of_its_own(tmp_path, capsys):
    """The console has a mean of 100 episodes, the monitor each of them."""
    monitored(tmp_path / "out", length=int(STEPS[-1]) // (5 * len(STEPS)))
    with_loss(tmp_path / "out", RETURN / 3)
    block = "|    ep_rew_mean | {:.3g} |\n| time/ | |\n|    total_timesteps | {} |\n"
    block = "| rollout/ | |\n" + block + "| train/ | |\n|    loss | {:.3g} |\n"
    rule = "-" * 30 + "\n"
    rows = zip(RETURN, STEPS, RETURN / 3, strict=True)
    text = "".join(rule + block.format(*row) + rule for row in rows)
    (tmp_path / "train.log").write_text(text)
    assert list(listed(tmp_path, capsys)) == ["out"]


def test_a_training_that_learns_nothing_is_told_by_the_lengths_that_it_samples(tmp_path, capsys):
    """Every reward is 1: no loss, no gradient, and the entropy stays where it was."""
    lengths = 12.0 + np.random.default_rng(0).normal(size=20)
    rows = [
        {"loss": 0.0, "reward": 1.0, "completions/mean_length": length, "step": i + 1}
        for i, length in enumerate(lengths.tolist())
    ]
    state = {"global_step": 20, "max_steps": 20, "log_history": rows}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trainer_state.json").write_text(json.dumps(state))
    printed = [{key: f"{row[key]:.4g}" for key in row if key != "step"} for row in rows]
    (tmp_path / "train.log").write_text("".join(f"{row}\n" for row in printed))
    assert list(listed(tmp_path, capsys)) == ["out"]


def trainer_log(folder, losses):
    """Write a DPO trainer's state and what it prints to stdout: no step, four digits."""
    rows = [
        {"loss": loss, "rewards/margins": 1 - loss, "epoch": i / 5, "step": 5 * (i + 1)}
        for i, loss in enumerate(losses)
    ]
    state = {"global_step": 5 * len(rows), "max_steps": 5 * len(rows), "log_history": rows}
    (folder / "dpo" / "checkpoint-100").mkdir(parents=True)
    (folder / "dpo" / "checkpoint-100" / "trainer_state.json").write_text(json.dumps(state))
    printed = [{key: f"{row[key]:.4g}" for key in row if key != "step"} for row in rows]
    (folder / "train.log").write_text("".join(f"{row}\n" for row in printed))


@pytest.mark.parametrize(("change", "count"), [(0.0, 1), (0.02, 2)])
def test_a_trainer_s_stdout_has_no_steps_and_is_no_run_of_its_own(tmp_path, capsys, change, count):
    losses = [0.69 - 0.01 * i + 0.003 * (i % 3) for i in range(20)]
    trainer_log(tmp_path, losses)
    if change:  # the log of another seed
        shutil.rmtree(tmp_path / "dpo")
        printed = (tmp_path / "train.log").read_text()
        trainer_log(tmp_path, [*losses[:-1], losses[-1] + change])
        (tmp_path / "train.log").write_text(printed)
    assert len(listed(tmp_path, capsys)) == count


def test_counted_rows_of_few_values_may_be_those_of_another_run(tmp_path, capsys):
    trainer_log(tmp_path, [0.69 - 0.01 * (i % 4) for i in range(20)])
    assert len(listed(tmp_path, capsys)) == 2


def test_compare_and_triage_count_it_once(tmp_path, capsys):
    for seed in range(2):
        shifted = RETURN + np.random.default_rng(seed).normal(size=len(RETURN))
        recorded(tmp_path / f"run-{seed}", shifted, seed=seed)
        events(tmp_path / "tb" / str(seed), shifted)
    capsys.readouterr()
    main(["triage", str(tmp_path), "--json"])
    assert {row["run"] for row in json.loads(capsys.readouterr().out)["runs"]} == {"run-0", "run-1"}
    members, wrong = batch.load.members(tmp_path, batch.load.Given(), set())
    assert ([member.trace.name for member in members], wrong) == (["run-0", "run-1"], [])


def longer(returns):
    changed = returns.copy()
    changed[-1] += 1.0
    return changed


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda folder: events(folder, longer(RETURN)), "the last value differs"),
        (lambda folder: events(folder, RETURN[:50]), "it ended earlier"),
        (lambda folder: events(folder, steps=STEPS + 1), "other steps"),
        (lambda folder: table(folder, kl=KL + 0.001), "another metric differs"),
        (lambda folder: recorded(folder, seed=2), "the same tracker: repeated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_seeds_that_begin_alike_and_repetitions_are_two_runs(tmp_path, capsys, other, why):
    recorded(tmp_path / "run", seed=1)
    other(tmp_path / "other")
    assert len(listed(tmp_path, capsys)) == 2, why


def test_a_log_of_either_of_two_equal_trainings_is_nobody_s_copy(tmp_path, capsys):
    recorded(tmp_path / "first")
    recorded(tmp_path / "second")
    events(tmp_path / "tb")
    assert len(listed(tmp_path, capsys)) == 3


def test_seeds_that_never_earn_anything_are_not_one_training(tmp_path, capsys):
    nothing = np.zeros(len(STEPS))
    recorded(tmp_path / "run", nothing)
    events(tmp_path / "tb", nothing)
    assert len(listed(tmp_path, capsys)) == 2


def test_what_is_named_is_shown_though_it_is_a_copy(tmp_path, capsys):
    recorded(tmp_path / "run")
    events(tmp_path / "tb")
    capsys.readouterr()
    main(["diagnose", str(tmp_path / "run"), str(tmp_path / "tb"), "--json"])
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_agents_and_those_who_follow_see_it_once(tmp_path):
    recorded(tmp_path / "run", seed=1)
    events(tmp_path / "tb" / "ppo")
    assert [name for name, _ in Workspace([tmp_path]).worst_first()] == ["run"]
    followed = Followed(tmp_path)
    told = followed.look() + followed.look()
    assert [(one.run, one.original) for one in of(changes.Copy, told)] == [("tb/ppo", "run")]
    assert {one.run for one in of(changes.Judged, told)} == {"run"}
    assert [run.name for run in followed.watch.unique_runs] == ["run"]
    once = list(Followed(tmp_path).watch.look(patient=True))
    assert {one.run for one in of(changes.Judged, once)} == {"run"}
    assert followed.watch.is_over


def test_two_logs_that_grow_are_one_run_though_one_is_behind(tmp_path):
    run = rlvitals.start(tmp_path / "run", settings={"seed": 1}, flush_seconds=0.01)
    followed = Followed(tmp_path)
    for count in (30, 60):
        for i in range(count - 30, count):
            row = {"rollout/ep_rew_mean": RETURN[i], "train/approx_kl": KL[i]}
            run.log(int(STEPS[i]), row)
        run.flush()
        events(tmp_path / "tb" / "ppo", RETURN[: count - 5])
        told = followed.look(30.0)
    assert [one.run for one in of(changes.Copy, told)] == ["tb/ppo"]
    run.finish()


@pytest.mark.parametrize("copy", ["tb/ppo", "console"])
def test_the_page_shows_it_once_also_after_a_restart(tmp_path, monkeypatch, copy):
    """The second start judges the foreign logs and the run that one of them is a copy of."""
    root = tmp_path / "runs"
    recorded(root / "run", seed=1)
    recorded(root / "other", RETURN[::-1], seed=2)
    table(root / "csv" / "another", RETURN / 2)
    if copy == "console":
        printed(root / "console" / "ppo.log", RETURN)
    else:
        events(root / copy)
    judged = []
    real = batch.judge
    monkeypatch.setattr(batch, "judge", lambda task: judged.append(task[0].name) or real(task))
    for _ in range(2):
        judged.clear()
        assert _shown(root, copy) == {"run", "other", "csv/another"}
    # What is printed is rounded: each run with its steps is looked at.
    other = ["other"] if copy == "console" else []
    assert sorted(judged) == sorted([copy, "csv/another", "run", *other])


def _shown(root, copy):
    """Return the runs of the page once all are judged and a copy is hidden, or time is up."""
    fleet = Fleet([root], settings.load(root))
    fleet.start()
    try:
        deadline = time.monotonic() + HANG_SECONDS
        while time.monotonic() < deadline:
            is_listed = copy in fleet.entries and copy not in fleet.rows
            if is_listed and "pending" not in {row.verdict for row in fleet.search("")}:
                break
            time.sleep(0.05)
        return set(fleet.rows)
    finally:
        fleet.stop()


def test_a_short_training_is_proven_by_three_losses(tmp_path, capsys):
    for name, loss in (("run", RETURN), ("other", RETURN + 0.01)):
        with rlvitals.start(tmp_path / name) as run:
            for step, value in zip(STEPS.tolist()[:4], loss.tolist(), strict=False):
                run.log(step, {"rollout/ep_rew_mean": 9.0, "train/loss": value})
    file = tmp_path / "csv" / "progress.csv"
    file.parent.mkdir()
    rows = zip(STEPS.tolist()[:4], RETURN.tolist(), strict=False)
    head = "time/total_timesteps,rollout/ep_rew_mean,train/loss\n"
    file.write_text(head + "".join(f"{step},9.0,{loss!r}\n" for step, loss in rows))
    assert set(listed(tmp_path, capsys)) == {"run", "other"}
