"""The code of the how-to pages runs as it stands, in the order in which it stands."""

import re
import shutil
from pathlib import Path

import pytest
from recorded import Recorded

from rlvitals.checkpoints import manifest
from rlvitals.integrations.transformers import Record

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def blocks(page, *headings):
    """Return the Python of the parts of a page under the headings."""
    text = (PAGES / page).read_text()
    parts = [text.split(f"\n## {heading}\n")[1].split("\n## ")[0] for heading in headings]
    return "\n".join(re.findall(r"```python\n(.*?)```", "\n".join(parts), re.DOTALL))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def names(base):
    """What the pages on language models take as given."""
    import trl
    import trl_twins as twins

    small = {"per_device_train_batch_size": 8, "max_completion_length": 6}
    here = {"use_cpu": True, "bf16": False, "disable_tqdm": True}

    folder, _ = base
    return {
        "GRPOConfig": lambda **said: trl.GRPOConfig(**small, **here, **said),
        "GRPOTrainer": trl.GRPOTrainer,
        "model": str(folder),
        "right": twins.correct,
        "dataset": twins.Dataset.from_list(twins.problems(16, 7)),
    }


def test_trl(names):
    code = blocks("record-trl.md", "Record", "Record completions", "Check the first updates")
    exec(code, names)  # noqa: S102 - our own page
    assert [step for step, _ in Recorded.read("runs/sums").series("reward")] == [1, 2, 3]
    kinds = [type(one).__name__ for one in names["trainer"].callback_handler.callbacks]
    assert kinds[-2:] == ["Record", "Preflight"]


def test_resuming(names, capsys):
    page = "record-trl.md"
    first = blocks(page, "Resume")
    exec(first, names)  # noqa: S102 - our own page
    assert "this is a fresh start" in capsys.readouterr().err
    shutil.rmtree("runs/sums/checkpoint-6")
    exec(first, names)  # noqa: S102 - our own page
    assert "resumed at step 4 from checkpoint-4: bit-exact" in capsys.readouterr().err
    trainer = names["trainer"]
    trainer.remove_callback(Record)
    exec(blocks(page, "Choose which checkpoints are kept"), names)  # noqa: S102 - our own page
    trainer.args.max_steps = 10
    trainer.train()
    sealed = manifest.read(Path("runs/sums/checkpoint-10"))
    assert sealed.health
    assert "the health of step" not in capsys.readouterr().err


def test_the_table_of_checks_is_what_the_preflight_makes():
    from rlvitals.integrations.trl_checks import run_checks
    from rlvitals.integrations.trl_hooks import Tap
    from rlvitals.sanity_checks.language import check_weight_changes

    made = {
        check.name for check in run_checks(Tap(object()), 0, check_weight_changes((), 0.0), None)
    }
    said = re.findall(r"^\| `([\w-]+)` \|", (PAGES / "record-trl.md").read_text(), re.MULTILINE)
    assert made == set(said)
    assert len(said) == len(made)


def test_lightning():
    import lightning.pytorch as pl
    import torch

    class Line(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch):
            loss = self.layer(batch).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    names = {
        "Trainer": pl.Trainer,
        "module": Line(),
        "batches": torch.utils.data.DataLoader(torch.rand(8, 1), batch_size=4),
    }
    exec(blocks("record-a-training.md", "Lightning"), names)  # noqa: S102 - our own page
    names["trainer"].logger.finish()
    assert len(Recorded.read("runs/line").series("loss")) == 4


def test_accelerate():
    from accelerate import Accelerator

    page = blocks("record-a-training.md", "accelerate")
    exec(page, {"Accelerator": lambda **said: Accelerator(**said, cpu=True)})  # noqa: S102 - ours
    run = Recorded.read("runs/loop")
    assert run.series("loss") == [(1, 0.5)]
    assert run.about.project == "sums"


def test_rllib():
    pytest.importorskip("ray.rllib", reason="needs RLlib: pip install 'ray[rllib]'")
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.tune import RunConfig, Tuner

    names = {"PPO": PPO, "PPOConfig": PPOConfig, "RunConfig": RunConfig, "Tuner": Tuner}
    exec(blocks("record-a-training.md", "RLlib and Ray Tune"), names)  # noqa: S102 - ours
    assert names["config"].callbacks_class.folder == "runs/cartpole"
