"""Lightning's metrics.csv, written by its Trainer and by Fabric's logger, with its rewrites."""

import csv
import os
import subprocess
import sys

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers import lightning
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.select import reader_of

READER = lightning.READER
# A process of its own: torch and Lightning take seconds to import, and warn of themselves.
PROGRAM = """
import math, pathlib, shutil, sys
import lightning, torch
from lightning.fabric.loggers import CSVLogger as FabricLogger
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

folder = pathlib.Path(sys.argv[1])

class Model(lightning.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, number):
        loss = self.layer(batch[0]).square().mean()
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        if self.global_step > 20:
            self.log("late", float(self.global_step))
        return loss

    def validation_step(self, batch, number):
        self.log("val_loss", self.layer(batch[0]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.hparams.lr)

data = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8)
trainer = lightning.Trainer(
    max_epochs=5, logger=CSVLogger(folder, flush_logs_every_n_steps=5), log_every_n_steps=2,
    enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(Model(), data, data)
logger = FabricLogger(folder / "fabric", flush_logs_every_n_steps=1)
values = (1.5, math.nan, math.inf, -math.inf)
for i in range(24):
    item = {"loss": values[i % 4]}
    for at, key in ((3, "zeta"), (5, "alpha"), (11, "middle"), (12, "other")):
        if i >= at:
            item[key] = i / 8
    logger.log_metrics(item, step=i * 10)
    shutil.copy(pathlib.Path(logger.log_dir, "metrics.csv"), folder / f"state_{i:02}.csv")
"""


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return the folder of a Trainer's run, of Fabric's, and of the states of Fabric's file."""
    folder = tmp_path_factory.mktemp("lightning")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, folder], env=env, capture_output=True, check=True
    )
    return folder


@pytest.fixture
def states(written):
    """The file's bytes after each call of `log_metrics`."""
    return [path.read_bytes() for path in sorted(written.glob("state_*.csv"))]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "version_0" / "metrics.csv"
    path.parent.mkdir()
    return path


@pytest.mark.parametrize("name", ["lightning_logs", "fabric/lightning_logs"])
def test_it_is_what_a_table_s_reader_finds(written, name):
    path = written / name / "version_0" / "metrics.csv"
    assert reader_of(path) is READER
    log, _ = READER.read(path, None)
    assert (log.source, log.step_unit, log.notes) == ("lightning", "updates", ())
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for key in rows[0].keys() - {"step"}:
        expected = [(int(row["step"]), float(row[key])) for row in rows if row[key]]
        assert log.series[key].steps.tolist() == [step for step, _ in expected]
        np.testing.assert_array_equal(log.series[key].values, [value for _, value in expected])
    assert log.series.keys() == rows[0].keys() - {"step"}


def test_a_trainer_s_run(written):
    path = written / "lightning_logs" / "version_0" / "metrics.csv"
    log, _ = READER.read(path, None)
    assert log.series["train_loss_step"].steps.tolist() == list(range(1, 40, 2))
    assert log.series["train_loss_epoch"].steps.tolist() == [7, 15, 23, 31, 39]
    assert log.series["late"].steps[0] == 21
    assert log.series["epoch"].values[-1] == 4
    (run,) = sources.find(written / "lightning_logs")
    assert run.name == "version_0"


def test_a_header_that_grows_is_read_on(path, states):
    assert len({state.partition(b"\n")[0] for state in states}) == 5
    path.write_bytes(states[-1])
    whole = log_checks.points(READER.read(path, None)[0])
    chance = log_checks.chance_of(2)
    for _ in range(60):
        chosen = sorted(chance.sample(range(len(states)), chance.randint(1, 9)))
        pieces, cursor = {}, None
        for state in [*(states[at] for at in chosen), states[-1]]:
            path.write_bytes(state[: len(state) - chance.choice((0, 0, 7)) * (state != states[-1])])
            log, cursor = READER.read(path, cursor)
            assert REPLACED_NOTE not in log.notes
            for key, columns in log_checks.points(log).items():
                pieces.setdefault(key, []).append(columns)
        found = {key: np.concatenate(columns, axis=1) for key, columns in pieces.items()}
        log_checks.assert_equal(found, whole)


