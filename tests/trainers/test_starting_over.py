"""No trainer starts at step 0 over sealed checkpoints, unless it is told to."""

from pathlib import Path

import pytest
from effort import sampled

pytest.importorskip("torch")

from rlvitals.cli import main
from rlvitals.trainers import schema

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")  # transformers' own
HERE = Path(__file__).parent


def ppo(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(HERE / "ppo"))
    import programs

    from rlvitals.trainers.ppo.config import Config

    said = programs.CARTPOLE | {"training.output_dir": str(folder)}
    return "ppo", schema.load(Config, None, said)


def rlhf(folder, monkeypatch):
    pytest.importorskip("trl")
    monkeypatch.syspath_prepend(str(HERE / "language"))
    import rlhf_programs

    from rlvitals.trainers.language.rlhf import command
    from rlvitals.trainers.language.rlhf.config import Config

    said = rlhf_programs.SMALL | {"rlhf.output_dir": str(folder)}
    return "rlhf", schema.load(Config, None, said, below=command.TINY_LM_PRESET)


def nsr(folder, monkeypatch):
    pytest.importorskip("trl")
    monkeypatch.syspath_prepend(str(HERE / "language"))
    import trained

    return "nsr", trained.config(folder, "nsr")


@pytest.mark.parametrize("trainer", sampled([nsr, ppo, rlhf], 3))
def test_a_start_at_step_0_is_refused_or_asked_for(tmp_path, monkeypatch, capfd, trainer):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("WANDB_MODE", "offline")
    folder, file = tmp_path / "run", tmp_path / "settings.json"
    name, config = trainer(folder, monkeypatch)
    file.write_text(schema.text(config), encoding="utf-8")
    command = ["train", name, "--config", str(file)]
    assert main([*command, "--require-resume"]) == 1
    assert "a resume is required" in capfd.readouterr().err
    assert main(command) == 0
    sealed = sorted(path.parent.name for path in folder.glob("checkpoint-*/manifest.json"))
    assert sealed
    for one in sealed:
        path = next(folder.joinpath(one).glob("*.safetensors"))
        path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):  # a job that is started again
        assert main(command) == 1
        assert "not started at step 0" in capfd.readouterr().err
    assert sorted(path.name for path in folder.glob("checkpoint-*")) == sealed
    assert main([*command, "--fresh"]) == 0
    aside = sorted(path.name for path in folder.glob("checkpoint-*.before-fresh"))
    assert aside == [f"{one}.before-fresh" for one in sealed]
    assert list(folder.glob("checkpoint-*/manifest.json"))
    assert main([*command, "--require-resume"]) == 0, "it was trained to its end"
