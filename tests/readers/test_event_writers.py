"""Event files as the real libraries write them, beside TensorBoard's own reader."""

import math

import numpy as np
import pytest

from rlvitals.readers import tensorboard

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.hparams import summary_v2 as hparams_summary
from tensorboard.plugins.scalar import summary_v2 as scalar_summary
from tensorboard.plugins.text import summary_v2 as text_summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_ndarray

HYPERPARAMETERS = {"learning_rate": 3e-4, "num_envs": 8, "cuda": True, "env_id": "CartPole-v1"}
CLEANRL = "|param|value|\n|-|-|\n" + "\n".join(f"|{k}|{v}|" for k, v in HYPERPARAMETERS.items())
STEPS = 300  # with rounds enough for the fast path


def torch_writer(folder):
    torch_tensorboard = pytest.importorskip("torch.utils.tensorboard")
    return torch_tensorboard.SummaryWriter(str(folder))


def tensorboardx_writer(folder):
    return pytest.importorskip("tensorboardX").SummaryWriter(str(folder))


WRITERS = {"torch": torch_writer, "tensorboardX": tensorboardx_writer}
every_writer = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)


def read(folder):
    (path,) = folder.glob("events.out.tfevents.*")
    return tensorboard.read(path, None)[0]


def peer(folder):
    unbounded = {"scalars": 0, "histograms": 0, "tensors": 0}
    return EventAccumulator(str(folder), size_guidance=unbounded).Reload()


def assert_as_the_peer(log, folder):
    """Every scalar is the accumulator's, whichever way it was written."""
    found = peer(folder)
    expected = {tag: found.Scalars(tag) for tag in found.Tags()["scalars"]}
    tensors = {tag: found.Tensors(tag) for tag in log.series if tag not in expected}
    assert sorted(log.series) == sorted([*expected, *tensors])
    for tag, events in {**expected, **tensors}.items():
        series = log.series[tag]
        values = [
            event.value if tag in expected else make_ndarray(event.tensor_proto).item()
            for event in events
        ]
        np.testing.assert_array_equal(series.values, values, err_msg=tag)
        np.testing.assert_array_equal(series.steps, [event.step for event in events])
        np.testing.assert_array_equal(series.times, [event.wall_time for event in events])


def log_numbers(writer, **options):
    generator = np.random.default_rng(0)
    for step in range(STEPS):
        writer.add_scalar("charts/episodic_return", generator.normal(), step * 128, **options)
        writer.add_scalar("losses/value_loss", [math.nan, math.inf, 0.0, 1e-30][step % 4], step)
        if step % 7 == 0:
            writer.add_scalar("eval/return", -step, step, **options)


@every_writer
def test_scalars(tmp_path, writer):
    with writer(tmp_path) as open_writer:
        log_numbers(open_writer)
    log = read(tmp_path)
    assert {tag: len(series) for tag, series in log.series.items()} == {
        "charts/episodic_return": STEPS,
        "losses/value_loss": STEPS,
        "eval/return": 43,
    }
    assert log.notes == ()
    assert_as_the_peer(log, tmp_path)


@pytest.mark.parametrize("options", [{}, {"double_precision": True}])
def test_torch_s_new_style(tmp_path, options):
    with torch_writer(tmp_path) as writer:
        log_numbers(writer, new_style=True, **options)
    log = read(tmp_path)
    assert len(log.series["charts/episodic_return"]) == STEPS
    assert log.notes == ()
    assert_as_the_peer(log, tmp_path)


