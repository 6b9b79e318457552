"""Models of Hugging Face as the policy: real folders with small weights, nothing fetched."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import get_peft_model
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
)

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.language import models
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.tiny import tokens, vlm

SMALL = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A causal model in bfloat16 whose tokenizer has no pad token and pads on the right."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = tokens.tokenizer()
    tokenizer.pad_token = None
    tokenizer.padding_side = "right"
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, **SMALL)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    tokens.tokenizer().save_pretrained(folder)
    GPT2LMHeadModel(GPT2Config(vocab_size=95, n_embd=16, n_layer=1, n_head=2)).save_pretrained(
        folder
    )
    return folder


def load(name, tmp_path, **said):
    return models.load(ModelConfig(vlm_name=str(name), **said), seed=0, base=tmp_path / "base")


def test_a_folder_is_a_policy(llama, tmp_path):
    loaded = load(llama, tmp_path)
    tokenizer = loaded.processor
    assert (loaded.vision, loaded.tiny) == (False, False)
    assert tokenizer.pad_token == tokenizer.eos_token == tokens.EOS_TOKEN
    assert loaded.model.generation_config.pad_token_id == tokenizer.eos_token_id
    asked = tokenizer(["1+1=", "1="], padding=True, return_tensors="pt")
    assert asked.attention_mask.tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    with torch.inference_mode():
        assert loaded.model.generate(**asked, max_new_tokens=2).shape[1] <= 6
    assert not (tmp_path / "base").exists(), "only a tiny model is kept in the run"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, torch.bfloat16),  # as its file has them
        ({"lora": False}, torch.float32),
        ({"lora": False, "dtype": "bfloat16"}, torch.bfloat16),
        ({"dtype": "float32"}, torch.float32),
    ],
)
def test_weights_that_are_trained_themselves_have_32_bits(llama, tmp_path, said, expected):
    assert load(llama, tmp_path, **said).model.dtype == expected


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's
def test_the_guides_adapters(llama, tmp_path):
    loaded = load(llama, tmp_path)
    assert (loaded.lora.r, loaded.lora.lora_alpha, loaded.lora.lora_dropout) == (8, 16, 0.05)
    assert loaded.lora.target_modules == set(ModelConfig().lora_targets)
    trained = get_peft_model(loaded.model, loaded.lora)
    grown = [name for name, value in trained.named_parameters() if value.requires_grad]
    assert len(grown) == 2 * len(ModelConfig().lora_targets)
    assert load(llama, tmp_path, lora=False).lora is None
    other = load(llama, tmp_path, lora_r=4, lora_alpha=2.0, lora_targets=("q_proj",)).lora
    assert (other.r, other.lora_alpha, other.target_modules) == (4, 2.0, {"q_proj"})


def test_layers_that_are_not_there_are_answered_with_those_that_are(llama, gpt2, tmp_path):
    with pytest.raises(UsageError, match="no linear layer c_attn") as caught:
        load(llama, tmp_path, lora_targets=("q_proj", "c_attn"))
    assert "one of down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        load(gpt2, tmp_path, lora_targets=("q_proj",))
    assert "one of c_attn, c_fc, c_proj, or --lora false" in caught.value.hint
    loaded = load(gpt2, tmp_path, lora_targets=("c_attn", "c_proj"))
    assert loaded.lora.target_modules == {"c_attn", "c_proj"}


def test_of_the_default_layers_those_that_are_there_are_enough(gpt2, tmp_path):
    tiny = load(vlm.VLM_NAME, tmp_path, warm_start_steps=0)
    gone = replace(ModelConfig(), lora_targets=("q_proj", "out_proj"))
    assert tiny.lora.target_modules == set(ModelConfig().lora_targets)
    lines = []
    found = models.lora(gone, tiny.model, lines.append)
    assert found.target_modules == {"q_proj", "out_proj"}
    assert lines == []
    default = models.lora(ModelConfig(), load(gpt2, tmp_path, lora=False).model, lines.append)
    assert lines == [f"Adapters on {', '.join(sorted(default.target_modules))}"]


def test_a_model_of_another_kind_is_refused(tmp_path):
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="t5 is neither a causal language model nor"):
        load(tmp_path, tmp_path)


@pytest.mark.parametrize("name", ["./not/here", "~/not/here", "/not/here"])
def test_a_folder_that_is_not_there(name, tmp_path):
    with pytest.raises(UsageError, match="there is no such folder"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "problem", "hint"),
    [
        ("tiny-vml", "there is no such model", "did you mean tiny-vlm or tiny-lm?"),
        ("qwen2-5-3", "there is no such model", "did you mean qwen2-5-3b"),
        (
            "nobody/nothing-at-all", "the model cannot be loaded",
            "fetch it where there is a network: hf download nobody/nothing",
        ),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_had_without_a_network(name, problem, hint, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(VitalsError, match=problem) as caught:
        load(name, tmp_path)
    assert hint in caught.value.hint


def test_an_empty_folder_and_one_without_weights(gpt2, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare").mkdir()
    for file in gpt2.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / "bare" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(VitalsError, match="the model cannot be loaded"):
        load(tmp_path / "empty", tmp_path)
    with pytest.raises(VitalsError, match=r"no file named model.safetensors"):
        load(tmp_path / "bare", tmp_path)


def test_aliases_are_names_of_the_hub():
    assert models.MODEL_ALIASES["qwen2-5-3b"] == "Qwen/Qwen2.5-VL-3B-Instruct"
    assert all(name.count("/") == 1 for name in models.MODEL_ALIASES.values())


def test_a_tokenizer_without_an_end_is_refused(gpt2, tmp_path):
    for file in gpt2.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    said = json.loads((tmp_path / "tokenizer_config.json").read_text())
    said.pop("eos_token")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    with pytest.raises(VitalsError, match="no token that ends a text"):
        load(tmp_path, tmp_path)


def test_the_page_names_every_alias():
    page = (Path(__file__).parents[3] / "docs" / "trainers" / "language-models.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    for alias, name in models.MODEL_ALIASES.items():
        assert any(f"`{alias}`" in line and name in line for line in lines), alias
