"""Real architectures go the whole way: trained, saved, resumed, evaluated; random weights."""

import json

import families
import pytest
from effort import sampled
from safetensors import safe_open

import rlvitals
from rlvitals import VitalsError
from rlvitals.cli import main
from rlvitals.trainers.language import evaluate_model, generate, models
from rlvitals.trainers.language.config import ModelConfig

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # PaliGemma's
]
SMALL = [
    "--batch-size", "2", "--num-generations", "2", "--save-steps", "1", "--diagnose-seconds", "0",
    "--max-completion-length", "4", "--subset-size", "4", "--held-out", "2", "--threads", "1",
    "--lr-scheduler-type", "constant",
    "--report-to", "none", "--functions", "trained:alternating", "--correctness", "alternating",
]  # fmt: skip
ADAPTERS, WEIGHTS = "adapter_model.safetensors", "model.safetensors"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return the folder of a family, made once."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = getattr(families, name)(tmp_path_factory.mktemp(name))
        return made[name]

    return of


def words(tmp_path):
    """Return the flags of what a family is asked."""
    rows = [{"prompt": f"What is {a}+1?", "answer": str(a + 1)} for a in range(8)]
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return ["--dataset-name", str(file)]


@pytest.mark.parametrize(
    ("name", "more"),
    sampled(
        [
            pytest.param("qwen2 nsr", []),
            pytest.param("llama nsr", ["--lora", "false"]),
            pytest.param("gpt2 grpo", ["--beta", "0.1", "--num-iterations", "2"]),
        ],
        2,
    ),
)
def test_a_family_is_trained_resumed_and_evaluated(name, more, folder, tmp_path, capsys):
    run, (name, mode) = tmp_path / "run", name.split()
    saved = WEIGHTS if "--lora" in more else ADAPTERS
    asked = ["train", mode, "--vlm-name", str(folder(name)), "--output-dir", str(run), *SMALL]
    asked += [*words(tmp_path), *more]
    assert main([*asked, "--max-steps", "2"]) == 0
    assert main([*asked, "--max-steps", "3"]) == 0
    assert "resumed at step 2 from checkpoint-2" in capsys.readouterr().out
    assert moved(run / "checkpoint-2" / saved, run / "checkpoint-3" / saved)
    assert main(["evaluate", str(run), "--samples", "2", "--questions", "1"]) == 0
    assert "step 3" in capsys.readouterr().out


@pytest.mark.parametrize("name", sampled(["qwen2", "llava"], 2))
def test_a_model_that_chats_is_asked_in_its_template(name, folder, tmp_path, capsys):
    """Where that is asked for: in training and in evaluation; a person is told that it can be."""
    about = ["--vlm-name", str(folder(name)), *words(tmp_path), *SMALL]
    for way, begin in ([], "What is "), (["--chat"], "<|im_start|>user\nWhat is "):
        run = tmp_path / f"run{len(way)}"
        asked = ["train", "nsr", *about, *way, "--output-dir", str(run), "--max-steps", "1"]
        assert main(asked) == 0
        assert ("in its template" in capsys.readouterr().out) != bool(way)
        (log, *_) = rlvitals.read(run)
        prompts = log.tables["completions"].columns["prompt"]
        assert all(str(one).startswith('[{"role": "user"' if way else begin) for one in prompts)
        assert main(["evaluate", str(run), "--samples", "1", "--questions", "1"]) == 0
        assert "step 1" in capsys.readouterr().out
        question = evaluate_model.load(run).questions[0]["prompt"]
        reads = families.tokenizer()
        (tokens,) = generate.inputs(reads, [question], None)["input_ids"].tolist()
        assert reads.decode(tokens).startswith(begin)


@pytest.mark.soak
def test_rlhf_asks_in_the_template_too(folder, tmp_path, capsys):
    said = [
        "--vlm-name", str(folder("qwen2")), *words(tmp_path), "--batch-size", "4",
        "--total-episodes", "4", "--response-length", "4", "--held-out", "0", "--report-to",
        "none", "--functions", "trained:alternating", "--threads", "1", "--diagnose-seconds", "0",
    ]  # fmt: skip
    for way, begin in ([], "What is "), (["--chat"], "<|im_start|>user\nWhat is "):
        run = tmp_path / f"run{len(way)}"
        assert main(["train", "rlhf", *said, *way, "--output-dir", str(run)]) == 0
        assert ("in its template" in capsys.readouterr().out) != bool(way)
        (log, *_) = rlvitals.read(run)
        prompts = log.tables["game_log"].columns["prompt"]
        assert all(str(one).startswith(begin) for one in prompts)


@pytest.mark.parametrize("mode", ["nsr", "rlhf"])
def test_a_model_without_a_template_cannot_be_asked_in_it(mode, folder, tmp_path, capsys):
    asked = ["train", mode, "--vlm-name", str(folder("gpt2")), *words(tmp_path)]
    assert main([*asked, "--chat", "--output-dir", str(tmp_path / "run")]) == 2
    assert "the model has no chat template" in capsys.readouterr().err


def moved(before, after):
    """Say whether weights are others than before."""
    with safe_open(before, "pt") as then, safe_open(after, "pt") as now:
        assert set(then.keys()) == set(now.keys())
        return any(bool((then.get_tensor(key) != now.get_tensor(key)).any()) for key in now.keys())  # noqa: SIM118


@pytest.mark.parametrize(
    ("name", "adapted", "transposed"),
    [
        ("gpt2", {"c_attn", "c_fc", "c_proj"}, True),
        ("neox", {"dense", "query_key_value", "dense_h_to_4h", "dense_4h_to_h"}, False),
        ("phi3", {"o_proj", "down_proj", "qkv_proj", "gate_up_proj"}, False),
    ],
)
def test_adapters_are_on_the_layers_that_a_family_has(name, adapted, transposed, folder, tmp_path):
    told = []
    config = ModelConfig(vlm_name=str(folder(name)))
    lora = models.load(config, seed=0, base=tmp_path, tell=told.append).lora
    assert (lora.target_modules, lora.fan_in_fan_out) == (adapted, transposed)
    assert len(told) == 1
    assert all(one in told[0] for one in adapted)


class Bare:
    """A processor of neither chat template nor image token."""

    chat_template = None


def test_a_processor_that_cannot_be_asked_is_refused():
    with pytest.raises(VitalsError, match="its Bare has no chat template, and no image token"):
        models.give_template(Bare(), print)
