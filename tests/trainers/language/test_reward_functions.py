"""Each reward function: by hand, for any text, and as TRL calls it."""

import json
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlvitals
from rlvitals import UsageError, VitalsError
from rlvitals.metrics.frameworks import trl_grpo
from rlvitals.metrics.frameworks.lookup import find
from rlvitals.metrics.reward_names import checks_the_answer
from rlvitals.trainers.language import rewards
from rlvitals.trainers.language.config import RewardsConfig
from rlvitals.trainers.language.data import chart_task, template
from rlvitals.trainers.language.rewards.parts import FORM_TAGS
from rlvitals.trainers.language.rewards.reward import Sample

TABLE = '{"columns":["Name","Value"],"rows":[["A",3],["B",-5],["C",0]]}'
STEPS = "<step-1>: A is at 3.\n<step-2>: B is at -5.\n<step-3>: The difference is 8."
GOOD = template.format_answer("bar", TABLE, STEPS, "8")
COLUMNS = {
    "query": "What is A minus B?",
    "label": "8",
    "table": TABLE,
    "chart_type": "bar",
    "reasoning": STEPS,
}
BY_NAME = {measure.name: measure for measure in rewards.REWARD_MEASURES}


def paid(name, completion, **columns):
    return BY_NAME[name].score(Sample(completion, {**COLUMNS, **columns}))


def alike(text, reference):
    return float(bool(set(text) & set(reference)))


def test_a_good_completion_is_paid_in_full():
    full = {m.name: m.score(Sample(GOOD, COLUMNS, alike)) for m in rewards.REWARD_MEASURES}
    assert full.pop("length_think_reward") == 1.75  # 3 of 6 steps
    assert full == {name: BY_NAME[name].high for name in full}


# ---- the form ----


@pytest.mark.parametrize(
    ("text", "form", "tags"),
    [
        (GOOD, 2, 2),
        (f"\n{GOOD}\n", 2, 2),
        (GOOD.replace("\n", ""), 0, 2),
        (f"Well. {GOOD}", 0, 2),
        (f"{GOOD} Good?", 0, 2),
        (GOOD.replace("</think>", ""), 0, 0),
        (f"{GOOD}<answer>8</answer>", 0, 0),
        (GOOD.replace("<answer>8", "<answer>"), 0, 2),
        (GOOD.replace("<type>bar", "<type> "), 0, 2),
        ("".join(FORM_TAGS), 0, 2),
        ("".join(reversed(FORM_TAGS)), 0, 0),
        ("", 0, 0),
        ("8", 0, 0),
    ],
)
def test_the_form(text, form, tags):
    assert paid("format_reward", text) == form
    assert paid("num_token_reward", text) == tags


# ---- accuracy ----


def answering(answer):
    return f"<think>it is</think><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("answer", "label", "right"),
    [
        ("-10", "-10", 1),
        ("500", "-10", 0),
        ("10", "-10", 0),
        ("0", "0", 1),
        ("0.01", "0", 0),
        ("40%", "40%", 1),
        ("40 percent", "40%", 1),
        ("41", "40%", 1),
        ("Yes.", "yes", 1),
        ("Oslo", "Rome", 0),
        ("", "", 0),
        ("1,250", "1250", 1),
    ],
)
def test_an_answer_is_right(answer, label, right):
    assert paid("accuracy_reward", answering(answer), label=label) == right


def test_an_answer_needs_thinking_and_one_answer():
    assert paid("accuracy_reward", "8") == 0
    assert paid("accuracy_reward", "<answer>8</answer>") == 0
    assert paid("accuracy_reward", "<think>x</think>8") == 0
    assert paid("accuracy_reward", "<think>x</think><answer>8</answer><answer>9</answer>") == 0
    assert paid("accuracy_reward", "<think><answer>9</answer></think><answer>8</answer>") == 1


def test_a_year_is_a_name_and_must_be_met():
    asked = {"query": "Which year is the highest?", "table": ""}
    assert paid("accuracy_reward", answering("2014"), label="2014", **asked) == 1
    assert paid("accuracy_reward", answering("2015"), label="2014", **asked) == 0
    years = json.dumps({"columns": ["Name", "Profit"], "rows": [[2014, 5], ["2015", 3]]})
    which = {"query": "Which one is the highest?", "table": years}
    assert paid("accuracy_reward", answering("2015"), label="2014", **which) == 0
    assert paid("accuracy_reward", answering("2015"), label="2014", query="How many?") == 1


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        ("7", "7", 1),
        (" 7\n", "7", 1),
        ("7.0", "7", 1),
        ("8", "7", 0),
        ("77", "7", 0),
        ("", "7", 0),
        ("19", "20", 0),
        ("<think>3+4</think>7", "7", 1),
        ("<think>3+4</think><answer>7</answer>", "7", 1),
        ("it is <answer>7</answer>", "7", 1),
        ("7 or 8", "7", 0),
    ],
)
def test_a_plain_text_s_answer_needs_no_tags_and_must_be_met(completion, answer, right):
    score = BY_NAME["accuracy_reward"].score
    assert score(Sample(completion, {"answer": answer, "query": "3+4="})) == right


