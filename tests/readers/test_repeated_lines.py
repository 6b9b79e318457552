"""Lines that a loop prints again and again, in a file that no other reader knows."""

import json

import numpy as np
import pytest
from loading import read_log

import rlvitals
from rlvitals.errors import UnreadableLog
from rlvitals.readers.repeated_lines import parse_line
from rlvitals.readers.select import claim, reader_of

RISING = [round(-5.0 + n / 10, 2) for n in range(100)]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("line", "names", "numbers"),
    [
        ("123: done 4 games, reward 3.4, eps 0.50, speed 99.00 f/s",
         ("column 1", "games", "reward", "eps", "speed"), [123, 4, 3.4, 0.5, 99]),
        ("ue1 offloaded to edge3. Task: 8.72MB, CPU: 9.54%, Latency: 5.88 ms",
         ("task", "cpu", "latency"), [8.72, 0.0954, 5.88]),
        ("2026-03-30 16:58:04,740 [INFO] Episode done: meanPower=530.00 EU/t, hot=1e3",
         ("mean_power", "hot"), [530, 1000]),
        ("Episode 3/50", ("episode",), [3]),
        ("7 -> -2.5 (best 3)", ("column 1", "column 2", "best"), [7, -2.5, 3]),
        ("回合 3 finished", ("episode",), [3]),
        ("no number", (), []),
        ("a" * 400 + " 5", (), []),
    ],
)  # fmt: skip
def test_a_number_is_called_by_the_words_before_it(line, names, numbers):
    found, values = parse_line(line)
    assert found == names
    np.testing.assert_allclose(values, numbers)


def test_rows_with_a_count_of_games(tmp_path):
    lines = [f"{137 * n}: done {n} games, reward {r}, eps 0.5" for n, r in enumerate(RISING, 1)]
    path = written(tmp_path / "output.txt", lines)
    assert claim(path) is None  # in a folder it is no log
    log = read_log(path)
    assert log.series["episode_reward"].values.tolist() == RISING
    assert log.series["episode_reward"].steps.tolist() == list(range(1, 101))
    assert log.step_unit == "episodes"
    assert rlvitals.diagnose(path).verdict.word.value == "learning"


def test_rows_without_a_count(tmp_path):
    lines = [f"[INFO] Episode done: power={r}, heat={n % 7}" for n, r in enumerate(RISING)]
    log = read_log(written(tmp_path / "train.log", lines))
    assert log.series["power"].values.tolist() == RISING
    assert log.step_unit == "rows"
    assert any("numbered by their place" in note for note in log.notes)


@pytest.mark.parametrize(
    ("opening", "again", "count"),
    [
        (
            "4 workers\nmade\nlog: runs/20260330_1658",
            "4 workers\nmade\nlog: runs/20260331_0912",
            60,
        ),
        ("4 workers\nmade\nstart epoch 1", "4 workers\nmade\nstart epoch 2", 100),
        ("training", "training", 100),  # of an epoch, it may be
    ],
)
def test_what_opens_a_log_and_comes_again_begins_a_training(tmp_path, opening, again, count):
    rows = [f"[INFO] Episode done: power={r}, heat={n % 7}" for n, r in enumerate(RISING)]
    lines = [opening, *rows[:40], "mean power 3", again, *rows[40:]]
    log = read_log(written(tmp_path / "train.log", lines))
    assert log.series["power"].values.tolist() == RISING[-count:]
    assert any("2 trainings: the last one is judged" in note for note in log.notes) == (count < 100)


def test_lines_below_a_heading_are_averaged(tmp_path):
    lines = []
    for episode, latency in enumerate(RISING, 1):
        lines += [f"Episode {episode}/100", f"ue1 kept. Latency: {latency + 1} ms",
                  f"ue2 kept. Latency: {latency - 1} ms"]  # fmt: skip
    log = read_log(written(tmp_path / "run.log", lines))
    np.testing.assert_allclose(log.series["latency"].values, RISING)
    assert log.series["latency"].steps.tolist() == list(range(1, 101))


def test_lines_that_end_with_their_count_belong_to_it(tmp_path):
    lines = []
    for n, reward in enumerate(RISING):
        lines += [f"got a reward of {reward} there", f"wrote game {n + 1}"]
    log = read_log(written(tmp_path / "run.log", lines))
    (rewards,) = (s for key, s in log.series.items() if "reward" in key)
    assert rewards.steps.tolist() == list(range(1, 101))
    assert rewards.values.tolist() == RISING


@pytest.mark.parametrize("window", [10, 100, 1000])
def test_a_mean_so_far_names_the_score(tmp_path, window):
    noise = np.random.default_rng(0).normal(0, 3, 100)
    scores = np.round(np.array(RISING) + noise, 2)
    means = [scores[max(0, n + 1 - window) : n + 1].mean() for n in range(100)]
    lines = [f"({score}, {mean:.4f})" for score, mean in zip(scores, means, strict=True)]
    log = read_log(written(tmp_path / "RUN.txt", lines))
    assert log.series["score"].values.tolist() == scores.tolist()
    assert set(log.series) == {"score", "mean_score"}


@pytest.mark.parametrize(
    "lines",
    [
        [f"({n % 3}, {n % 5})" for n in range(50)],  # nobody says what they are
        [f"GET /page/{n} took {n} ms" for n in range(50)],
        [f"reward {n}" for n in range(9)],
        ["reward 3, loss 4"] * 50,
    ],
    ids=["unnamed", "server", "few", "constant"],
)
def test_other_texts_are_no_logs(tmp_path, lines):
    with pytest.raises(UnreadableLog, match="not a training log"):
        reader_of(written(tmp_path / "output.txt", lines))


def test_a_notebook_that_prints_a_block_an_episode(tmp_path):
    text = ""
    for n, reward in enumerate(RISING, 1):
        text += f"{n} episodes completed\ntotal reward {reward}\nloss None\nsteps done {n * 90}\n"
    cell = {
        "cell_type": "code",
        "source": "agent.train()",
        "outputs": [{"output_type": "stream", "name": "stdout", "text": text}],
    }
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    log = reader_of(path).read(path)[0]
    assert log.series["episode_reward"].values.tolist() == RISING
    assert log.series["steps_done"].steps.tolist() == list(range(1, 101))


def test_of_ten_lines_without_a_last_break_nine_are_read(tmp_path):
    path = tmp_path / "output.txt"
    path.write_text("\n".join(f"{n}: done {n} games, reward {n / 7}" for n in range(1, 11)))
    assert len(read_log(path).series["episode_reward"]) == 9


def test_new_lines_are_read_on(tmp_path):
    lines = [f"{137 * n}: done {n} games, reward {r}" for n, r in enumerate(RISING, 1)]
    path = written(tmp_path / "output.txt", lines[:50])
    reader = reader_of(path)
    _, cursor = reader.read(path)
    written(path, lines)
    log, _ = reader.read(path, cursor)
    assert log.series["episode_reward"].values.tolist() == RISING[50:]
