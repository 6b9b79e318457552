"""Checkpoints of Hugging Face's Trainer: sealed, kept, verified, and gone on from to the bit."""

import json
import os
import random
import shutil
import signal
from pathlib import Path

import forked
import hf_twins as twins
import pytest
import torch
import trl_twins
from effort import sampled
from peft import LoraConfig
from recorded import Recorded
from safetensors.torch import load_file, save

import rlvitals
from rlvitals.checkpoints import (
    disk,
    huggingface,
    huggingface_folder,
    inspect_run,
    manifest,
    progress,
)
from rlvitals.integrations import transformers as vitals

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A training of 24 steps that nobody interrupted."""
    out = tmp_path_factory.mktemp("straight") / "out"
    twins.plain(out).train()
    return out


@pytest.fixture
def run(straight, tmp_path):
    """A copy of it, at another place, that has lost its last checkpoint."""
    out = tmp_path / "out"
    shutil.copytree(straight, out)
    shutil.rmtree(out / "checkpoint-24")
    return out


def folders(out):
    return sorted(path.name for path in out.iterdir() if path.name.startswith("checkpoint-"))


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(data)


def test_each_checkpoint_is_sealed_and_the_root_has_the_newest_state(straight):
    for step in (4, 8, 12, 16, 20, 24):
        sealed = manifest.verify(straight / f"checkpoint-{step}")
        assert sealed.step == step
        assert set(forked.STATE) <= set(sealed.files)
        assert sealed.metrics["loss"] > 0
    assert (straight / "latest").read_text() == "checkpoint-24\n"
    told = progress.read(straight)
    assert (told.status, told.step, told.latest_checkpoint) == ("completed", 24, "checkpoint-24")
    root = json.loads((straight / "trainer_state.json").read_text())
    assert root["global_step"] == 24
    assert "train_runtime" in root["log_history"][-1]
    assert torch.load(straight / "training_args.bin", weights_only=False).max_steps == 24
    taken = inspect_run.inspect(straight).taken
    assert taken.step == 24
    assert inspect_run.differences(taken, Recorded.read(straight).about) == ()
    kinds = Recorded.read(straight).kinds()
    assert kinds.count("checkpoint") == 6


def test_killed_and_run_again_it_ends_to_the_bit_as_it_would_have(straight, tmp_path, capfd):
    out = tmp_path / "out"
    assert forked.apart(lambda: twins.go(twins.plain(out, twins.Dies(18)))) == -signal.SIGKILL
    assert "no checkpoint to resume from: this is a fresh start" in capfd.readouterr().err
    assert progress.read(out).latest_checkpoint == "checkpoint-16"
    assert forked.apart(lambda: twins.go(twins.plain(out))) == 0
    assert "resumed at step 16 from checkpoint-16: bit-exact" in capfd.readouterr().err
    for step in (20, 24):
        name = f"checkpoint-{step}"
        assert forked.state(out / name) == forked.state(straight / name)
    assert [a.number for a in Recorded.read(out).about.attempts] == [1, 2]
    assert manifest.read(out / "checkpoint-24").attempt == 2


@pytest.mark.parametrize("kills", [2, pytest.param(300, marks=pytest.mark.soak)])
def test_killed_at_any_moment_it_goes_on_from_a_whole_one(straight, tmp_path, kills):
    out, dice = tmp_path / "out", random.Random(kills)
    done = 0
    while done < kills:
        if progress.read(out) is not None and progress.read(out).status == "completed":
            shutil.rmtree(out)
        child = forked.FORK.Process(
            target=lambda: twins.go(twins.plain(out, save_steps=1, save_total_limit=2))
        )
        child.start()
        child.join(dice.uniform(0.05, 0.7))
        if child.exitcode is None:
            os.kill(child.pid, signal.SIGKILL)
            done += 1
        child.join()
    assert forked.apart(lambda: twins.go(twins.plain(out, save_steps=1, save_total_limit=2))) == 0
    assert forked.state(out / "checkpoint-24") == forked.state(straight / "checkpoint-24")
    assert len(folders(out)) <= 2 + sum("corrupt" in name for name in folders(out))
    assert not [name for name in folders(out) if "corrupt" in name]


def half_written(out, killed):
    """Train until a file of the checkpoint of step 8 is half written, and die there."""
    real = torch.save

    def save(told, file, *args, **options):
        real(told, file, *args, **options)
        if "checkpoint-8" in str(file) and str(file).endswith(killed):
            os.truncate(file, Path(file).stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    torch.save = save
    twins.go(twins.plain(out))


@pytest.mark.parametrize("killed", ["training_args.bin", "optimizer.pt", "rng_state.pth"])
def test_one_cut_while_it_was_written_is_not_used(tmp_path, killed, capfd):
    out = tmp_path / "out"
    assert forked.apart(half_written, out, killed) == -signal.SIGKILL
    assert (out / "checkpoint-8").is_dir()
    assert rlvitals.resume_from(out) == str(out / "checkpoint-4")
    assert "checkpoint-8 is not used: it was never finished: it holds no trainer_state.json" in (
        capfd.readouterr().err
    )


class Unsealed(twins.TrainerCallback):
    """The process is killed once all is written, and before it is sealed."""

    def on_save(self, _, told, *__, **___):
        if told.global_step == 8:
            os.kill(os.getpid(), signal.SIGKILL)


def test_one_that_was_not_sealed_in_time_is_written_anew(straight, tmp_path, capfd):
    out = tmp_path / "out"

    def die():
        trainer = twins.plain(out)
        trainer.callback_handler.callbacks.insert(0, Unsealed())
        twins.go(trainer)

    assert forked.apart(die) == -signal.SIGKILL
    left = out / "checkpoint-8" / "left.txt"
    left.write_text("of the one that was killed")
    assert forked.apart(lambda: twins.go(twins.plain(out))) == 0
    assert "checkpoint-8 is not used: it looks whole, but its process ended" in (
        capfd.readouterr().err
    )
    assert not left.exists()  # two saves are never mixed in one folder
    assert forked.state(out / "checkpoint-24") == forked.state(straight / "checkpoint-24")


def test_a_sealed_one_outlives_a_save_that_was_to_replace_it_and_was_cut(tmp_path):
    out = tmp_path / "out"
    twins.plain(out, max_steps=8).train()
    first = forked.state(out / "checkpoint-8")
    shutil.rmtree(out / "checkpoint-4")

    def over():
        real = torch.save

        def save(told, file, *args, **options):
            if "checkpoint-8" in str(file) and str(file).endswith("optimizer.pt"):
                os.kill(os.getpid(), signal.SIGKILL)
            real(told, file, *args, **options)

        torch.save = save
        twins.plain(out, save_steps=8).train()

    assert forked.apart(over) == -signal.SIGKILL
    assert not (out / "checkpoint-8" / "manifest.json").exists()
    assert rlvitals.resume_from(out) == str(out / "checkpoint-8")
    assert forked.state(out / "checkpoint-8") == first
    assert "checkpoint-8.corrupt" in folders(out)  # the one that was cut


DAMAGES = {
    "flipped": flip,
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 1),
    "missing": lambda path: path.unlink(),
    "of another step": lambda path: shutil.copy(
        path.parent.parent / "checkpoint-4" / path.name, path
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*forked.STATE, "trainer_state.json"])
def test_every_file_that_is_not_as_it_was_sealed_is_refused(run, name, damage, capsys):
    DAMAGES[damage](run / "checkpoint-20" / name)
    path = rlvitals.resume_from(run)
    assert path == str(run / "checkpoint-16")
    said = capsys.readouterr().err
    assert f"checkpoint-20 is not used: {name}" in said
    assert "it lies in checkpoint-20.corrupt" in said
    assert (run / "checkpoint-20.corrupt" / "why.txt").exists()
    assert "checkpoint-16" in folders(run)


def test_what_hugging_face_loads_in_silence_is_refused(run):
    """Why all this: the Trainer itself begins a new optimizer, and loads a flipped bit."""
    (run / "checkpoint-20" / "optimizer.pt").unlink()
    (run / "checkpoint-20" / "rng_state.pth").unlink()
    flip(run / "checkpoint-20" / "model.safetensors", -1)
    trainer = twins.plain(run, report_to="none")
    trainer.train(resume_from_checkpoint=True)  # not a word
    assert trainer.state.global_step == 24
    assert rlvitals.resume_from(run) == str(run / "checkpoint-16")


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, count):
        self.rows = list(twins.rows(count))

    def __iter__(self):
        return iter(self.rows)


class ByHalves(torch.utils.data.Sampler):
    """A sampler of somebody's own, whose generator begins anew in each process."""

    def __init__(self, _):
        self.dice = torch.Generator().manual_seed(1)

    def __len__(self):
        return 40

    def __iter__(self):
        return iter(torch.randperm(40, generator=self.dice).tolist())