@every_writer
def test_histograms(tmp_path, writer):
    values = np.random.default_rng(0).normal(size=1000)
    with writer(tmp_path) as open_writer:
        for step in range(3):
            open_writer.add_scalar("loss", step, step)
            open_writer.add_histogram("weights", values + step, step, bins="tensorflow")
            open_writer.add_histogram("ten", values, step, bins=10)
    log = read(tmp_path)
    assert_as_the_peer(log, tmp_path)
    assert [one.step for one in log.histograms["weights"]] == [0, 1, 2]
    for tag, kept in log.histograms.items():
        for ours, theirs in zip(kept, peer(tmp_path).Histograms(tag), strict=True):
            value = theirs.histogram_value
            assert (ours.step, ours.time) == (theirs.step, theirs.wall_time)
            assert ours.counts.sum() == value.num == 1000
            assert len(ours.edges) == len(ours.counts) + 1
            assert (np.diff(ours.edges) > 0).all()
            assert ours.edges[0] <= value.min <= value.max <= ours.edges[-1]
            np.testing.assert_array_equal(ours.edges[1:], value.bucket_limit[-len(ours.counts) :])
    (counts, _), tens = np.histogram(values, 10), log.histograms["ten"]
    np.testing.assert_array_equal(tens[0].counts[-10:], counts)


@every_writer
def test_texts_and_cleanrl_s_settings(tmp_path, writer):
    with writer(tmp_path) as open_writer:
        open_writer.add_text("hyperparameters", CLEANRL)
        open_writer.add_text("sample", "first", 1)
        open_writer.add_text("sample", "second", 2)
    log = read(tmp_path)
    assert log.settings == HYPERPARAMETERS
    (tag,) = {tag for tag in log.texts if tag.startswith("sample")}
    assert [(text.step, text.text) for text in log.texts[tag]] == [(1, "first"), (2, "second")]
    assert log.series == {}


@every_writer
def test_settings_of_add_hparams(tmp_path, writer):
    with writer(tmp_path) as open_writer:
        open_writer.add_hparams({"lr": 0.1, "name": "x"}, {"hparam/accuracy": 0.5})
    (path,) = (p for p in tmp_path.rglob("events*") if b"_hparams_" in p.read_bytes())
    log = tensorboard.read(path, None)[0]
    assert log.settings == {"lr": 0.1, "name": "x"}
    assert log.series["hparam/accuracy"].values.tolist() == [0.5]


def write_as_tensorflow(folder, bare):
    """Write what `tf.summary` writes; `bare`: only a tag's first event says what it is."""
    writer, described = EventFileWriter(str(folder)), set()
    generator = np.random.default_rng(0)
    for step in range(120):
        summaries = [scalar_summary.scalar_pb("loss", generator.normal())]
        summaries.append(scalar_summary.scalar_pb("lr", 1e-3))
        if step % 50 == 0:
            summaries.append(histogram_summary.histogram_pb("w", generator.normal(size=50)))
            summaries.append(text_summary.text_pb("sample", f"text {step}"))
        for summary in summaries:
            (value,) = summary.value
            if bare and value.tag in described:
                value.ClearField("metadata")
            described.add(value.tag)
            writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=summary))
    for summary in hparams_summary.hparams_pb({"units": 16, "bias": True}, trial_id="a").value:
        writer.add_event(Event(wall_time=1.7e9, summary={"value": [summary]}))
    writer.close()


@pytest.mark.parametrize("bare", [False, True])
def test_tensorflow_s_summaries(tmp_path, bare):
    write_as_tensorflow(tmp_path, bare)
    log = read(tmp_path)
    assert sorted(log.series) == ["loss", "lr"]
    assert log.notes == ()
    assert_as_the_peer(log, tmp_path)
    assert [text.text for text in log.texts["sample"]] == ["text 0", "text 50", "text 100"]
    assert log.settings == {"units": 16, "bias": True}
    kept = log.histograms["w"]
    assert [one.step for one in kept] == [0, 50, 100]
    for ours, theirs in zip(kept, peer(tmp_path).Tensors("w"), strict=True):
        table = make_ndarray(theirs.tensor_proto)
        np.testing.assert_array_equal(ours.edges, [*table[:, 0], table[-1, 1]])
        np.testing.assert_array_equal(ours.counts, table[:, 2])
