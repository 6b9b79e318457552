"""Settings that train nothing, folders that cannot be, consoles that go: each is said in time."""

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import datasets
import forked
import numpy as np
import pytest
import trained

import rlvitals
from rlvitals.cli import main
from rlvitals.trainers import lock, schema
from rlvitals.trainers.language import console, factory
from rlvitals.trainers.language.data import template
from rlvitals.trainers.language.program import Training
from rlvitals.trainers.language.rlhf import prompts

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
FEW = {"training__max_steps": 2, "checkpointing__save_steps": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training__batch_size", 0), ("training__gradient_accumulation_steps", 0),
        ("training__num_iterations", 0), ("training__max_completion_length", 0),
        ("training__temperature", 0.0), ("model__lora_r", 0), ("signal__num_generations", 1),
        ("monitoring__logging_steps", 0),
    ],
)  # fmt: skip
def test_a_number_that_trains_nothing_is_named(tmp_path, name, value):
    with pytest.raises(rlvitals.UsageError) as caught:
        Training(trained.config(tmp_path / "run", **{name: value}))
    assert caught.value.where == name.replace("__", ".")
    assert not (tmp_path / "run").exists()


def test_no_steps_and_no_epochs_are_a_mistake(tmp_path):
    with pytest.raises(rlvitals.UsageError, match="train nothing"):
        Training(trained.config(tmp_path, training__max_steps=0, training__num_epochs=0.0))


def test_too_few_samples_for_a_generation_are_a_mistake(tmp_path, tiny):
    """Two questions are asked at a time: with one there is no batch, and nothing was trained."""
    with pytest.raises(
        rlvitals.UsageError, match="1 samples do not make a generation, which asks 2 questions"
    ):
        trained.train(tmp_path, base=tiny, data__subset_size=1, **FEW)
    trained.train(tmp_path, base=tiny, data__subset_size=2, **FEW)
    assert (tmp_path / "checkpoint-2").is_dir()


def test_what_does_not_divide_is_told_in_numbers(tmp_path):
    with pytest.raises(rlvitals.UsageError) as caught:
        Training(trained.config(tmp_path, signal__num_generations=3))
    assert "--batch-size 8 times 1 forward passes" in caught.value.hint


@pytest.mark.parametrize(
    "said", [{"rewards__functions": ("nope",)}, {"monitoring__report_to": ("nowhere",)}]
)
def test_names_are_checked_before_a_model_is_made(tmp_path, said):
    with pytest.raises(rlvitals.UsageError):
        Training(trained.config(tmp_path / "run", **said))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_is_said_in_a_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    flags = ["--vlm-name", "tiny-lm", "--output-dir", str(tmp_path / "file" / "run")]
    assert main(["train", "nsr", *flags]) == 2
    assert capsys.readouterr().err.startswith("error: it cannot be written: Not a directory")


def test_a_mistake_is_said_once(tmp_path, capsys):
    flags = ["--vlm-name", "tiny-lm", "--warm-start-steps", "0", "--output-dir", str(tmp_path)]
    assert main(["train", "nsr", *flags, "--dataset-name", "charts"]) == 2
    told = capsys.readouterr()
    assert (told.out + told.err).count("the model sees none") == 1
    assert "✗ Training failed" in (tmp_path / "logs" / "debug.log").read_text()


@pytest.mark.parametrize("held", [{"training": 3}, {"training": [1]}, {"model": "tiny-lm"}])
def test_a_section_that_is_no_table_is_said_so(tmp_path, capsys, held):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(held))
    assert main(["train", "nsr", "--config", str(file)]) == 2
    assert f"{next(iter(held))} is no table" in capsys.readouterr().err


def test_a_template_without_a_place_for_the_question_is_a_mistake():
    with pytest.raises(rlvitals.UsageError, match="all prompts would be one"):
        template.fill_template("1+1=", "Answer in one word.")


