"""How good a run is, is told from its checkpoint as it lies there, and nothing of it is changed."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import trained as small
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.cli import main
from rlvitals.errors import UsageError, VitalsError
from rlvitals.trainers import schema
from rlvitals.trainers.language import evaluate_model, factory, models, presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.generate import Answers
from rlvitals.trainers.language.program import Training
from rlvitals.trainers.language.tiny import base as tiny

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")  # transformers' own
QUESTIONS, SAMPLES = 50, 6


def trained(folder, **said):
    said |= {
        "training.output_dir": str(folder), "training.mode": "psr", "model.vlm_name": "tiny-lm",
        "training.max_steps": 4, "checkpointing.save_steps": 2, "model.warm_start_steps": 200,
        "training.learning_rate": 1e-3, "data.held_out": QUESTIONS, "monitoring.report_to": (),
        "monitoring.progress_bar": False,
    }  # fmt: skip
    config = schema.load(Config, None, said, below=presets.preset("tiny-lm"))
    assert Training(config).run() == "finished"
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("evaluating") / "run")


@pytest.fixture(scope="module")
def adapted(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapted") / "run"
    shutil.copytree(run / models.BASE_FOLDER, folder / models.BASE_FOLDER)
    return trained(folder, **{"model.lora": True})


def greedy(folder, rows, tokenizer):
    """Count right answers by hand: each question by itself, each token by a forward pass."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    right = 0
    for row in rows:
        ids = tokenizer(row["prompt"]).input_ids
        said = []
        while len(said) < 6 and tokenizer.eos_token_id not in said:
            with torch.inference_mode():
                said.append(int(model(torch.tensor([ids + said])).logits[0, -1].argmax()))
        right += tokenizer.decode(said, skip_special_tokens=True) == row["answer"]
    return right


def test_each_checkpoint_is_judged_by_its_own_weights(run):
    tokenizer = AutoTokenizer.from_pretrained(run / models.BASE_FOLDER)
    places = {4: run / "checkpoint-4", 2: run / "checkpoint-2", 0: run / models.BASE_FOLDER}
    found = set()
    for step, place in places.items():
        made = evaluate_model.load(run, step=step)
        asked = evaluate_model.evaluate(made, samples=0)
        assert made.step == step
        assert asked.questions == QUESTIONS == len(made.questions)
        assert 0 < asked.right == greedy(place, made.questions, tokenizer)
        held = AutoModelForCausalLM.from_pretrained(place).state_dict()
        own = made.policy.model.state_dict()
        assert all(torch.equal(own[name], held[name]) for name in held)
        found.add(float(own["model.norm.weight"].sum()))
    assert len(found) == 3
    assert evaluate_model.load(run).step == 4