ORDERS = {
    "accelerate's": ({}, None, [16, 20]),
    "in order": ({"train_sampling_strategy": "sequential"}, None, [16]),
    "torch's": ({"accelerator_config": {"use_seedable_sampler": False}}, None, [8, 16, 20]),
    "one's own": ({"own": ByHalves}, None, [8, 12, 16]),
    "a stream": ({}, 200, [16]),
    "a stream twice": ({}, 40, [8, 16]),
    "persistent workers": (
        {"dataloader_persistent_workers": True, "dataloader_num_workers": 1},
        None,
        [8],
    ),
    "no skipping": ({"ignore_data_skip": True}, None, [8]),
    "an epoch with a rest": (
        {"gradient_accumulation_steps": 4, "max_steps": 8, "save_steps": 1},
        None,
        [4, 7],
    ),
}


@pytest.mark.parametrize("order", sampled(ORDERS, 10))
def test_bit_exact_is_promised_where_it_is_true(tmp_path, order, capsys):
    given, stream, steps = ORDERS[order]
    options = dict(given)
    own = options.pop("own", None)

    def make(out):
        trainer = twins.plain(out, **options)
        if stream:
            trainer.train_dataset = Stream(stream)
        if own:
            trainer._get_train_sampler = own
        return trainer

    straight = tmp_path / "straight"
    last = make(straight)
    last.train()
    end = f"checkpoint-{last.state.global_step}"
    for step in steps:
        out = tmp_path / str(step)
        shutil.copytree(straight / f"checkpoint-{step}", out / f"checkpoint-{step}")
        capsys.readouterr()
        twins.go(make(out))
        promised = "bit-exact on this machine" in capsys.readouterr().err
        assert promised == (forked.state(out / end) == forked.state(straight / end)), step