# ---- length of thinking ----


@pytest.mark.parametrize(
    ("length", "reward"), [(0, 0), (70, 0), (71, 1), (250, 1), (251, 0), (500, 0), (501, 0)]
)
def test_the_length_of_thinking(length, reward):
    assert paid("length_think_reward", f"<think>{'x' * length}</think>") == reward


@pytest.mark.parametrize(
    ("thought", "reward"),
    [
        ("<step-1>: a", 0.25),
        ("<step-1>: a\n<step-2>: b", 0.5),
        ("<step-1>: a\n<step-1>: b", 0.25),
        ("<step-2>: a", 0),
        ("<step-1><step-2><step-3>", 0),
        ("<step-1>:<step-1>: a", 0.25),
        ("".join(f"<step-{n}>:a" for n in range(1, 5)), 1),
        ("".join(f"<step-{n}>:a" for n in range(1, 6)), 1.25),
        ("".join(f"<step-{n}>:a" for n in range(1, 10)), 1 + 1.5),
        ("".join(f"<step-{n}>:a" for n in range(1, 60)), 0),
    ],
)
def test_steps_are_paid_up_to_six(thought, reward):
    assert paid("length_think_reward", f"<think>{thought}</think>") == reward


def test_no_thinking_pays_nothing():
    for text in ("", "8", "<think>", "<think><step-1>: a", "<step-1>: a</think>"):
        assert paid("length_think_reward", text) == 0


# ---- type and table ----


@pytest.mark.parametrize(
    ("said", "known", "reward"),
    [
        ("bar", "bar", 1),
        ("Bar chart", "bar", 1),
        ("bar", "bar_chart", 1),
        ("Line Graph", "line", 1),
        ("line", "bar", 0),
        ("", "bar", 0),
        ("bar", "", None),
        ("bar", None, None),
    ],
)
def test_the_chart_s_type(said, known, reward):
    assert paid("chart_type_reward", f"<type>{said}</type>", chart_type=known) == reward


def tabled(table):
    return f"<table>{table if isinstance(table, str) else json.dumps(table)}</table>"


@pytest.mark.parametrize(
    ("table", "reward"),
    [
        (TABLE, 1.25),
        ({"rows": [["C", "0"], ["a", 3.1], ["B", "-5"]], "columns": ["value", "NAME"]}, 1.25),
        ({"columns": ["Name", "Value"], "rows": [["A", 3], ["B", 5], ["C", 0]]}, 1 + 0.25 * 5 / 6),
        ({"columns": ["Name", "Value"], "rows": [["A", 3]]}, 1 + 0.25 * 2 / 6),
        ({"columns": ["Name", "X"], "rows": []}, 0.75 + 0.125),
        ({"columns": ["Name"], "rows": [], "title": ""}, 0.5 + 0.125),
        ({"columns": ["Name", "Value", "x", "y"], "rows": []}, 0.75 + 0.125),
        ({"columns": "Name", "rows": "A"}, 0.75),
        ({}, 0.5),
        ("[]", 0),
        ("8", 0),
        ("{'columns': []}", 0),
        ("", 0),
        ("[" * 100_000, 0),
        ('{"a":' * 5000, 0),
    ],
)
def test_the_table(table, reward):
    assert paid("table_style_reward", tabled(table)) == pytest.approx(reward)


def test_guessing_rows_does_not_pay():
    guesses = [["A", n] for n in range(3, 30)] + [["B", -5], ["C", 0]]
    many = {"columns": ["Name", "Value"], "rows": guesses}
    assert paid("table_style_reward", tabled(many)) == pytest.approx(1 + 0.25 * 6 / 58)


def test_a_table_of_the_data_may_be_parsed_already_and_is_not_changed():
    known = json.loads(TABLE)
    before = deepcopy(known)
    assert paid("table_style_reward", tabled(TABLE), table=known) == 1.25
    assert known == before
    assert paid("table_style_reward", tabled(TABLE), table="") is None