@pytest.mark.soak
def test_adapters_are_put_onto_the_base(adapted):
    rows = evaluate_model.load(adapted).questions[:4]["prompt"]
    made = {step: evaluate_model.load(adapted, step=step).policy for step in (4, 2, 0)}
    asked = made[0].processor(rows, return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = {step: one.model(**asked).logits for step, one in made.items()}
        with made[4].model.disable_adapter():
            assert torch.equal(made[4].model(**asked).logits, logits[0])
    assert not torch.equal(logits[4], logits[2])
    assert not torch.equal(logits[2], logits[0])


def test_pass_at_1_is_the_share_of_samples_and_the_seed_says_which(run):
    made = evaluate_model.load(run)
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first, again, other = (
        evaluate_model.evaluate(made, samples=SAMPLES, seed=s) for s in (3, 3, 4)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert first == again
    assert first.right_samples != other.right_samples
    assert first.right == other.right
    assert len(first.right_samples) == QUESTIONS
    assert 0 < max(first.right_samples) <= SAMPLES
    few = evaluate_model.evaluate(made, questions=5, samples=2)
    assert (few.questions, len(few.right_samples)) == (5, 2 * 5 // 2)


def test_more_samples_than_a_batch_holds_are_drawn_in_several(run):
    made = replace(evaluate_model.load(run), batch=4)
    found = evaluate_model.evaluate(made, questions=3, samples=10)
    assert (found.questions, found.samples, len(found.right_samples)) == (3, 10, 3)
    assert max(found.right_samples) <= 10
    assert [(len(rows), each) for rows, each in evaluate_model._samples([{}] * 3, 10, 4)] == [
        (1, 4), (1, 4), (1, 2),
    ] * 3  # fmt: skip
    assert [(len(rows), each) for rows, each in evaluate_model._samples([{}] * 3, 4, 8)] == [
        (2, 4), (1, 4),
    ]  # fmt: skip


def test_it_shows_how_far_it_is_beside_what_it_prints(run, capsys, monkeypatch):
    monkeypatch.setattr(evaluate_model, "TINY_BATCH_SIZE", 16)
    assert main(["evaluate", str(run), "--samples", "4", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["samples"] == 4
    lines = told.err.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("Evaluating step 4: 100% 250/250 [")


def test_nothing_of_the_run_is_changed(run):
    def seen():
        files = sorted(path for path in run.rglob("*") if path.is_file())
        return [(path, path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = seen()
    assert main(["evaluate", str(run), "--base", "--samples", "2", "--questions", "8"]) == 0
    assert seen() == before


def test_a_damaged_checkpoint_is_not_judged(run, tmp_path):
    run = shutil.copytree(run, tmp_path / "run")
    weights = run / "checkpoint-4" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert evaluate_model.load(run).step == 2
    with pytest.raises(BadCheckpoint, match=r"model\.safetensors"):
        evaluate_model.load(run, step=4)
    assert weights.is_file()  # not set aside: that is a resume's to do
    with pytest.raises(BadCheckpoint, match="no such checkpoint"):
        evaluate_model.load(run, step=3)
    for step in (2, 4):
        (run / f"checkpoint-{step}" / "manifest.json").unlink()
    with pytest.raises(UsageError, match="no whole checkpoint"):
        evaluate_model.load(run)


def test_the_command_shows_what_it_found(run, capsys):
    options = ["evaluate", str(run), "--base", "--samples", "4"]
    assert main([*options, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert main(options) == 0
    shown = capsys.readouterr().out
    asked = [evaluate_model.evaluate(evaluate_model.load(run, step=s), samples=4) for s in (4, 0)]
    assert [one["step"] for one in said["policies"]] == [4, 0]
    assert (said["mode"], said["task"], said["questions"]) == ("psr", "sums", QUESTIONS)
    for told, found in zip(said["policies"], asked, strict=True):
        right, first = told["right"], told["pass_at_k"][0]
        assert right["value"] == found.right / QUESTIONS
        assert 0 < right["low"] < right["value"] < right["high"] < 1
        assert first["value"] == pytest.approx(sum(found.right_samples) / QUESTIONS / 4)
        assert [one["k"] for one in told["pass_at_k"]] == [1, 2, 4]
        assert told["entropy"] == found.entropy
        for share in (right, *told["pass_at_k"]):
            assert f"{share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%})" in shown
    lines = shown.splitlines()
    assert lines[0] == f"psr on sums, {QUESTIONS} questions"
    assert lines[2].split("  ")[-1].strip() == "as training began"
    assert "held out" not in shown  # there are as many as were asked for


@pytest.mark.soak
def test_json_is_all_that_stdout_holds(run):
    """transformers prints a line to stdout where Weights & Biases is offline."""
    done = subprocess.run(
        [sys.executable, "-m", "rlvitals", "evaluate", str(run), "--samples", "0", "--json"],
        check=True, capture_output=True, text=True, env={**os.environ, "WANDB_MODE": "offline"},
    )  # fmt: skip
    assert json.loads(done.stdout)["questions"] == QUESTIONS


def test_a_checkpoint_is_named_by_step_or_folder(run, capsys):
    for name in ("2", "checkpoint-2", f"{run}/checkpoint-2/"):
        options = ["--checkpoint", name, "--samples", "1", "--questions", "2", "--json"]
        assert main(["evaluate", str(run), *options]) == 0
        (one,) = json.loads(capsys.readouterr().out)["policies"]
        assert one["step"] == 2
    assert main(["evaluate", str(run), "--checkpoint", "newest"]) == 2
    assert "neither a step nor a checkpoint" in capsys.readouterr().err


def test_what_is_no_run_is_said(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "ppo_config.json or training_config.json" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"training_config\.json"):
        evaluate_model.load(tmp_path)


def test_a_run_that_began_with_another_task_is_refused(run, tmp_path, capsys):
    """Its checkpoints would be asked questions of a form that they never saw."""
    run = shutil.copytree(run, tmp_path / "run")
    recipe = run / models.BASE_FOLDER / tiny.RECIPE_FILE
    said = json.loads(recipe.read_text())
    del said["task"]  # as the first runs left it
    recipe.write_text(json.dumps(said))
    told = "the tiny-lm here was taught sums of two digits; it is taught sums of four digits now"
    for options in ([], ["--base"], ["--checkpoint", "2"]):
        assert main(["evaluate", str(run), *options]) == 3
        assert told in capsys.readouterr().err
    with pytest.raises(VitalsError, match=told):
        trained(run, **{"training.max_steps": 6})
    shutil.rmtree(run / models.BASE_FOLDER)
    assert main(["evaluate", str(run)]) == 2
    assert "began with is gone" in capsys.readouterr().err
    assert not (run / models.BASE_FOLDER).exists()


def test_a_task_that_keeps_no_questions_back_is_said(run, tmp_path):
    config = json.loads((run / factory.LANGUAGE_CONFIG_FILE).read_text())
    config["data"]["held_out"] = 0
    (tmp_path / factory.LANGUAGE_CONFIG_FILE).write_text(json.dumps(config))
    (tmp_path / models.BASE_FOLDER).symlink_to(run / models.BASE_FOLDER)
    with pytest.raises(UsageError, match="no questions"):
        evaluate_model.load(tmp_path, step=0)


def test_an_answer_in_the_right_form_is_not_right_for_that():
    """The correctness of the training is a reward of the form: the answer is what is judged."""
    config = schema.load(
        Config, None, {"rewards.correctness": "format_reward", "signal.reward_threshold": 2.0}
    )
    thought = '<think>\n<type>bar</type>\n<table>{"rows":[["A",3]]}</table>\nx</think>\n'
    rows = [{"prompt": "?", "query": "What is the value of A?", "label": "3"}] * 3
    answers = Answers([f"{thought}<answer>{value}</answer>" for value in "39"] + ["3"], [[1]] * 3)
    assert evaluate_model.judge_name(config) == "accuracy_reward"
    assert evaluate_model.judge(config, ())(rows, answers) == [True, False, False]
    others = evaluate_model._other_rewards(config, ("accuracy_reward", "format_reward"))
    assert {name: paid(rows, answers) for name, paid in others.items()} == {
        "format_reward": [2.0, 2.0, 0.0]
    }


def test_a_persons_own_correctness_is_what_is_judged_by():
    said = {"rewards.functions": ("trained:alternating",), "rewards.correctness": "alternating"}
    config = schema.load(Config, None, said)
    rows = [{"prompt": "?", "answer": "3"}] * 2
    assert evaluate_model.judge_name(config) == "alternating"
    assert evaluate_model.judge(config, ())(rows, Answers(["3", "4"], [[1], [1]])) == [False, True]


def test_the_last_line_is_one_sentence_to_repeat(run, capsys):
    assert main(["evaluate", str(run), "--samples", "2", "--base"]) == 0
    sentence = capsys.readouterr().out.rstrip().rpartition("\n")[2]
    at = evaluate_model.evaluate(evaluate_model.load(run), samples=0).right / QUESTIONS
    base = evaluate_model.evaluate(evaluate_model.load(run, step=0), samples=0).right / QUESTIONS
    assert sentence.startswith(f"After 4 steps of psr, {at:.1%} of 50 held-out questions")
    assert sentence.endswith(f"before training {base:.1%}.")


def test_without_samples_the_likeliest_answers_are_all_that_is_told(run, capsys):
    assert main(["evaluate", str(run), "--samples", "0", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["policies"]
    assert (told["pass_at_k"], told["entropy"]) == ([], None)
    assert main(["evaluate", str(run), "--samples", "0"]) == 0
    shown = capsys.readouterr().out
    assert "pass@" not in shown
    assert f"{told['right']['value']:.1%}" in shown


def test_pass_at_k_counts_right_answers_whatever_the_training_called_correct(run, tmp_path):
    """The run's correctness is one of the form: its samples are judged by the answer."""
    other = shutil.copytree(run, tmp_path / "run")
    config = json.loads((other / factory.LANGUAGE_CONFIG_FILE).read_text())
    config["rewards"] |= {
        "functions": ["accuracy_reward", "num_token_reward"], "correctness": "num_token_reward",
    }  # fmt: skip
    (other / factory.LANGUAGE_CONFIG_FILE).write_text(json.dumps(config))
    made = evaluate_model.load(other)
    assert made.judge == "accuracy_reward"
    assert "num_token_reward" in made.other_rewards
    found = evaluate_model.evaluate(made, samples=SAMPLES)
    expected = evaluate_model.evaluate(evaluate_model.load(run), samples=SAMPLES)
    assert found.right_samples == expected.right_samples
    assert 0 < sum(found.right_samples) < QUESTIONS * SAMPLES


def test_a_run_that_learned_the_form_alone_is_told_so_first(tiny, tmp_path, capsys):
    run = tmp_path / "run"
    said = {
        "rewards__functions": ("accuracy_reward", "trained:format_bonus"),
        "rewards__correctness": "accuracy_reward", "training__max_steps": 12,
        "training__learning_rate": 0.0, "data__held_out": QUESTIONS,
    }  # fmt: skip
    assert small.train(run, "psr", base=tiny, **said)
    form = "The form of the answers improved (format bonus reward 0.167 -> 0.875); right answers"
    lines = [line.partition("rlvitals: ")[2] for line in (run / "logs" / "debug.log").open()]
    at = lines.index("TRAINING SUMMARY:\n")
    assert lines[at - 1].startswith(form)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--samples", "0"]) == 0
    assert capsys.readouterr().out.startswith(form)
    assert main(["evaluate", str(run), "--samples", "0", "--base"]) == 0
    # On the same questions before and after, this form is paid alike.
    assert capsys.readouterr().out.startswith("psr on sums")


def test_more_questions_than_there_are_is_all_of_them(run):
    assert (
        evaluate_model.evaluate(evaluate_model.load(run), questions=500, samples=0).questions == 50
    )
