"""Lightning's own Trainer fits a line, and everything it logs is in the run folder."""

import lightning.pytorch as pl
import pytest
import torch
from recorded import Recorded

import rlvitals
from rlvitals.integrations.lightning import Logger

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")


class Line(pl.LightningModule):
    def __init__(self, rate=0.1, breaks_at=None):  # noqa: ARG002 - Lightning reads them
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)
        self.losses = []

    def training_step(self, batch):
        if self.global_step == self.hparams.breaks_at:
            raise ZeroDivisionError("the line broke")
        loss = torch.nn.functional.mse_loss(self.layer(batch), 2 * batch)
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch), 2 * batch))

    def test_step(self, batch):
        self.log("test_loss", torch.nn.functional.mse_loss(self.layer(batch), 2 * batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.rate)


@pytest.fixture
def fitted(tmp_path):
    def fit(**options):
        pl.seed_everything(0, verbose=False)
        data = torch.utils.data.DataLoader(torch.rand(32, 1), batch_size=8)
        logger = Logger(tmp_path, name="line")
        trainer = pl.Trainer(
            logger=logger, max_epochs=2, log_every_n_steps=1, accelerator="cpu",
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        model = Line(**options)
        trainer.fit(model, data, data)
        return trainer, model, data, logger

    return fit


def test_numbers_settings_and_checkpoints_are_recorded(fitted, tmp_path):
    trainer, model, data, logger = fitted(rate=0.05)
    found = trainer.test(model, data, verbose=False)
    logger.finish()
    run = Recorded.read(tmp_path)
    assert run.series("loss") == list(enumerate(model.losses))
    assert [step for step, _ in run.series("val_loss")] == [3, 7]
    assert run.series("test_loss") == [(8, found[0]["test_loss"])]
    assert run.of("settings")[0].facts["changed"]["rate"]["to"] == 0.05
    assert [event.facts["file"] for event in run.of("checkpoint")] == [
        "epoch=0-step=4.ckpt", "epoch=1-step=8.ckpt"
    ]  # fmt: skip
    assert (tmp_path / "checkpoints" / "epoch=1-step=8.ckpt").exists()
    assert len(run.about.attempts) == 1
    assert run.of("finish")[0].facts["status"] == "finished"


def test_an_exception_ends_the_run_with_its_traceback(fitted, tmp_path):
    with pytest.raises(ZeroDivisionError):
        fitted(breaks_at=5)
    run = Recorded.read(tmp_path)
    assert [step for step, _ in run.series("loss")] == [0, 1, 2, 3, 4]
    facts = run.of("finish")[0].facts
    assert facts["status"] == "failed"
    assert "the line broke" in facts["traceback"]


def test_the_run_itself_is_at_hand_for_what_lightning_has_no_name_for(tmp_path):
    logger = Logger(tmp_path)
    logger.experiment.log_text(1, "answer", "12")
    logger.finish()
    assert [text.text for text in Recorded.read(tmp_path).texts("answer")] == ["12"]


def test_the_run_says_whose_names_its_keys_are(fitted, tmp_path):
    *_, logger = fitted()
    logger.finish()
    assert Recorded.read(tmp_path).about.framework == "lightning"
    loss = rlvitals.trace(tmp_path).measured["optimiser/eval_loss"]
    assert (loss.framework, loss.key) == ("lightning", "val_loss")  # no mark of it was logged