def test_a_moved_run_goes_on(straight, run):
    path = rlvitals.resume_from(twins.plain(run))
    assert path == str(run / "checkpoint-20")
    assert forked.apart(lambda: twins.go(twins.plain(run))) == 0
    assert forked.state(run / "checkpoint-24") == forked.state(straight / "checkpoint-24")


def test_a_first_start_is_said_aloud(tmp_path):
    said = []
    assert rlvitals.resume_from(tmp_path / "new", tell=said.append) is None
    assert said == ["no checkpoint to resume from: this is a fresh start"]


def test_kept_are_as_many_as_the_trainer_is_told_and_the_best(tmp_path):
    args = {
        "save_total_limit": 2, "eval_strategy": "steps", "eval_steps": 4,
        "load_best_model_at_end": True, "greater_is_better": True,  # the worst is the first
    }  # fmt: skip
    trainer = twins.plain(tmp_path, **args)
    trainer.train()
    assert trainer.state.best_global_step == 4
    assert folders(tmp_path) == ["checkpoint-20", "checkpoint-24", "checkpoint-4"]
    assert trainer.args.save_total_limit == 2  # as it was
    assert Recorded.read(tmp_path).about.settings["save_total_limit"] == 2


def test_a_stale_later_checkpoint_takes_no_place_and_is_left_alone(run, capsys):
    shutil.rmtree(run / "checkpoint-16")
    trainer = twins.plain(run, save_total_limit=1, max_steps=14, save_steps=2)
    trainer.train(resume_from_checkpoint=str(run / "checkpoint-12"))
    assert folders(run) == ["checkpoint-14", "checkpoint-20"]
    assert "checkpoint-20 is of a later step: it is left as it is" in capsys.readouterr().err
    assert rlvitals.resume_from(run) == str(run / "checkpoint-14")


