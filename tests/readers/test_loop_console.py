"""Console output of hand-written loops: numbers before a bar, dicts that are cut, lone lines."""

import textwrap

import pytest

from rlvitals.readers import console
from rlvitals.readers.formats.lines import read_head
from rlvitals.readers.select import claim, reader_of

READER = console.READER
WORDS = "He adds the two numbers, and checks his answer by a drawing of the apples.\n"
LOGGED_TRACEBACK = """\
2026-05-01 10:00:00,100 - ERROR - Traceback (most recent call last):
  File "train.py", line 5, in <module>
    main()
RuntimeError: DataLoader worker (pid 12) is killed by signal: Terminated.
"""


@pytest.fixture
def read(tmp_path):
    def make(text, name="a.log"):
        path = tmp_path / name
        path.write_text(text)
        assert reader_of(path).name == READER.name
        return READER.read(path, None)[0]

    return make


def points(log, key):
    series = log.series[key]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def test_the_numbers_before_a_bar_are_its_rows(read):
    text = "".join(
        f"Loss: {7 - n / 10:.4f} | Acc: {n / 10:.2f} | ETA: 42.9h | GPU: 6.4/8.8GB: "
        f"{n:3d}%|█| {n}/100 [1:49:0{n}<42:30:42,  6.48s/it]\r"
        for n in range(1, 7)
    )
    log = read(text)
    assert points(log, "loss") == [(n, round(7 - n / 10, 4)) for n in range(1, 6)]
    assert points(log, "acc")[-1] == (5, 0.5)
    assert not {"eta", "gpu"} & log.series.keys()


def test_a_bar_of_evaluation_is_no_row(read):
    bars = "".join(
        f"Eval loss: {n}.0:  {n}%|█| {n}/100 [00:0{n}<00:09,  1.00it/s]\r" for n in range(1, 7)
    )
    rows = "".join(f"step: {n}, loss: {n / 8}\n" for n in range(1, 5))
    assert len(read(bars + rows).series["loss"]) == 4


def test_a_bar_without_an_end_counts_epochs(read):
    text = "".join(
        f"Epoch {n}: : 0it [0{n}:00, ?it/s, loss=0.0, v_num=0, avg_reward=0.0]\r"
        f"Epoch {n}: : 8it [0{n}:50, 1.20s/it, loss=1.5, v_num=0, avg_reward=-.{n}]\r"
        for n in range(1, 6)
    )
    assert points(read(text), "avg_reward") == [(n + 1, -n / 10) for n in range(1, 5)]


def test_a_dict_that_a_terminal_cut_is_one_row(read):
    row = (
        "{{'loss': {loss}, 'completions/mean_length': 384.0, 'rewards/answer_checker/mean': 0.25, "
        "'reward': {reward}, 'reward_std': 0.5, 'epoch': 0.1}}"
    )
    lines = []
    for n in range(1, 5):
        text = row.format(loss=n / 8, reward=n / 4)
        lines += [text[at : at + 80] for at in range(0, len(text), 80)]
    log = read("\n".join(lines) + "\n")
    assert points(log, "reward") == [(n, n / 4) for n in range(1, 5)]
    assert len(log.series["rewards/answer_checker/mean"]) == 4


def trl_row(n):
    keys = ("loss", "num_tokens", "completions/mean_length", "rewards/checker/mean", "reward")
    return str(dict.fromkeys((*keys, "reward_std", "frac_reward_zero_std", "epoch"), n / 8))


@pytest.mark.parametrize("between", ["", "Here is what the model said.\n"])
def test_a_dict_that_is_wrapped_at_words_is_one_row(read, between):
    """Its last line looks like a dict that was pasted without its first brace."""
    rows = ("\n".join(textwrap.wrap(trl_row(n), 80)) for n in range(1, 9))
    log = read("".join(f"{row}\n{between}" for row in rows))
    assert points(log, "reward") == [(n, n / 8) for n in range(1, 9)]
    assert len(log.series["completions/mean_length"]) == 8


def test_a_dict_behind_a_bar_that_a_terminal_cut_is_one_row(read):
    lines = []
    for n in range(1, 9):
        text = f" {n}%|#  | {n}/100 [00:0{n}<00:50,  1.25s/it]{trl_row(n)}"
        lines += [text[at : at + 80] for at in range(0, len(text), 80)]
    log = read("\n".join(lines) + "\n")
    # The bar that is drawn after a row has its step.
    assert points(log, "reward") == [(n + 1, n / 8) for n in range(1, 8)]
    assert len(log.series["completions/mean_length"]) == 7


