"""What replies share with their prompts, and the series that are counted from it."""

import json
import math

import pytest
from dialect_files import lines

import rlvitals
from rlvitals.rollouts import evidence, rollout_index, series, text_measures
from rlvitals.rollouts.dialects.rollout_dialect import token_total
from rlvitals.rollouts.text_measures import (
    changes_script,
    copied_share,
    gives_answer,
    states_answer,
)

THINGS = ["apple", "kite", "cup", "book", "coin", "pear", "drum", "lamp", "shoe", "ring"]


def row(step, thing, output, **more):
    prompt = f"Tom sees 3 red {thing}s. which colour is the {thing}?"
    return {"input": prompt, "output": output, "gts": "red", "score": 0.0, "step": step} | more


def read(folder, *rows):
    for step in sorted({r["step"] for r in rows}):
        lines(folder / f"{step}.jsonl", *(r for r in rows if r["step"] == step))
    return rollout_index.read(folder)


def values(rollouts):
    return {key: s.values.tolist() for key, s in series.to_log(rollouts).series.items()}


def test_prompts_are_found_again_from_replies_until_these_are_a_template(tmp_path):
    own = [row(0, thing, f"Tom has 3, and the {thing} is red") for thing in THINGS]
    template = [row(1, thing, "Tom has 3, and so the thing is red") for thing in THINGS]
    other = [
        row(2, a, f"the {b} is red") for a, b in zip(THINGS, THINGS[1:] + THINGS[:1], strict=True)
    ]
    rollouts = read(tmp_path / "rollouts", *own, *template, *other)
    expected = [1.0, 0.0, -1 / 9]
    assert values(rollouts)["rollout/prompt_retrieval"] == pytest.approx(expected)
    shown = evidence.find(rollouts, "rollout/prompt_retrieval", 0, 2, is_above=False)
    assert shown.tolist() == [*range(20, 30), *range(10, 20)]  # the newest first


def test_names_and_numbers_lead_back_to_no_prompt(tmp_path):
    names = ["Tom", "Ann", "Bob", "Sam", "Eve", "Max", "Kim", "Lee", "Joe", "Pat"]
    rows = [row(0, "cup", f"{name} has {n}") for n, name in enumerate(names)]
    for n, (r, name) in enumerate(zip(rows, names, strict=True)):
        r["input"] = f"{name} sees {n} cups. how many cups?"
    assert "rollout/prompt_retrieval" not in values(read(tmp_path / "rollouts", *rows))


def test_few_prompts_are_not_told_apart(tmp_path):
    few = [row(0, thing, f"the {thing}") for thing in THINGS[:7]]
    assert "rollout/prompt_retrieval" not in values(read(tmp_path / "rollouts", *few))


def test_steps_beyond_the_open_ones_are_closed_with_what_they_have(tmp_path, monkeypatch):
    monkeypatch.setattr(text_measures, "MAX_OPEN_STEPS", 1)
    rows = [row(step, thing, f"the {thing}") for step in (0, 1) for thing in THINGS]
    assert values(read(tmp_path / "rollouts", *rows))["rollout/prompt_retrieval"] == [1.0, 1.0]


PASSAGE = "a passage of more than twenty-four characters"


@pytest.mark.parametrize(
    ("reply", "share"),
    [(PASSAGE, 1.0), ("no word of the other text is in here", 0.0), ("short", math.nan)],
)
def test_copied_share(reply, share):
    assert copied_share(f"He wrote {PASSAGE}.", reply) == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize(
    ("prompt", "answer", "states"),
    [
        ("What is 6 x 7? Answer: 42", "42", True),
        ("What is 6 x 7? The answer is **42**", "42", True),
        ("ground truth = 42. What is 6 x 7?", "42", True),
        ("What is 6 x 7? Answer: 421", "42", False),
        ("Of 42 cups, how many? Answer:", "42", False),
        ("Answer:", "", False),
        ("Sky? Answer: B\nSea? Answer: A\nMoon? Answer:", "A", False),  # examples
        ("Moon? Answer: A\nGive the answer.\nAnswer:", "A", True),
    ],
)
def test_which_prompts_state_the_answer(prompt, answer, states):
    assert states_answer(prompt, answer) is states


@pytest.mark.parametrize(
    ("reply", "answer", "gives"),
    [
        ("So it is \\boxed{42}", "42", True),
        ("The final answer is **42**.", "42", True),
        ("<answer> 42 </answer>", "42", True),
        ("6 x 7 is so many.\n#### 42", "42", True),
        ("The answer is 42.5", "42", False),
        ("The answer is 42/2 = 21", "42", False),
        ("42 cups are left over", "42", False),
        ("The answer is 42. " + "But wait. " * 40, "42", False),
        ("The answer is", "", False),
    ],
)
def test_which_replies_give_the_answer(reply, answer, gives):
    assert gives_answer(reply, answer) is gives


@pytest.mark.parametrize(
    ("prompt", "reply", "changes"),
    [
        ("What is 6 x 7?", "It is 42.", False),
        ("What is 6 x 7?", "Это сорок два.", True),
        ("What is 6 x 7?", "答案是四十二。", True),
        ("What is the area of a circle of radius r, in words?", "It is π r² for each r.", False),
        ("六乘七是多少？", "答案是四十二。", False),
        ("六乘七是多少？", "The answer is forty-two.", True),
        ("42?", "forty-two", False),  # a prompt without a letter has no script
    ],
)
def test_which_replies_change_the_script(prompt, reply, changes):
    assert changes_script(prompt, reply) is changes