def test_a_table_of_the_data_that_is_none_is_told():
    with pytest.raises(ValueError, match="no JSON object of columns and rows: 'A: 3'"):
        paid("table_style_reward", tabled(TABLE), table="A: 3")


# ---- all of them, on any text ----

PIECES = st.sampled_from(
    [*FORM_TAGS, "\n", "<step-1>: x", TABLE, "8", "-", "%", "{", "[", '"', "bar"]
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join))
PLAIN = st.fixed_dictionaries({"answer": TEXTS})
CHART = st.fixed_dictionaries({
    "label": TEXTS, "query": TEXTS, "chart_type": TEXTS, "reasoning": TEXTS,
    "table": st.one_of(st.just(TABLE), st.just(json.loads(TABLE)), st.none()),
})  # fmt: skip


@pytest.mark.parametrize("measure", rewards.REWARD_MEASURES, ids=lambda one: one.name)
@settings(deadline=None)
@given(completion=TEXTS, columns=st.one_of(PLAIN, CHART))
def test_any_text_has_its_reward_within_the_range(measure, completion, columns):
    before = deepcopy(columns)
    score = measure.score(Sample(completion, columns, alike))
    assert score is None or measure.low <= score <= measure.high
    assert score == measure.score(Sample(completion, columns, alike))
    assert columns == before


@pytest.mark.parametrize("measure", rewards.REWARD_MEASURES, ids=lambda one: one.name)
@pytest.mark.parametrize("piece", [*FORM_TAGS, "<", "x", "<step-1>", "9", "[", "\n", "1,111", "é"])
def test_a_huge_text_is_no_matter(measure, piece):
    text = piece * 50_000
    score = measure.score(Sample(text, {**COLUMNS, "answer": "7"}, alike))
    inside = measure.score(Sample(answering(text), COLUMNS, alike))
    assert all(one is None or measure.low <= one <= measure.high for one in (score, inside))


@pytest.mark.parametrize("index", range(40))
@pytest.mark.parametrize("pixels", [48, 160])
def test_what_a_drawn_chart_says_of_itself_is_right(index, pixels):
    sample = chart_task.chart(3, index, pixels=pixels)
    said = template.format_answer(sample.chart_type, sample.table, sample.reasoning, sample.label)
    columns = {name: getattr(sample, name) for name in (*COLUMNS,)}
    for name in ("format_reward", "num_token_reward", "accuracy_reward", "chart_type_reward",
                 "table_style_reward"):  # fmt: skip
        assert BY_NAME[name].score(Sample(said, columns)) == BY_NAME[name].high, name


# ---- as TRL calls them ----


def call(reward, completions, **columns):
    return reward(prompts=["?"] * len(completions), completions=completions,
                  completion_ids=[[1]] * len(completions), trainer_state=object(),
                  log_metric=print, **columns)  # fmt: skip


def made(*names, default=(), **settings):
    failures = []
    config = RewardsConfig(functions=names, **settings)
    return rewards.functions(config, default, failed=failures.append), failures


def test_functions_have_the_names_and_the_weights_of_the_settings():
    found, _ = made("accuracy_reward", "format_reward")
    assert [one.__name__ for one in found] == ["accuracy_reward", "format_reward"]
    assert rewards.weights(RewardsConfig(), found) == [1, 1]
    assert rewards.weights(RewardsConfig(weights=(2.0, -0.5)), found) == [2, -0.5]
    with pytest.raises(UsageError, match="3 weights for 2 reward functions"):
        rewards.weights(RewardsConfig(weights=(1.0, 1.0, 1.0)), found)


def test_a_task_s_own_functions_are_the_default():
    found, _ = made(default=("format_reward", "accuracy_reward"))
    assert [one.__name__ for one in found] == ["format_reward", "accuracy_reward"]


def test_conversations_and_texts_are_scored_alike():
    (found,), _ = made("accuracy_reward")
    texts = [GOOD, "8"]
    said = [[{"role": "assistant", "content": text}] for text in texts]
    parts = [[{"role": "assistant", "content": [{"type": "text", "text": t}]}] for t in texts]
    for completions in (texts, said, parts):
        assert call(found, completions, label=["8", "8"]) == [1, 0]
    assert call(found, [[{"role": "assistant", "content": None}], []], label=["8", "8"]) == [0, 0]


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="no reward function acuracy_reward") as refused:
        made("acuracy_reward")
    assert refused.value.hint.startswith("did you mean accuracy_reward")
    with pytest.raises(UsageError, match="no reward function nonsense"):
        made("nonsense")
    with pytest.raises(UsageError, match="format_reward is named twice"):
        made("format_reward", "format_reward")