def test_a_stale_one_is_replaced_whole_by_the_save_of_its_step(run):
    left = run / "checkpoint-20" / "left.txt"
    left.write_text("of another attempt")
    twins.plain(run, max_steps=20).train(resume_from_checkpoint=str(run / "checkpoint-16"))
    assert not left.exists()
    assert manifest.verify(run / "checkpoint-20").attempt == 2
    assert not [path for path in run.iterdir() if path.name.startswith(".checkpoint-")]


def test_a_healthy_one_is_kept(tmp_path):
    health = {4: "healthy", 8: "kl-spike", 12: "collapsed"}
    seal = vitals.Seal(keep=1, health=lambda step: health[step])
    trainer = twins.plain(tmp_path, vitals.Record(seal=seal), report_to="none", max_steps=12)
    trainer.train()
    assert folders(tmp_path) == ["checkpoint-12", "checkpoint-4"]
    assert manifest.read(tmp_path / "checkpoint-12").health == "collapsed"


def test_a_health_that_fails_and_a_disk_without_room_end_no_training(tmp_path, capsys, monkeypatch):
    def broken(step):
        if step == 8:
            monkeypatch.setattr(disk, "count_free_bytes", lambda _: 10_000)
        raise ZeroDivisionError("no rows yet")

    seal = vitals.Seal(health=broken)
    trainer = twins.plain(tmp_path, vitals.Record(seal=seal), report_to="none")
    trainer.train()
    assert trainer.state.global_step == 24
    assert folders(tmp_path) == ["checkpoint-4", "checkpoint-8"]
    said = capsys.readouterr().err
    assert "the health of step 4 is not known: ZeroDivisionError('no rows yet')" in said
    assert "no checkpoint at step 12: 0 MB are needed" in said
    assert "training goes on" in said


def test_a_seal_alone_records_nothing(tmp_path):
    twins.plain(tmp_path, vitals.Seal(keep=2), report_to="none").train()
    assert folders(tmp_path) == ["checkpoint-20", "checkpoint-24"]
    assert not (tmp_path / "run.json").exists()
    assert rlvitals.resume_from(tmp_path) == str(tmp_path / "checkpoint-24")


def test_the_best_checkpoint_of_a_moved_run_is_found_again(tmp_path, capsys):
    args = {
        "eval_strategy": "steps", "eval_steps": 4, "load_best_model_at_end": True,
        "greater_is_better": True, "save_total_limit": 1,
    }  # fmt: skip
    here, there = tmp_path / "here", tmp_path / "there"
    twins.plain(here, **args, max_steps=20).train()
    best = here / "checkpoint-4" / "model.safetensors"
    weights = best.read_bytes()
    here.rename(there)
    again = twins.plain(there, **args)
    twins.go(again)
    assert again.state.best_model_checkpoint == str(there / "checkpoint-4")
    assert save(dict(again.model.state_dict()), {"format": "pt"}) == weights
    shutil.rmtree(there / "checkpoint-4")
    capsys.readouterr()
    twins.go(twins.plain(there, **args))
    said = capsys.readouterr().err
    assert "the best checkpoint so far, checkpoint-4, cannot be used (it is not there)" in said


def test_weights_alone_are_said_to_be_no_checkpoint(tmp_path, capsys):
    twins.plain(tmp_path, save_only_model=True).train()
    assert "save_only_model: the checkpoints hold weights alone" in capsys.readouterr().err
    assert manifest.verify(tmp_path / "checkpoint-24").facts["weights_only"]
    with pytest.raises(rlvitals.CannotResume, match="checkpoint-24: it holds weights alone"):
        rlvitals.resume_from(tmp_path)
    assert "checkpoint-24" in folders(tmp_path)
    assert rlvitals.resume_from(tmp_path, fresh=True) is None
    assert "checkpoint-24.before-fresh" in folders(tmp_path)


def test_a_run_without_a_seal_is_not_begun_over(straight, tmp_path, capsys):
    out = tmp_path / "out"
    twins.plain(out, report_to="none").train()
    with pytest.raises(rlvitals.UsageError, match="checkpoint-24 looks whole") as raised:
        rlvitals.resume_from(out)
    assert "checkpoints" in raised.value.hint
    flip(out / "checkpoint-24" / "optimizer.pt")
    adopted = huggingface_folder.adopt(out)
    assert [one.step for one in adopted] == [4, 8, 12, 16, 20]
    assert "checkpoint-24 is not sealed: optimizer.pt is damaged" in capsys.readouterr().err
    assert rlvitals.resume_from(out) == str(out / "checkpoint-20")
    assert forked.apart(lambda: twins.go(twins.plain(out))) == 0
    assert forked.state(out / "checkpoint-24") == forked.state(straight / "checkpoint-24")