def test_a_resume_says_which_settings_changed(tmp_path, tiny):
    trained.train(tmp_path, base=tiny, **FEW)
    more = {**FEW, "training__max_steps": 4, "signal__reward_threshold": 0.25}
    trained.train(tmp_path, "psr", **more)
    told = (tmp_path / "logs" / "debug.log").read_text()
    assert "settings changed: training.mode nsr -> psr; training.max_steps 2 -> 4" in told
    assert "signal.reward_threshold 0.5 -> 0.25" in told
    trained.train(tmp_path, "psr", **more)
    again = (tmp_path / "logs" / "debug.log").read_text().removeprefix(told)
    assert "settings changed" not in again
    assert "it was trained to its end" in again


def test_what_changed_is_told_of_a_file_alone_that_holds_settings(tmp_path):
    file, now = tmp_path / "settings.json", trained.config(tmp_path)
    assert schema.list_changes(file, now) == []
    file.write_text('{"training": 3, "model": {"lora_r": 2}}')
    assert schema.list_changes(file, now) == ["model.lora_r 2 -> 8"]


def test_a_summary_that_cannot_be_made_spoils_no_training(tmp_path, tiny):
    for name in ("one", "two"):
        rlvitals.start(tmp_path / name).finish()
    trained.train(tmp_path, base=tiny, **FEW)
    assert "no summary" in (tmp_path / "logs" / "debug.log").read_text()


def test_a_folder_holds_one_training_at_a_time(tmp_path):
    run = rlvitals.start(tmp_path)
    run.log(1, {"loss": 1.0})
    run.flush()
    try:
        with pytest.raises(rlvitals.UsageError, match="another training goes on here"):
            Training(trained.config(tmp_path))
        assert not (tmp_path / "logs").exists()
    finally:
        run.finish()
    lock.check(tmp_path)
    (tmp_path / "run.json").write_text("{")
    lock.check(tmp_path)


def test_what_the_recorder_has_to_tell_is_on_the_console_and_in_the_file(tmp_path, capsys):
    file, recorder = tmp_path / "debug.log", logging.getLogger("rlvitals.tracking.sink_worker")
    before = logging.getLogger("rlvitals").handlers[:]
    with console.LogFiles(file, console.Progress(wanted=True)):
        recorder.warning("sink %s: no route", "wandb")
    assert capsys.readouterr().out == "sink wandb: no route\n"
    assert "WARNING rlvitals.tracking.sink_worker: sink wandb: no route\n" in file.read_text()
    assert logging.getLogger("rlvitals").handlers == before


def _enter(folder, outside, barrier):
    """Enter a folder, and stay alive until the other has been inside too or was refused."""
    barrier.wait()
    with suppress(rlvitals.UsageError), lock.acquire(folder):
        run = rlvitals.start(folder)
        run.log(1, {"loss": 1.0})
        run.flush()
        (folder / f"in-{os.getpid()}").touch()
    (outside / f"{os.getpid()}").touch()
    while len(list(outside.iterdir())) < 2:
        time.sleep(0.01)


