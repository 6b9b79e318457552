"""A policy's answers are those of its own forward passes, alone or in a batch."""

import math

import pytest
import torch
from PIL import Image
from transformers import GenerationConfig

from rlvitals.trainers.language import data, generate
from rlvitals.trainers.language.config import DataConfig, ModelConfig
from rlvitals.trainers.language.generate import Entropy, Policy
from rlvitals.trainers.language.models import load

LONGEST = 6
ROWS = [{"prompt": prompt, "answer": ""} for prompt in ("3+4=", "9+9=", "12+3+4=", "0+0=")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    config = ModelConfig(vlm_name="tiny-lm", lora=False, warm_start_steps=60)
    return load(config, seed=1, base=tmp_path_factory.mktemp("asking") / "base")


@pytest.fixture
def policy(made):
    return Policy(made.model, made.processor, temperature=1.0, longest=LONGEST)


def logits(policy, ids):
    with torch.inference_mode():
        return policy.model(torch.tensor([ids])).logits[0].double()


@pytest.mark.soak
def test_greedy_takes_the_likeliest_token_of_each_forward_pass(policy):
    found = generate.greedy(policy, ROWS)
    for row, text, ids in zip(ROWS, found.completions, found.ids, strict=True):
        so_far = policy.processor(row["prompt"]).input_ids
        want = []
        while len(want) < LONGEST and policy.processor.eos_token_id not in want:
            want.append(int(logits(policy, so_far + want)[-1].argmax()))
        assert ids == want
        assert text == policy.processor.decode(want, skip_special_tokens=True)


@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_the_entropy_is_of_the_distributions_that_tokens_were_drawn_from(made, temperature):
    policy = Policy(made.model, made.processor, temperature, LONGEST)
    total = Entropy()
    torch.manual_seed(3)
    found = generate.sample(policy, ROWS * 8, total)
    nats = []
    for row, ids in zip(ROWS * 8, found.ids, strict=True):
        prompt = policy.processor(row["prompt"]).input_ids
        tempered = logits(policy, prompt + ids)[len(prompt) - 1 : -1] / temperature
        nats += torch.distributions.Categorical(logits=tempered).entropy().tolist()
    assert total.tokens == len(nats) == sum(map(len, found.ids))
    assert total.mean() == pytest.approx(sum(nats) / len(nats), rel=1e-5)


def test_samples_are_drawn_from_all_tokens_by_the_generators_seed(made):
    policy = Policy(made.model, made.processor, temperature=1e6, longest=1)

    def drawn(seed):
        torch.manual_seed(seed)
        return generate.sample(policy, ROWS[:1] * 2000, Entropy()).ids

    first = drawn(0)
    assert first == drawn(0) != drawn(1)
    assert len({ids[0] for ids in first}) == made.model.config.vocab_size > 50  # not the best 50


def test_a_question_that_is_read_once_has_the_answers_of_one_that_is_read_each_time(made):
    policy = Policy(made.model, made.processor, temperature=1.0, longest=LONGEST)
    found = []
    for rows, each in ((ROWS, 5), ([row for row in ROWS for _ in range(5)], 1)):
        torch.manual_seed(4)
        total = Entropy()
        found.append((generate.sample(policy, rows, total, each=each).ids, total.tokens))
    assert found[0] == found[1]
    assert len(found[0][0]) == 5 * len(ROWS)


def test_what_the_model_says_of_generation_stands_back_and_is_put_back(policy):
    plain, own = generate.greedy(policy, ROWS).ids, policy.model.generation_config
    said = GenerationConfig(
        do_sample=True, temperature=9.0, top_k=2, repetition_penalty=9.0, max_new_tokens=1,
        eos_token_id=own.eos_token_id,
    )  # fmt: skip
    policy.model.generation_config = said
    try:
        assert generate.greedy(policy, ROWS).ids == plain
        assert policy.model.generation_config is said
    finally:
        policy.model.generation_config = own


def test_a_completion_ends_with_any_token_that_the_model_names(policy):
    two = policy.processor("2").input_ids[0]
    own = policy.model.generation_config
    policy.model.generation_config = GenerationConfig(eos_token_id=[own.eos_token_id, two])
    try:
        torch.manual_seed(0)
        found = generate.sample(policy, ROWS * 50, Entropy())
    finally:
        policy.model.generation_config = own
    ended = [ids for ids in found.ids if two in ids]
    assert len(ended) > 10
    assert all(ids.index(two) == len(ids) - 1 for ids in ended)


def test_a_model_that_sees_is_shown_each_question_its_own_image(tmp_path):
    config = ModelConfig(vlm_name="tiny-vlm", lora=False, warm_start_steps=3)
    made = load(config, seed=1, base=tmp_path / "base")
    asked = DataConfig(dataset_name="charts", subset_size=2, held_out=3)
    rows = list(data.load(asked, vision=True, seed=1).held_out)
    policy = Policy(made.model, made.processor, temperature=1.0, longest=LONGEST)
    found = generate.greedy(policy, rows)
    for row, said, ids in zip(rows, found.completions, found.ids, strict=True):
        prompt = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": ""}]}]
        prompt[0]["content"][1]["text"] = row["prompt"][0]["content"]
        text = made.processor.apply_chat_template(prompt, add_generation_prompt=True)
        seen = made.processor(text=text, images=[row["image"]], return_tensors="pt")
        want = []
        while len(want) < LONGEST and made.processor.tokenizer.eos_token_id not in want:
            so_far = torch.cat([seen["input_ids"], torch.tensor([want], dtype=torch.long)], dim=1)
            with torch.no_grad():
                scores = made.model(so_far, pixel_values=seen["pixel_values"]).logits[0, -1]
            scores[made.model.config.image_token_id] = -torch.inf  # is never drawn
            want.append(int(scores.argmax()))
        assert ids == want
        text = made.processor.tokenizer.decode(want, skip_special_tokens=True)
        assert said == [{"role": "assistant", "content": text}]
    blank = [{**row, "image": Image.new("RGB", row["image"].size)} for row in rows]
    total, other = Entropy(), Entropy()
    for images, into in ((rows, total), (blank, other)):
        torch.manual_seed(0)
        generate.sample(policy, images, into)
    assert total.nats != other.nats


def test_no_token_has_no_entropy():
    assert math.isnan(Entropy().mean())
