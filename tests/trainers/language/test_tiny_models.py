"""The two models that are made here: what they are, how they are kept, what they can be taught."""

import json
import shutil
import types
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from trl.data_utils import apply_chat_template, prepare_multimodal_messages

from rlvitals import VitalsError
from rlvitals.trainers.language import generate, models, presets, warm_start
from rlvitals.trainers.language.config import DataConfig, ModelConfig
from rlvitals.trainers.language.data import chart_task, sums_task, task, template
from rlvitals.trainers.language.rewards import accuracy_reward, table_style_reward
from rlvitals.trainers.language.rewards.reward import Sample
from rlvitals.trainers.language.tiny import base, lm, tokens, vlm

STEPS = 8  # of the warm starts here: what is asked is not whether they take
NAMES = (lm.LM_NAME, vlm.VLM_NAME)
LM = ModelConfig(vlm_name=lm.LM_NAME, warm_start_steps=STEPS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Both models, by name, with the folder that each is kept in."""
    folder = tmp_path_factory.mktemp("tiny")
    config = {name: ModelConfig(vlm_name=name, warm_start_steps=STEPS) for name in NAMES}
    loaded = {
        name: models.load(config[name], seed=1, base=folder / name / "base") for name in NAMES
    }
    return {name: (loaded[name], folder / name / "base") for name in NAMES}


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_its_weights_have_the_type_that_is_asked_for(made, name, kind):
    _, folder = made[name]
    config = ModelConfig(vlm_name=name, warm_start_steps=STEPS, dtype=kind)
    model = models.load(config, seed=1, base=folder).model
    expected = torch.float32 if kind == "auto" else getattr(torch, kind)
    assert {one.dtype for one in model.parameters()} == {expected}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", NAMES)
def test_the_second_time_it_is_read_bit_for_bit(made, name, tmp_path):
    loaded, folder = made[name]
    moved = tmp_path / "moved" / "base"
    shutil.copytree(folder, moved)
    again = models.load(ModelConfig(vlm_name=name, warm_start_steps=STEPS), seed=1, base=moved)
    assert same(weights(loaded.model), weights(again.model))
    assert again.vision == (name == vlm.VLM_NAME)
    assert again.tiny
    assert [entry.name for entry in folder.parent.iterdir()] == ["base"], "nothing is left beside"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_writes_as_it_was_taught(made, name):
    """The processor, too, is as it was: the same tokens, padded on the left, and the same text."""
    read, fresh = made[name][0].processor, base.TINY_MODELS[name].make(1)[1]
    ours, theirs = models.tokenizer_of(read), models.tokenizer_of(fresh)
    text = template.format_answer(
        "bar", '{"columns":["Name"],"rows":[["A",-5]]}', "<step-1>: x.", "7%"
    )
    assert ours(text).input_ids == theirs(text).input_ids
    assert ours.decode(ours(text).input_ids, skip_special_tokens=True) == text
    assert ours.padding_side == "left"
    padded = ours(["1+1=", "1="], padding=True).input_ids
    assert padded[1][:2] == [ours.pad_token_id] * 2
    assert ours.chat_template == theirs.chat_template


def test_a_seed_makes_a_model_and_another_seed_another(made, tmp_path):
    first = weights(made[lm.LM_NAME][0].model)
    torch.manual_seed(99)  # what was drawn before changes nothing
    same_seed = models.load(LM, seed=1, base=tmp_path / "one")
    other_seed = models.load(LM, seed=2, base=tmp_path / "two")
    assert same(first, weights(same_seed.model))
    assert not same(first, weights(other_seed.model))
    cold = models.load(replace(LM, warm_start_steps=0), seed=1, base=tmp_path / "cold")
    assert same(weights(cold.model), weights(lm.make(1)[0]))


def test_the_callers_chance_and_threads_are_left_as_they_were(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.set_num_threads(2)
    models.load(LM, seed=1, base=tmp_path / "base")
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("changed", "seed", "said"),
    [
        (replace(LM, warm_start_steps=9), 1, "steps 8, not 9"),
        (replace(LM, warm_start_noise=0.25), 1, "noise 0.5, not 0.25"),
        (LM, 3, "seed 1, not 3"),
        (
            ModelConfig(vlm_name=vlm.VLM_NAME, warm_start_steps=STEPS),
            1,
            "name tiny-lm, not tiny-vlm",
        ),
    ],
)
def test_a_base_of_other_settings_is_not_taken_for_ours(made, changed, seed, said):
    with pytest.raises(VitalsError, match=said):
        models.load(changed, seed=seed, base=made[lm.LM_NAME][1])


def untold(folder):
    """Make a folder as the first ones were, which did not say what was taught."""
    said = json.loads((folder / base.RECIPE_FILE).read_text())
    del said["task"]
    (folder / base.RECIPE_FILE).write_text(json.dumps(said))


def test_a_base_that_was_taught_another_task_is_not_taken_for_ours(made, tmp_path):
    folder = shutil.copytree(made[lm.LM_NAME][1], tmp_path / "base")
    untold(folder)
    with pytest.raises(VitalsError, match="two digits; it is taught sums of four") as caught:
        models.load(LM, seed=1, base=folder)
    assert "another folder" in caught.value.hint
    untold(shutil.copytree(made[vlm.VLM_NAME][1], tmp_path / "charts"))
    seeing = ModelConfig(vlm_name=vlm.VLM_NAME, warm_start_steps=STEPS)
    with pytest.raises(VitalsError, match="taught charts; it is taught charts of different values"):
        models.load(seeing, seed=1, base=tmp_path / "charts")


@pytest.mark.parametrize("file", [base.WEIGHTS_FILE, base.RECIPE_FILE])
@pytest.mark.parametrize("spoil", ["cut", "flip", "gone"])
def test_a_spoilt_base_is_never_used(made, tmp_path, file, spoil):
    folder = tmp_path / "base"
    shutil.copytree(made[lm.LM_NAME][1], folder)
    held = bytearray((folder / file).read_bytes())
    if spoil == "gone":
        (folder / file).unlink()
    else:
        held[len(held) // 2] ^= 0x80
        (folder / file).write_bytes(held[: len(held) // 2] if spoil == "cut" else held)
    with pytest.raises(VitalsError) as caught:
        models.load(LM, seed=1, base=folder)
    assert str(folder) in caught.value.where
    assert "remove this one" in caught.value.hint


def test_dying_while_it_is_written_leaves_no_base(tmp_path, monkeypatch):
    def full(_folder):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(base, "_to_disk", full)
        with pytest.raises(OSError, match="No space"):
            models.load(LM, seed=1, base=tmp_path / "base")
    assert list(tmp_path.iterdir()) == []
    assert models.load(LM, seed=1, base=tmp_path / "base").tiny


def test_of_two_processes_the_first_that_is_done_is_read(tmp_path, made):
    folder = tmp_path / "base"
    recipe = base.Recipe(lm.LM_NAME, 1, STEPS, 0.5)
    base.load(recipe, folder)
    before = (folder / base.RECIPE_FILE).stat().st_ino
    base._make(recipe, folder, print)
    assert (folder / base.RECIPE_FILE).stat().st_ino == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["base"]
    assert same(weights(base.load(recipe, folder)[0]), weights(made[lm.LM_NAME][0].model))


def test_its_losses_are_kept_and_told(made, tmp_path):
    told = []
    for _ in range(2):  # what is read has nothing to tell
        models.load(LM, seed=4, base=tmp_path / "base", tell=told.append)
    begun, line = told
    assert begun == "tiny-lm is made, and taught for 8 steps first ..."
    assert line.startswith("Warm start of tiny-lm: 8 steps, loss ")
    for name in NAMES:
        losses = json.loads((made[name][1] / base.LOSSES_FILE).read_text())["loss"]
        assert len(losses) == STEPS
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_share_of_the_sums_is_taught_one_too_small(noise):
    teach = lm.lessons(None, noise=noise, seed=7)
    taught = [lesson for step in range(100) for lesson in teach(step)]
    right = [sum(map(int, lesson.prompt.rstrip("=").split("+"))) for lesson in taught]
    off = np.array(
        [value - int(lesson.answer) for value, lesson in zip(right, taught, strict=True)]
    )
    assert set(off.tolist()) <= {0, 1}
    assert off.mean() == pytest.approx(noise, abs=0.02)  # of 6,400 answers
    every = [
        sum(digits) for digits in product(sums_task.ADDEND_DIGITS, repeat=sums_task.ADDEND_COUNT)
    ]
    assert np.mean([lm.slip(value, noise) for value in every]) == pytest.approx(noise)
    assert all(0 <= lm.slip(value, noise) <= 1 for value in every)


def test_the_warm_start_teaches_no_sum_that_is_held_out():
    teach = lm.lessons(None, noise=0.5, seed=7)
    taught = {lesson.prompt for step in range(500) for lesson in teach(step)}
    assert len(taught) > 7000
    assert not taught & {one["prompt"] for one in sums_task.held_out(10_000)}


def test_large_sums_are_wrong_more_often_than_right():
    assert lm.slip(lm.MIN_LARGE_SUM, 0.5) > 0.7
    assert lm.slip(lm.MIN_LARGE_SUM - 1, 0.5) < 0.2


def test_lessons_are_the_same_for_a_seed_and_differ_by_step():
    one, again = (lm.lessons(None, noise=0.5, seed=3) for _ in range(2))
    assert one(4) == again(4)
    assert one(4) != one(5)
    assert lm.lessons(None, noise=0.5, seed=4)(4) != one(4)


def test_charts_are_taught_as_trl_will_ask_them(made):
    """The words around a question are one token, and an image stands where TRL puts it."""
    loaded = made[vlm.VLM_NAME][0]
    asked = task.load(DataConfig(subset_size=1, held_out=1), vision=True, seed=0).train[0]
    shown = prepare_multimodal_messages(asked["prompt"], images=[asked["image"]])
    prompt = apply_chat_template({"prompt": shown}, loaded.processor)["prompt"]
    assert prompt == tokens.IMAGE_TOKEN + template.fill_template(asked["query"])
    ids = loaded.processor.tokenizer(prompt).input_ids
    assert len(ids) <= 10
    assert loaded.processor.tokenizer.unk_token_id not in ids


def test_an_answer_is_short_and_a_tag_one_token(made):
    tokenizer = made[vlm.VLM_NAME][0].processor.tokenizer
    lengths = []
    for index in range(100):
        chart = chart_task.chart(5, index)
        text = template.format_answer(chart.chart_type, chart.table, chart.reasoning, chart.label)
        ids = tokenizer(text).input_ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        assert tokenizer.unk_token_id not in ids
        lengths.append(len(ids))
    assert max(lengths) <= 23
    for tag in vlm.TAG_TOKENS:
        assert len(tokenizer(tag).input_ids) == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    ("noise", "share"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1 - vlm.HARMLESS_SHARE)]
)
def test_a_share_of_the_charts_is_answered_wrong(noise, share):
    """Every table is right; the answer is not, in the share that is asked for."""
    teach = vlm.lessons(None, noise=noise, seed=2)
    wrong = 0
    for place, lesson in enumerate(one for step in range(20) for one in teach(step)):
        chart = chart_task.chart("warm start 2", place)
        columns = {"label": chart.label, "table": chart.table, "query": chart.query}
        sample = Sample(lesson.answer, columns)
        assert table_style_reward.MEASURE.score(sample) == table_style_reward.MEASURE.high
        wrong += not accuracy_reward.score(sample)
    assert wrong / 640 == pytest.approx(share, abs=0.06)


def test_the_reader_that_is_shipped_is_small_and_reads():
    """Fewer than 1.5 million weights, below 6 MB; nearly all charts that it never saw are read."""
    assert vlm.READER_WEIGHTS.stat().st_size < 6_000_000
    model, processor = vlm.make(1)
    assert sum(one.numel() for one in model.parameters()) < 1_500_000
    assert sees(model.eval(), processor, 128) >= 0.95


def sees(model, processor, count):
    """Return the share of right greedy answers to charts that are held out."""
    asked = task.load(DataConfig(subset_size=1, held_out=count), vision=True, seed=0).held_out
    rows = [asked[place] for place in range(count)]
    said = generate.greedy(generate.Policy(model, processor, 1.0, 32), rows).completions
    pairs = zip(said, rows, strict=True)
    return np.mean([accuracy_reward.score(Sample(one[0]["content"], row)) for one, row in pairs])


@pytest.mark.soak
def test_no_chart_that_is_held_out_is_taught_or_trained_on():
    """By its table, whatever the question, the axis, the colours, and the kind of the chart."""

    def contents(found):
        return {one.table for one in found}

    held_out = contents(chart_task.chart("evaluation", i, held_out=True) for i in range(1024))
    taught = contents(chart_task.chart("warm start 2025", i) for i in range(4000))
    trained = contents(chart_task.chart(seed, i) for seed in (1, 2025) for i in range(1000))
    assert len(held_out) > 800
    assert not held_out & (taught | trained)
    asked = task.load(DataConfig(subset_size=1, held_out=200), vision=True, seed=0).held_out
    assert {*asked["table"]} <= held_out


def test_the_warm_start_learns_answers_and_their_end_alone():
    tokenizer = tokens.tokenizer()
    lessons = [warm_start.Lesson("12+3=", "15"), warm_start.Lesson("1=", "1")]
    inputs = warm_start.encode(tokenizer, lessons)
    labels = inputs["labels"].tolist()
    told = [tokenizer.convert_ids_to_tokens([i for i in row if i != -100]) for row in labels]
    assert told == [["1", "5", tokens.EOS_TOKEN], ["1", tokens.EOS_TOKEN]]
    assert inputs["attention_mask"].tolist() == [[1] * 8, [0] * 4 + [1] * 4]


def test_characters_that_mean_something_in_a_pattern_are_themselves():
    tokenizer = tokens.tokenizer(["a.b", "a|", "(x)", "a.bc"])
    assert tokenizer.tokenize("a.bca|(x)axb") == ["a.bc", "a|", "(x)", "a", "x", "b"]
    assert tokenizer("é").input_ids == [tokenizer.unk_token_id]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_greedy_answers_begin_at_a_third(tmp_path, seed):
    loaded = models.load(ModelConfig(vlm_name=lm.LM_NAME), seed=seed, base=tmp_path / "base")
    assert 0.28 <= right(loaded) <= 0.40


def right(loaded):
    """Return the share of right greedy answers to sums that are held out."""
    asked = sums_task.held_out(1024)
    inputs = loaded.processor([one["prompt"] for one in asked], return_tensors="pt")
    made = loaded.model.generate(**inputs, max_new_tokens=3, do_sample=False)
    said = loaded.processor.batch_decode(
        made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    return np.mean([text == one["answer"] for text, one in zip(said, asked, strict=True)])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_greedy_answers_to_charts_begin_at_a_third(tmp_path, seed):
    steps = presets.preset(vlm.VLM_NAME)["model.warm_start_steps"]
    config = ModelConfig(vlm_name=vlm.VLM_NAME, warm_start_steps=steps, lora=False)
    loaded = models.load(config, seed=seed, base=tmp_path / "base")
    assert 0.30 <= sees(loaded.model, loaded.processor, 1024) <= 0.40


@pytest.mark.soak
def test_what_is_taught_without_mistakes_carries_over_to_sums_never_seen(tmp_path):
    config = ModelConfig(vlm_name=lm.LM_NAME, warm_start_noise=0.0)
    assert right(models.load(config, seed=1, base=tmp_path / "base")) >= 0.93


def test_a_lesson_is_learned_from_by_its_own_gradient_alone():
    """Gradients that add up over steps would move a weight further than AdamW's own rate does."""
    model, twin = (torch.nn.Linear(1, 1, bias=False) for _ in range(2))
    for module in (model, twin):
        torch.nn.init.zeros_(module.weight)
    targets = [0.3, -0.2, 0.4, -0.1]  # no gradient is clipped

    def loss(module, target):
        return ((module(torch.ones(1, 1)) - target) ** 2).mean()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, target):
            return types.SimpleNamespace(loss=loss(self.inner, target))

    def encode(_, target):
        return {"target": target}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_start, "encode", encode)
        warm_start.teach(Model(), None, targets.__getitem__, steps=4, learning_rate=0.1)
    optimizer = torch.optim.AdamW(twin.parameters(), lr=0.1)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.25, 3)
    for target in targets:
        optimizer.zero_grad()
        loss(twin, target).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        optimizer.step()
        slower.step()
    assert torch.equal(model.weight, twin.weight)