def test_a_file_that_is_being_rewritten_waits(path, states):
    path.write_bytes(states[10])
    _, cursor = READER.read(path, None)
    for size in range(len(states[11])):
        path.write_bytes(states[11][:size])
        log, same = READER.read(path, cursor)
        assert len(log.series.get("loss", ())) == 0, size
        assert REPLACED_NOTE not in log.notes
        if size < states[11].rindex(b"\n", 0, -1):
            assert same == cursor
    path.write_bytes(states[12])
    log, _ = READER.read(path, cursor)
    assert log.series["loss"].steps.tolist() == [110, 120]


def test_another_run_in_its_place_is_read_from_its_start(path, states):
    path.write_bytes(states[10])
    _, cursor = READER.read(path, None)
    for header in (b"loss,step\n", b"alpha,loss,step,zeta\n", b"alpha,beta,loss,step,zeta\n"):
        cells = header.strip().split(b",")
        row = b",".join(b"7" if cell in {b"loss", b"step"} else b"" for cell in cells)
        path.write_bytes(header + (row + b"\n") * 2)
        log, _ = READER.read(path, cursor)
        assert log.notes == (REPLACED_NOTE,)
        assert log.series["loss"].values.tolist() == [7.0, 7.0]


def test_another_run_under_a_longer_header(path):
    path.write_text("loss,step\n1.5,1\n2.5,2\n")
    _, cursor = READER.read(path, None)
    path.write_text("beta,loss,step\n,1.5,1\n7,3.5,2\n")  # the first row is the same
    log, _ = READER.read(path, cursor)
    assert log.notes == (REPLACED_NOTE,)
    assert log.series["loss"].values.tolist() == [1.5, 3.5]
    path.write_text("beta,step\n")
    assert READER.read(path, cursor)[0].notes == (REPLACED_NOTE,)


def test_prefixes_growth_and_damage(path, states):
    log_checks.check_truncations(READER, path, states[-1])
    log_checks.check_cursor(READER, path, states[-1], rounds=20)
    log_checks.check_damage(READER, path, states[-1], rounds=300)


def test_rows_without_a_step_and_texts_are_refused(path):
    path.write_text("epoch,loss,step\n0,1.5,1\n0,2.5,\n0,bad,3\n0,1\n")
    log, _ = READER.read(path, None)
    assert log.series["loss"].steps.tolist() == [1]
    assert log.notes == (
        "2 rows refused: line 3 has no step",
        "1 cell refused: line 4 has 'bad' under loss",
    )
    path.write_text("epoch,loss\n")
    with pytest.raises(UnreadableLog, match="no column step"):
        READER.read(path, None)
    path.write_text("epoch,lo")
    assert READER.read(path, None)[0].notes == ("no complete row yet",)


@pytest.mark.parametrize(
    ("name", "head", "beside", "claimed"),
    [
        ("version_3/metrics.csv", b"loss,step\n", False, True),
        ("run/metrics.csv", b"epoch,loss,step\r\n", True, True),
        ("run/metrics.csv", b"epoch,loss,step\n", False, False),
        ("run/metrics.csv", b"loss,step\n", True, False),
        ("version_3/metrics.csv", b"epoch,loss\n", True, False),
        ("version_3/progress.csv", b"epoch,loss,step\n", True, False),
    ],
)
def test_what_is_lightning_s(tmp_path, name, head, beside, claimed):
    path = tmp_path / name
    path.parent.mkdir()
    if beside:
        (path.parent / "hparams.yaml").write_text("lr: 0.1\n")
    assert READER.claims(path, head) is claimed
