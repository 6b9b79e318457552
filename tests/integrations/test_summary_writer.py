"""The look-alike of torch's SummaryWriter, beside torch's own."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from held import events, log, notes, rows, settings
from torch.utils.tensorboard import SummaryWriter as Torch

import rlvitals
from rlvitals.integrations.torch_tensorboard import SummaryWriter

SCRIPT = Path(__file__).parent / "cleanrl_style.py"
THEIRS = "from torch.utils.tensorboard import SummaryWriter"
OURS = "from rlvitals.integrations.torch_tensorboard import SummaryWriter"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same script, as it is and with one changed import."""
    folder = tmp_path_factory.mktemp("cleanrl")
    text = SCRIPT.read_text()
    assert text.count(THEIRS) == 1
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        for name, code in (("theirs", text), ("ours", text.replace(THEIRS, OURS))):
            Path(f"{name}.py").write_text(code)
            patch.setattr("sys.argv", [f"{name}.py", name])
            runpy.run_path(f"{name}.py", run_name="__main__")
    return folder / "runs"


def test_a_cleanrl_script_records_with_one_changed_import(both):
    found = rlvitals.trace(both / "ours")
    frameworks = {m.framework for m in found.measured.values() if "machine/" not in m.key}
    assert frameworks == {"cleanrl"}
    assert found.profile == "control-ppo"
    assert found.budget.steps == 1024
    expected = {"env_id": "CartPole-v1", "clip_range": 0.2, "n_envs": 4, "gamma": 0.99}
    assert expected.items() <= found.settings.items()
    assert rlvitals.diagnose(both / "ours").verdict.word is not None


def test_it_holds_the_numbers_that_torch_s_writer_wrote(both):
    theirs, ours = rlvitals.trace(both / "theirs"), rlvitals.trace(both / "ours")
    added = {name for name, m in ours.measured.items() if "machine/" in m.key}
    assert set(theirs.series) == set(ours.series) - added
    for name, series in theirs.series.items():
        np.testing.assert_array_equal(series.steps, ours[name].steps, err_msg=name)
        if not name.startswith("throughput/"):  # a clock is not the same twice
            np.testing.assert_allclose(series.values, ours[name].values, rtol=1e-6, err_msg=name)
    assert theirs.settings == {k: v for k, v in ours.settings.items() if k in theirs.settings}


def test_every_method_of_torch_s_writer_is_taken(tmp_path):
    writer = SummaryWriter(tmp_path / "run", purge_step=3, flush_secs=1, colour="red")
    for name in (one for one in dir(Torch) if not one.startswith("_") and one != "close"):
        assert callable(getattr(writer, name)), name
    with pytest.raises(AttributeError, match="no 'paint'"):
        writer.paint()
    writer.close()
    assert any("argument colour" in one for one in notes(tmp_path / "run"))


def test_what_is_logged_is_there(tmp_path):
    with SummaryWriter(str(tmp_path / "run"), comment="of ours") as writer:
        writer.add_scalar("a", torch.tensor(1.5), 3)
        writer.add_scalar("a", np.float32(2.5), global_step=4, walltime=1e9)
        writer.add_scalar("free", 1)
        writer.add_scalar("free", 2)
        writer.add_scalars("pair", {"x": 1, "y": 2}, 5)
        writer.add_histogram("h", torch.arange(100.0), 6)
        writer.add_histogram_raw("raw", 0, 3, 3, 4, 6, [1.0, 2.0, 3.0], [1, 1, 1], 7)
        writer.add_text("note", "hello", 8)
        writer.add_hparams({"lr": 0.1, "layers": 2}, {"best": 9.0})
        for _ in range(2):
            writer.add_figure("f", None, 1)
            writer.add_image("i", np.zeros((3, 2, 2)), 1)
        writer.flush()
        assert writer.log_dir == writer.get_logdir() == str(tmp_path / "run")
    read = log(tmp_path / "run")
    assert list(read.series["a"].values) == [1.5, 2.5]
    assert list(read.series["a"].steps) == [3, 4]
    assert read.series["a"].times[1] == 1e9
    assert list(read.series["free"].steps) == [0, 1]
    assert (5, {"pair/x": 1.0, "pair/y": 2.0}) in rows(tmp_path / "run")
    assert read.histograms["h"][0].counts.sum() == 100
    assert list(read.histograms["raw"][0].edges[1:]) == [1.0, 2.0, 3.0]
    assert read.texts["note"][0].text == "hello"
    assert {"lr": 0.1, "layers": 2}.items() <= settings(tmp_path / "run").items()
    said = notes(tmp_path / "run")
    assert len([one for one in said if "add_figure is not recorded" in one]) == 1
    assert len([one for one in said if "add_image is not recorded" in one]) == 1


def test_a_script_that_fails_in_the_block_is_a_failed_run(tmp_path):
    with pytest.raises(ZeroDivisionError), SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("a", 1 / 0, 1)
    (end,) = events(tmp_path / "run", "finish")
    assert end["status"] == "failed"
    assert "ZeroDivisionError" in end["traceback"]


def test_without_a_folder_one_is_made_as_torch_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine")
    writer.close()
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("_mine")


def write_all(writer):
    for step in range(5):
        writer.add_scalar("a", torch.tensor(step / 3), step)
        writer.add_scalars("pair", {"x": step, "y": 2 * step}, step)
        writer.add_histogram("h", torch.arange(100.0) + step, step)
        writer.add_text("note", f"hello {step}", step)
    writer.add_hparams({"lr": 0.1, "layers": 2, "name": "x"}, {"best": 9.0})
    writer.close()
    writer.close()


def torch_series(folder):
    """Return all series below a folder; torch writes a folder for each curve of add_scalars."""
    found = {}
    for file in folder.rglob("events.out.tfevents.*"):
        (read,) = rlvitals.read(file)
        curve = file.parent.name.partition("pair_")[2]
        found |= {f"{key}/{curve}" if curve else key: read.series[key] for key in read.series}
    return found


def test_the_public_writer_records_what_torch_s_does(tmp_path):
    write_all(rlvitals.SummaryWriter(tmp_path / "ours"))
    write_all(Torch(tmp_path / "theirs"))
    (log_read,) = rlvitals.read(tmp_path / "ours")
    ours, theirs = log_read.series, torch_series(tmp_path / "theirs")
    assert theirs.keys() == {"a", "pair/x", "pair/y", "best"}
    for key, series in theirs.items():
        assert list(ours[key].values) == pytest.approx(list(series.values), rel=1e-6)
        assert len(series) == 1 or list(ours[key].steps) == list(series.steps)
    (torch_read,) = rlvitals.read(
        next(path for path in (tmp_path / "theirs").iterdir() if path.is_file())
    )
    texts = [text.text for text in log_read.texts["note"]]
    assert texts == [text.text for text in torch_read.texts["note/text_summary"]]
    for one, other in zip(log_read.histograms["h"], torch_read.histograms["h"], strict=True):
        assert (one.step, one.counts.sum()) == (other.step, other.counts.sum())
    assert {"lr": 0.1, "layers": 2, "name": "x"}.items() <= log_read.settings.items()