def test_of_two_that_start_at_once_one_gets_the_folder(tmp_path):
    """Both would find it empty: each would write over the other's checkpoints."""
    run, outside = tmp_path / "run", tmp_path / "outside"
    outside.mkdir()
    barrier = forked.FORK.Barrier(2)
    both = [forked.FORK.Process(target=_enter, args=(run, outside, barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert len(list(run.glob("in-*"))) == 1


def test_other_weights_than_the_checkpoint_s_are_refused(tmp_path, tiny):
    trained.train(tmp_path, base=tiny, **FEW)
    with pytest.raises(rlvitals.UsageError, match=r"other weights: model\.lora False"):
        trained.train(tmp_path, **{**FEW, "training__max_steps": 4}, model__lora=True)


@pytest.mark.parametrize("mode", ["nsr", "rlhf"])
def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(tmp_path, capsys, mode):
    (tmp_path / "file").write_text("")
    flags = ["--vlm-name", "tiny-lm", "--warm-start-steps", "0"]
    code = main(["train", mode, *flags, "--output-dir", str(tmp_path / "file" / "run")])
    assert code in {1, 2}
    assert capsys.readouterr().err.startswith("error: it cannot be written: Not a directory")


def test_questions_that_are_no_more_are_not_asked():
    order = prompts.Order(4, np.random.default_rng(0), np.array([1994, 2, 50]))
    assert order.take(1) == [2]
    assert sorted(order.take(4)) == [0, 1, 2, 3]


@pytest.mark.soak
def test_a_console_that_goes_ends_no_training():
    """As `rlvitals train nsr | head -1` does."""
    source = str(Path(rlvitals.__file__).parents[1])
    program = (
        "import sys, time\n"
        "from rlvitals.trainers.language.console import Progress\n"
        "told = Progress(wanted=True)\n"
        "told.print('first')\n"
        "sys.stdin.read()\n"
        "[told.print('more') for _ in range(9)]\n"
        "sys.stderr.write('trained')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": source}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert "first\n" in iter(process.stdout.readline, "")  # a library may speak before it
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == "trained"
    assert process.returncode == 0


def test_a_seed_that_numpy_does_not_take_is_said_so(tmp_path, capsys):
    for mode in ("grpo", "rlhf"):
        flags = ["--seed", str(2**32), "--output-dir", str(tmp_path / "run")]
        assert main(["train", mode, *flags]) == 2
        assert "between 0 and 4294967295" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_weights_that_grew_without_end_are_said_in_a_sentence(tmp_path, capsys):
    flags = ["--learning-rate", "1e30", "--vlm-name", "tiny-lm", "--warm-start-steps", "0"]
    flags += ["--batch-size", "8", "--report-to", "none", "--output-dir", str(tmp_path)]
    assert main(["train", "w-reinforce", *flags]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: the model's outputs are no numbers any more")
    assert "try: a lower learning rate" in said


def test_an_error_that_holds_a_model_s_words_does_not_steer_the_terminal(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "def mine(completions, **_):\n    raise ValueError('\\x1b[2Jgone')\n"
    )
    flags = ["--vlm-name", "tiny-lm", "--warm-start-steps", "0", "--report-to", "none"]
    flags += ["--functions", f"{tmp_path / 'mine.py'}:mine", "--on-error", "stop"]
    assert main(["train", "grpo", *flags, "--output-dir", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "mine failed on sample 0" in said
    assert "\x1b" not in said


def test_there_are_no_other_names_than_those_of_settings():
    known = {key.name for key in schema.keys(trained.Config)}
    assert factory.MIN_VALUES.keys() <= known
    assert console.DEBUG_LOG == "debug.log"


@pytest.mark.parametrize("algorithm", ["nsr", "rlhf"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sum", "nothing here is called sum|did you mean sums? One of Hugging Face is OWNER/NAME"),
        ("no/such", "no/such is neither here nor to be had from Hugging Face"),
        ("rows.jsonl", "there is no such file or folder"),
    ],
)
def test_data_that_is_not_there_is_told_before_a_model_is_made(name, said, algorithm, away, capfd):
    out = ("--output-dir", "run", "--progress-bar", "false")
    assert main(["train", algorithm, "--vlm-name", "tiny-lm", "--dataset-name", name, *out]) == 2
    told = capfd.readouterr()
    for one in said.split("|"):
        assert one in told.err
    assert not list(away.rglob("*.safetensors"))
    assert "/" in name or not list(away.iterdir())


@pytest.fixture
def away(tmp_path, monkeypatch):
    """An empty folder to work in, without a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    return tmp_path


def test_a_try_of_the_hub_is_one_line(tmp_path, monkeypatch, capfd):
    """Its library tells of each of its tries, for half a minute."""
    hub, heard = logging.getLogger("huggingface_hub"), []
    handler = logging.Handler()
    handler.emit = heard.append

    def fails(*_, **__):
        logging.getLogger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", fails)
    monkeypatch.setattr(hub, "handlers", [handler])
    with pytest.raises(rlvitals.UsageError, match="no network"):
        trained.train(tmp_path, data__dataset_name="no/such")
    assert heard == []
    assert capfd.readouterr().out.count("no/such is looked for at Hugging Face ...") == 1