def graded(step, group, output, score, acc, *, task="a"):
    return row(step, "cup", output, score=score, acc=acc, form=score - acc, data_source=task) | {
        "input": f"prompt {group}"
    }


def test_groups_and_tasks(tmp_path):
    rollouts = read(
        tmp_path / "rollouts",
        graded(0, 0, "x", 0.1, 0.0),  # wrong, and apart by form
        graded(0, 0, "x" * 9, 0.2, 0.0),
        graded(0, 1, "x", 1.0, 1.0),  # apart by the answer
        graded(0, 1, "x", 0.0, 0.0),
        graded(0, 2, "x", 0.5, 0.5, task="b"),  # alike
        graded(0, 2, "x", 0.5, 0.5, task="b"),
    )
    found = values(rollouts)
    assert found["rollout/equal_groups/acc"] == [0.5]
    assert found["rollout/task_reward/a"] == [pytest.approx(1.3 / 4)]
    assert found["rollout/dead_groups/b"] == [1.0]
    assert "rollout/length_reward_correlation" not in found  # of four rollouts
    for metric, numbers in (
        ("rollout/equal_groups/acc", [1]),  # the quarter that is paid most
        ("rollout/dead_groups/b", [4, 5]),
        ("rollout/task_reward/b", [4, 5]),
        ("reward/group_zero_std", [4, 5]),
        ("reward/component/acc", [2, 4, 5]),
    ):
        assert evidence.find(rollouts, metric, 0, 0, is_above=True).tolist() == numbers, metric


def test_a_metric_that_every_rollout_has_is_shown_by_its_end(tmp_path):
    rows = [graded(0, n // 4, "x" * (n + 1), 0.5, 0.5) for n in range(40)]
    rollouts = read(tmp_path / "rollouts", *rows)
    longest = evidence.find(rollouts, "language/length_mean", 0, 0, is_above=True)
    assert longest.tolist() == [*range(39, 29, -1)]
    shortest = evidence.find(rollouts, "language/length_mean", 0, 0, is_above=False)
    assert shortest.tolist() == [*range(10)]
    alike = evidence.find(rollouts, "reward/mean", 0, 0, is_above=True)
    assert sorted(alike.tolist()) == [*range(40)]  # none shows it more than another
    assert not len(evidence.find(rollouts, "reward/mean", 1, 9, is_above=True))


def test_length_and_reward_within_groups(tmp_path):
    rows = [
        graded(0, group, "x" * (100 * group + n), 0.1 * n - group, 0.0)
        for group in range(4)
        for n in range(1, 6)
    ]
    found = values(read(tmp_path / "rollouts", *rows))
    assert found["rollout/length_reward_correlation"] == [pytest.approx(1.0)]


def test_texts_that_were_cut_are_a_share(tmp_path):
    rows = [
        {"step": 0, "prompt": "q", "completion": "a", "stop_reason": reason}
        for reason in ("stop", "length", "max_tokens", "stop")
    ]
    folder = tmp_path / "rollouts"
    folder.mkdir()
    from rlvitals.rollouts.records import zstd

    text = "".join(json.dumps(r) + "\n" for r in rows)
    (folder / "a.jsonl.zst").write_bytes(zstd.compress(text.encode()))
    rollouts = rollout_index.read(tmp_path)
    assert values(rollouts)["rollout/truncated_share"] == [0.5]
    cut = evidence.find(rollouts, "language/truncated_share", 0, 0, is_above=True)
    assert cut.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("counts", "total"), [([3, 4], 7), ([0], 0), ([], None), ([3, None], None), (["x"], None)]
)
def test_tokens_of_turns_are_summed_where_all_are_counted(counts, total):
    assert token_total(counts) == total


@pytest.mark.parametrize(("parts", "name"), [({}, "reward"), ({"acc": 0.0}, "acc")])
def test_right_answers_that_earn_nothing_are_named_with_their_rollouts(tmp_path, parts, name):
    """The parser asks for a box: what is written down is right, and paid like what is wrong."""
    folder = tmp_path / "rollouts"
    pay = {"score": 0.1 * bool(parts), **parts}
    for step in range(30):
        texts = [f"It is so.\nAnswer: {('red', 'blue')[n % 2]}" for n in range(len(THINGS))]
        rows = [row(step, t, text, **pay) for t, text in zip(THINGS, texts, strict=True)]
        lines(folder / f"{step}.jsonl", *rows, *rows)
    rollouts = rollout_index.read(folder)
    metric = f"rollout/answer_unpaid/{name}"
    assert values(rollouts)[metric] == [1.0] * 30
    assert len(evidence.find(rollouts, metric, 0, 29, is_above=True)) == 150
    found = {rule.name: finding for rule, finding in rlvitals.diagnose(folder).findings}
    assert found["failures-scored"].metric == metric
    assert "100% of the replies" in found["failures-scored"].summary


def test_right_answers_that_are_paid_are_no_failure(tmp_path):
    folder = tmp_path / "rollouts"
    for step in range(30):
        rows = [row(step, t, "It is so.\nAnswer: red", score=1.0) for t in THINGS]
        lines(folder / f"{step}.jsonl", *rows, *rows)
    assert "rollout/answer_unpaid/reward" not in values(rollout_index.read(folder))
    assert "failures-scored" not in {r.name for r, _ in rlvitals.diagnose(folder).findings}