def test_words_and_times_among_pairs_are_passed_over(read):
    text = "".join(
        f"[Step {n}/50] loss=-0.{n} grad=0.1 | reward=0.{n} (std=0.3) | phase=GROUNDED of all | "
        f"t_roll=2.6s t_train=5.3s\n"
        for n in range(1, 5)
    )
    log = read(text)
    assert points(log, "reward") == [(n, n / 10) for n in range(1, 5)]
    assert log.series["t_train"].values.tolist() == [5.3] * 4


def test_prose_with_numbers_is_no_row(tmp_path):
    path = tmp_path / "a.log"
    text = "At step 3 the reward is 5, said he, and 7 of them agree with loss 4 in the end\n"
    path.write_text(text * 20)
    assert not console.claims(path, read_head(path))


def test_rows_between_long_texts_are_read_where_a_person_names_the_file(tmp_path):
    rows = "".join(
        f"2026-03-06 00:19:56-grpo.py:856-INFO >> {{'loss': 0.5, 'average_reward': {n / 9}, "
        f"'step': {n}}}\n" + WORDS
        for n in range(1, 2000)
    )
    path = tmp_path / "a.log"
    path.write_text(WORDS * 4000 + rows + WORDS * 8000)
    assert claim(path) is None
    assert reader_of(path).name == READER.name
    assert len(READER.read(path, None)[0].series["average_reward"]) == 1999


def test_a_mean_on_a_line_of_its_own_is_counted(read):
    text = "".join(
        f"{WORDS}Percentage of correct examples:  0.{n}\nKL Divergence: 0.00{n}\nReward: 1.0\n"
        for n in range(10, 30)
    )
    log = read(text)
    assert points(log, "percentage_of_correct_examples")[0] == (1, 0.10)
    assert len(log.series["kl_divergence"]) == 20
    assert "reward" not in log.series, "of a single response"


@pytest.mark.parametrize(
    "row",
    [
        "Step {n}/500, loss: 0.00{n}\nAverage Reward: 0.{n}\n",
        "Average Reward: 0.{n}\nStep {n}/500, loss: 0.00{n}\n",
    ],
)
def test_a_mean_reward_on_its_own_line_belongs_to_the_row_beside_it(read, row):
    log = read("".join(row.format(n=n) for n in range(10, 30)))
    assert points(log, "average_reward") == [(n, n / 100) for n in range(10, 30)]
    assert len(log.series["loss"]) == 20


def test_rows_that_have_a_reward_take_none_from_another_line(read):
    rows = [f"Step {n}/500, loss: 0.1, reward: 0.5\nAverage Reward: 0.{n}\n" for n in range(10, 30)]
    assert "average_reward" not in read("".join(rows)).series


def test_nine_such_lines_are_no_log(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("Average reward: 0.5\n" * 9)
    assert claim(path) is None
    assert not console.claims_single(path, read_head(path))


def test_a_logged_traceback_ends_a_run_that_it_ends(read):
    ending = read(LOGGED_TRACEBACK).ending
    assert ending.traceback.endswith("is killed by signal: Terminated.")


def test_a_logged_traceback_is_outlived_by_one_line(tmp_path):
    path = tmp_path / "a.log"
    path.write_text(LOGGED_TRACEBACK + "2026-05-01 10:00:01,100 - INFO - next try\n")
    assert READER.read(path, None)[0].ending is None


def test_advice_of_ray_on_memory_ends_a_run(read):
    text = "(Actor pid=9) Refer to the documentation on how to address the out of memory issue: x\n"
    assert read(text).ending.exit_code == 137


def test_epochs_of_updates_between_episodes_are_not_the_run(tmp_path):
    text = ""
    for episode in range(1, 31):
        for epoch in range(1, 6):
            text += f"     | Epoch {epoch}/5 - Actor loss : -0.07, Critic loss : 0.{epoch}\n"
        text += (
            f"Episode {episode}/30 finished, total reward  : {episode}.5, held : {{'hold': 2}}\n"
        )
    path = tmp_path / "train.log"
    path.write_text(text)
    log = reader_of(path).read(path)[0]
    assert log.step_unit == "episodes"
    assert log.series["episode_reward"].values.tolist() == [n + 0.5 for n in range(1, 31)]
    assert any("count other steps" in note for note in log.notes)