def test_what_the_trainer_does_not_write_is_not_sealed(tmp_path, capsys):
    trainer = twins.plain(tmp_path, max_steps=4)
    trainer._save_rng_state = lambda _: None
    trainer.train()
    said = "checkpoint-4 is not sealed: it holds no rng_state.pth"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "checkpoint-4" / "manifest.json").exists()
    assert rlvitals.resume_from(tmp_path) is None


def test_a_save_on_sigterm_is_sealed_too(tmp_path):
    class Asks(twins.TrainerCallback):
        def on_step_end(self, _, told, *__, **___):
            if told.global_step == 6:
                trainer.jit.jit_manager.is_checkpoint_requested = True

    trainer = twins.plain(tmp_path, Asks(), enable_jit_checkpoint=True)
    (trainer.jit,) = (
        one for one in trainer.callback_handler.callbacks if hasattr(one, "jit_manager")
    )
    trainer.train()
    assert trainer.state.global_step == 7  # it ends the step that it has begun
    sealed = manifest.verify(tmp_path / "checkpoint-6")
    assert "SIGTERM" in sealed.facts["not_saved"][0]
    assert rlvitals.resume_from(tmp_path) == str(tmp_path / "checkpoint-6")
    assert progress.read(tmp_path).status == "stopped"


class Breaks(twins.TrainerCallback):
    def on_step_end(self, _, told, *__, **___):
        if told.global_step == 6:
            raise ZeroDivisionError("the judge is down")


def test_progress_says_that_a_training_broke_off_and_that_it_went_on(tmp_path):
    with rlvitals.start(tmp_path) as run:
        trainer = twins.plain(tmp_path, vitals.Record(run=run), Breaks(), report_to="none")
        with pytest.raises(ZeroDivisionError):
            trainer.train()
        run.finish("failed")
    told = progress.read(tmp_path)
    assert (told.status, told.step, told.latest_checkpoint) == ("failed", 6, "checkpoint-4")
    twins.go(twins.plain(tmp_path, vitals.Seal(), report_to="none"))
    told = progress.read(tmp_path)
    assert (told.status, told.step, told.attempts) == ("completed", 24, 2)


def test_an_adapter_lies_in_the_root_from_the_first_save_on(base, tmp_path):
    class Looks(twins.TrainerCallback):
        def on_step_begin(self, _, told, *__, **___):
            seen[told.global_step] = (tmp_path / "adapter_model.safetensors").exists()

    seen = {}
    trainer = trl_twins.trainer(
        base, tmp_path, max_steps=4, save_strategy="steps", save_steps=2, report_to="rlvitals",
        peft_config=LoraConfig(r=4, target_modules="all-linear"),
    )  # fmt: skip
    trainer.add_callback(Looks())
    trainer.train()
    assert seen == {0: False, 1: False, 2: True, 3: True}
    for name in huggingface.ADAPTER_FILES:
        here, last = tmp_path / name, tmp_path / "checkpoint-4" / name
        assert here.exists() == last.exists()
        assert not here.exists() or here.read_bytes() == last.read_bytes()
    assert (tmp_path / "adapter_config.json").exists()
    assert torch.load(tmp_path / "training_args.bin", weights_only=False).max_steps == 4
    last = tmp_path / "checkpoint-4"
    assert load_file(last / "adapter_model.safetensors")
    assert json.loads((last / "adapter_config.json").read_text())["r"] == 4
    assert json.loads((last / "trainer_state.json").read_text())["global_step"] == 4
    for name in ("optimizer.pt", "scheduler.pt"):
        assert torch.load(last / name, weights_only=True)
    assert torch.load(last / "rng_state.pth", weights_only=False)["python"]
    assert rlvitals.resume_from(trainer) == str(tmp_path / "checkpoint-4")