def test_a_missing_column_is_named_with_those_that_are_there():
    (found,), _ = made("table_style_reward")
    with pytest.raises(UsageError, match="needs the column table") as refused:
        call(found, [GOOD], label=["8"], query=["?"])
    assert refused.value.where == "the data has label, log_metric, query, trainer_state"


# ---- one that raises ----

BROKEN = """
def spoils(completions, label, **columns):
    for one in columns["table"]:
        one["rows"].clear()
    label.clear()
    return [float(len(said)) for said in completions]

def raises(prompts, completions, **columns):
    return [1 / len(said) for said in completions]

def odd(completions, **columns):
    return [{"nan": float("nan"), "none": None}.get(said, 1) for said in completions]

def short(completions, **columns):
    return [1.0] * (len(completions) - 1)

def one(completions, **columns):
    return [1.0]

def huge(completions, **columns):
    return [1e39 if said else -1e39 for said in completions]

def leaves(completions, **columns):
    raise SystemExit(3)

def wordy(completions, **columns):
    raise ValueError("two\\nlines" + "x" * 5000)

async def later(completions, **columns):
    return [1.0]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    return "my_rewards"


def test_a_person_s_own_function_by_module_or_file(own):
    for name in (f"{own}:raises", f"{own}.py:raises", f"{Path.cwd()}/{own}.py:raises"):
        (found,), _ = made(name)
        assert found.__name__ == "raises"
        assert call(found, ["ab", "a"]) == [0.5, 1]


def test_a_failing_sample_is_named_and_has_no_reward(own):
    (found,), failures = made(f"{own}:raises")
    assert call(found, ["ab", "", "a"], label=["1", "2", "3"]) == [0.5, None, 1]
    (failure,) = failures
    assert (failure.function, failure.sample, failure.prompt) == ("raises", 1, "?")
    assert failure.completion == ""
    assert isinstance(failure.error, ZeroDivisionError)
    assert failure.sentence == (
        "raises failed on sample 1: ZeroDivisionError: division by zero (prompt '?', completion '')"
    )


def test_a_failing_sample_ends_the_training_where_asked(own):
    (found,), failures = made(f"{own}:raises", on_error="stop")
    with pytest.raises(VitalsError, match="raises failed on sample 2: ZeroDivisionError"):
        call(found, ["ab", "a", ""])
    assert failures == []
    assert call(found, ["ab", "a"]) == [0.5, 1]


def test_not_a_number_is_a_failure_and_none_is_not(own):
    (found,), failures = made(f"{own}:odd")
    assert call(found, ["nan", "none", "x"]) == [None, None, 1]
    assert [(f.sample, str(f.error)) for f in failures] == [(0, "it gave nan")]


def test_rewards_too_few_are_a_failure(own):
    (found,), failures = made(f"{own}:short")
    assert call(found, ["a", "b"]) == [None, None]
    assert [str(f.error) for f in failures] == ["it gave 0 rewards for 1 samples"] * 2


def test_one_reward_for_all_is_told_though_no_sample_fails_alone(own):
    """Its rewards would be those of batches of one, and nobody would know."""
    (found,), failures = made(f"{own}:one")
    assert call(found, ["a", "b"]) == [1, 1]
    (failure,) = failures
    assert failure.sentence.startswith("one failed on a batch, and on none of its samples alone: ")
    assert failure.sentence.endswith("it gave 1 rewards for 2 samples")
    (found,), _ = made(f"{own}:one", on_error="stop")
    with pytest.raises(VitalsError, match="it gave 1 rewards for 2 samples"):
        call(found, ["a", "b"])


def test_what_float32_cannot_hold_is_a_failure(own):
    """It would be infinity in TRL, the advantages not a number, and the weights after them."""
    (found,), failures = made(f"{own}:huge")
    assert call(found, ["a", ""]) == [None, None]
    assert [str(f.error) for f in failures] == ["it gave 1e+39", "it gave -1e+39"]


def test_a_function_that_ends_the_program_fails_on_its_sample_alone(own):
    (found,), failures = made(f"{own}:leaves")
    assert call(found, ["a"]) == [None]
    assert failures[0].sentence.startswith("leaves failed on sample 0: SystemExit: 3")


def test_a_failure_is_one_line_of_some_length(own):
    (found,), failures = made(f"{own}:wordy")
    call(found, ["a"])
    (sentence,) = (f.sentence for f in failures)
    assert "two lines" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


def test_a_function_that_spoils_its_input_spoils_copies(own):
    (found,), _ = made(f"{own}:spoils")
    table, label = [json.loads(TABLE)], ["8"]
    assert call(found, ["abc"], table=table, label=label) == [3]
    assert table == [json.loads(TABLE)]
    assert label == ["8"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("my_rewards:rises", "has no function rises"),
        ("my_rewards:later", "later is asynchronous"),
        ("no_such_module:f", "no module no_such_module"),
        ("no_such_file.py:f", "no file no_such_file.py"),
        (":f", "no module is named"),
        ("cut.py:f", r"cut.py cannot be imported: SyntaxError: .*\n.*cut.py, line 2"),
        ("cut:f", r"cut cannot be imported: SyntaxError: .*\n.*cut.py, line 2"),
        ("fails.py:f", r"ZeroDivisionError: division by zero\n.*fails.py, line 1"),
        ("leaves.py:f", r"leaves.py cannot be imported: SystemExit: 3\n.*leaves.py, line 2"),
        ("lacks.py:f", r"no module no_such_module\n.*lacks.py, line 1"),
    ],
)
@pytest.mark.usefixtures("own")
def test_an_own_function_that_is_not_there_is_refused(name, problem):
    Path("cut.py").write_text("import os\ndef f(:\n")
    Path("fails.py").write_text("1 / 0\n")
    Path("leaves.py").write_text("import sys\nsys.exit(3)\n")
    Path("lacks.py").write_text("import no_such_module\n")
    with pytest.raises(UsageError) as refused:
        made(name)
    assert re.search(problem, str(refused.value))


# ---- a sentence encoder ----


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bar", "is", "high", "low", "a"]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16, max_position_embeddings=32,
        )
    ).save_pretrained(folder)  # fmt: skip
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return str(folder)


def test_thinking_like_the_reference_s_is_paid_most(encoder):
    (found,), failures = made("process_style_reward", process_model=encoder)
    thought = ["the bar is high", "low", "", "the bar is high " * 50]
    completions = [f"<think><table>x</table>{one}</think>" for one in thought]
    same, other, nothing, long = call(found, completions, reasoning=["the bar is high"] * 4)
    assert same == pytest.approx(1, abs=1e-5)
    assert 0 <= other < 0.99
    assert nothing == 0
    assert 0 <= long <= 1
    assert call(found, ["no thinking", completions[0]], reasoning=["a", ""]) == [0, None]
    assert failures == []


def test_a_model_adds_its_reward_to_the_task_s(encoder):
    found, _ = made(default=("format_reward",), process_model=encoder)
    assert [one.__name__ for one in found] == ["format_reward", "process_style_reward"]


def test_without_a_model_the_reward_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match="process_style_reward needs a model"):
        made("process_style_reward")
    with pytest.raises(UsageError, match="process_style_reward cannot be loaded"):
        made("process_style_reward", process_model=str(tmp_path / "none"))


# ---- the page, and the diagnosis ----

PAGE = Path(__file__).parents[3] / "docs" / "trainers" / "language-data-and-rewards.md"


def test_the_page_tells_each_function_and_its_range():
    told = [line for line in PAGE.read_text().splitlines() if "_reward` | " in line]
    assert told == [
        f"| `{one.name}` | {one.meaning} | {one.low:g} | {one.high:g} |"
        for one in rewards.REWARD_MEASURES
    ]


def test_the_page_s_own_function_does_what_it_says(tmp_path, monkeypatch):
    code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    (tmp_path / "rewards.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    (found,), failures = made("rewards.py:short")
    assert call(found, ["ab", "a" * 21, [{"role": "assistant", "content": "x"}]]) == [1, 0, 1]
    assert failures == []


def test_the_diagnosis_tells_the_answer_from_the_form():
    for measure in rewards.REWARD_MEASURES:
        found, _ = find(trl_grpo.NAMES, f"rewards/{measure.name}/mean")
        assert found == f"reward/component/{measure.name}"
        assert checks_the_answer(found) == (measure.name == RewardsConfig().correctness)


def test_a_run_whose_form_alone_improves_is_not_said_to_learn(tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.03, (2, 200))
    run = rlvitals.start(tmp_path / "run", name="form")
    for step, (one, two) in enumerate(noise.T, 1):
        form, right = min(2.0, step / 75) + one, 0.3 + two
        row = {"rewards/format_reward/mean": form, "rewards/accuracy_reward/mean": right}
        run.log(step, {"reward": form + right, "loss": one, "frac_reward_zero_std": 0.1, **row})
    run.finish()
    found = rlvitals.diagnose(tmp_path / "run")
    assert "accuracy reward does not follow" in found.verdict.why
    (rule, finding), *_ = found.findings
    assert (rule.name, finding.metric) == (
        "component-dominates",
        "reward/component/format_reward",
    )
