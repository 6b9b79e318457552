"""Each family of models that read images: load, template, images, update, save, resume, evaluate.

Weights are random and small; the processor is the family's own, on PIL where torchvision is
missing. Of a trained family all stages share one training of two steps.
"""

import json
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from effort import sampled
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoConfig, Idefics3Processor, SmolVLMConfig
from transformers.utils import is_torchvision_available
from vision_families import FAMILIES

import rlvitals
from rlvitals import VitalsError
from rlvitals.cli import main
from rlvitals.trainers.language import generate, models, processors
from rlvitals.trainers.language.config import ModelConfig

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # PaliGemma's
]
FLAGS = [
    "--batch-size", "2", "--num-generations", "2", "--save-steps", "1", "--diagnose-seconds", "0",
    "--max-completion-length", "4", "--subset-size", "4", "--held-out", "2", "--threads", "1",
    "--lr-scheduler-type", "constant", "--report-to", "none", "--chart-pixels", "56",
    "--functions", "trained:alternating", "--correctness", "alternating",
]  # fmt: skip
ADAPTERS = "adapter_model.safetensors"
QUESTION = "How high is B?"
# `make test` tries the first and the seventh.
ORDER = (
    "qwen2.5-vl", "qwen2-vl", "qwen3-vl", "idefics3", "internvl", "llava", "smolvlm", "llava-next",
    "llava-onevision", "gemma3", "paligemma",
)  # fmt: skip
every = partial(pytest.mark.parametrize, "name", sampled(ORDER, 6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a family, as on the hub; made once."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = FAMILIES[name](tmp_path_factory.mktemp("model"))
        return made[name]

    return of


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """Return the run of a family after two steps; trained once."""
    made = {}

    def of(name):
        if name not in made:
            run = tmp_path_factory.mktemp("run")
            assert train(folder(name), run, 2) == 0
            made[name] = run
        return made[name]

    return of


def train(model, run, steps):
    said = ["--vlm-name", str(model), "--output-dir", str(run), "--max-steps", str(steps)]
    return main(["train", "nsr", *said, *FLAGS])


def load(folder):
    return models.load(ModelConfig(vlm_name=str(folder)), seed=0, base=folder / "base")


def picture(colour):
    return Image.new("RGB", (56, 48), colour)


def read(loaded, image):
    prompt = [{"role": "user", "content": QUESTION}]
    return generate.inputs(loaded.processor, [prompt], [image])


def test_all_families_are_tried():
    assert set(ORDER) == set(FAMILIES)


@every()
def test_it_loads(name, folder):
    loaded = load(folder(name))
    assert loaded.vision
    assert {"q_proj", "v_proj"} <= set(loaded.lora.target_modules)
    assert loaded.processor.tokenizer.padding_side == "left"


@every()
def test_a_question_is_put_in_its_template_with_the_image_before_it(name, folder):
    loaded = load(folder(name))
    (ids,) = read(loaded, picture("white"))["input_ids"].tolist()
    text = loaded.processor.tokenizer.decode(ids)
    token = loaded.model.config.image_token_id
    assert ids.count(token) > 1
    before, _, after = text.partition(QUESTION)
    assert loaded.processor.tokenizer.decode([token]) in before
    if name != "paligemma":  # it has no template of its own
        assert before.startswith("<|im_start|>user")
        assert after.rstrip().endswith("assistant")


@every()
def test_what_it_says_depends_on_the_image(name, folder):
    loaded = load(folder(name))
    with torch.inference_mode():
        first, same, other = (
            loaded.model(**read(loaded, picture(colour))).logits[0, -1]
            for colour in ("white", "white", "red")
        )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.soak
@every()
def test_an_update_moves_the_adapters(name, trained):
    first, second = (load_file(trained(name) / f"checkpoint-{n}" / ADAPTERS) for n in (1, 2))
    assert first.keys() == second.keys()
    assert all(bool(torch.isfinite(value).all()) for value in second.values())
    assert any(not torch.equal(first[key], second[key]) for key in first)


@every()
def test_what_is_saved_is_whole_and_reads_again(name, folder, trained):
    run = trained(name)
    assert rlvitals.Checkpoints(run, tell=print).latest().step == 2
    about = AutoConfig.from_pretrained(folder(name))
    again = processors.load(about, str(run), vision=True)
    loaded = load(folder(name))
    before, after = (read(SimpleNamespace(processor=one), picture("red"))
                     for one in (loaded.processor, again))  # fmt: skip
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.soak
@every()
def test_a_resumed_training_ends_as_one_that_never_stopped(name, folder, trained, tmp_path):
    assert train(folder(name), tmp_path, 1) == 0
    assert train(folder(name), tmp_path, 2) == 0
    straight, resumed = trained(name), tmp_path
    assert (straight / ADAPTERS).read_bytes() == (resumed / ADAPTERS).read_bytes()


@every()
def test_it_is_evaluated(name, trained, capsys):
    run = trained(name)
    capsys.readouterr()  # what the training printed
    asked = ["evaluate", str(run), "--samples", "2", "--questions", "1", "--json"]
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["questions"], told["policies"][0]["step"]) == (1, 2)


# -- what is missing, from config.json alone ------------------------------------------------------


def configured(folder, model_type, **more):
    """Write a folder that holds a config.json and nothing else."""
    (folder / "config.json").write_text(json.dumps({"model_type": model_type, **more}))
    return ModelConfig(vlm_name=str(folder))


@pytest.mark.skipif(is_torchvision_available(), reason="torchvision is there")
@pytest.mark.parametrize("model_type", ["lfm2_vl", "cohere2_vision"])
def test_images_that_need_torchvision_are_refused_by_the_configuration(model_type, tmp_path):
    with pytest.raises(VitalsError, match="its processor needs torchvision") as caught:
        models.load(configured(tmp_path, model_type), seed=0, base=tmp_path)
    assert "pip install torchvision --index-url https://download.pytorch.org" in caught.value.hint


def test_smolvlm_without_num2words_is_refused_where_its_own_processor_is_used(monkeypatch):
    monkeypatch.setattr(processors, "is_torchvision_available", lambda: True)
    monkeypatch.setattr(processors, "is_num2words_available", lambda: False)
    with pytest.raises(VitalsError, match="its processor needs num2words") as caught:
        processors.check(SmolVLMConfig(), "smolvlm", vision=True)
    assert caught.value.hint.startswith("pip install num2words")


def test_smolvlm_without_torchvision_is_read_by_the_processor_of_idefics3(monkeypatch):
    monkeypatch.setattr(processors, "is_torchvision_available", lambda: False)
    processors.check(SmolVLMConfig(), "smolvlm", vision=True)
    assert processors._for_images(SmolVLMConfig()) is Idefics3Processor


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "quantised",
    [
        {"quant_method": "gptq", "bits": 4},
        {"quant_method": "awq", "bits": 4},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
    ],
    ids=lambda one: one["quant_method"],
)
def test_quantised_weights_are_refused_by_the_configuration(quantised, tmp_path):
    config = configured(tmp_path, "llama", quantization_config=quantised)
    with pytest.raises(VitalsError, match="its quantised weights cannot be loaded here") as caught:
        models.load(config, seed=0, base=tmp_path)
    assert "this machine has no CUDA GPU" in caught.value.hint
