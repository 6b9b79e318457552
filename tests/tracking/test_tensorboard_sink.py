"""Our event files: TensorBoard and torch's writer are the measure."""

import time

import numpy as np
import pytest
from openings import SETTINGS, TABLE, TEXT, histogram, opening, rows
from waiting import HANG_SECONDS

from rlvitals.readers import tensorboard as reader
from rlvitals.tracking.sinks import tensorboard
from rlvitals.tracking.sinks.event_files import scalars
from rlvitals.tracking.sinks.sink import Rows
from rlvitals.types import Table

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub import errors
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util.tensor_util import make_ndarray

UNBOUNDED = {"scalars": 0, "histograms": 0, "tensors": 0}


def peer(folder):
    return EventAccumulator(str(folder), size_guidance=UNBOUNDED).Reload()


def payloads(path):
    """The payloads as TensorBoard's own reader, which checks both checksums, finds them."""
    records, found = PyRecordReader_New(str(path)), []
    with pytest.raises(errors.OutOfRangeError):  # noqa: PT012 - the end of the file
        while True:
            records.GetNext()
            found.append(records.record())
    return found


def write(folder, *batches, **changed):
    writing = tensorboard.SINK.open(opening(folder, **changed))
    for batch in batches:
        writing.scalars(batch)
    writing.close("finished")
    return max((folder / "tensorboard").rglob("events*"))


def as_single(values):
    with np.errstate(over="ignore"):  # 1e308 is infinite, as torch's writer has it
        return values.astype(np.float32)


def assert_as_logged(folder, batch):
    found = peer(folder)
    for key, values in zip(batch.keys, batch.values.T, strict=True):
        events = found.Scalars(key)
        assert [event.step for event in events] == batch.steps.tolist()
        assert [event.wall_time for event in events] == batch.times.tolist()
        single = np.float32([event.value for event in events])
        np.testing.assert_array_equal(single, as_single(values))


ODD_STEPS = np.array([0, 1, 127, 128, 5, -3, 2**40, 2**62, 0, 16383, 16384, -(2**63), 2**63 - 1])


def test_every_byte_is_as_protobuf_writes_it(tmp_path):
    keys = ("a/loss", "b", "long/" + "x" * 300, "ünïcode %s")
    batch = rows(keys, len(ODD_STEPS))
    batch = Rows(keys, ODD_STEPS, batch.times, batch.values)
    path = write(tmp_path, batch)
    expected = [
        Event(
            wall_time=batch.times[row],
            step=int(batch.steps[row]),
            summary=Summary(
                value=[Summary.Value(tag=key, simple_value=float(batch.values[row, column]))]
            ),
        ).SerializeToString()
        for row in range(len(ODD_STEPS))
        for column, key in enumerate(keys)
    ]
    assert payloads(path)[2:-1] == expected  # after the head and the settings, before the end


def test_a_run_of_rows_loads_as_it_was_logged(tmp_path):
    batch = rows(count=20_000)
    path = write(tmp_path, batch)
    assert_as_logged(tmp_path / "tensorboard", batch)
    log, _ = reader.read(path, None)
    assert log.notes == ()
    for key, values in zip(batch.keys, batch.values.T, strict=True):
        np.testing.assert_array_equal(log.series[key].values, as_single(values))
        np.testing.assert_array_equal(log.series[key].times, batch.times)


def served(folder, run):
    """What tensorboard-data-server, which TensorBoard reads with where it is installed, finds."""
    ingester = pytest.importorskip("tensorboard.data.server_ingester")
    from tensorboard import context
    from tensorboard.data import provider
    from tensorboard.util.grpc_util import ChannelCredsType

    serving = ingester.SubprocessServerDataIngester(
        ingester.get_server_binary(),
        logdir=str(folder),
        reload_interval=0,  # once
        channel_creds_type=ChannelCredsType.LOCAL,
        samples_per_plugin={"scalars": 1000},
    )
    serving.start()
    until = time.monotonic() + HANG_SECONDS
    while time.monotonic() < until:
        found = serving.data_provider.read_scalars(
            context.RequestContext(),
            experiment_id="",
            plugin_name="scalars",
            downsample=1000,
            run_tag_filter=provider.RunTagFilter(runs=[run]),
        )
        if found:
            return found[run]
        time.sleep(0.02)
    pytest.fail("the server has loaded nothing")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # TensorBoard leaves its server to the exit
def test_the_data_server_loads_the_same(tmp_path):
    batch = rows(count=500)
    write(tmp_path, batch)
    found = served(tmp_path, "tensorboard")
    for key, values in zip(batch.keys, batch.values.T, strict=True):
        single = np.float32([one.value for one in found[key]])
        np.testing.assert_array_equal(single, as_single(values))
        assert [one.step for one in found[key]] == batch.steps.tolist()


def test_the_same_as_torch_s_writer(tmp_path):
    torch_tensorboard = pytest.importorskip("torch.utils.tensorboard")
    batch = rows(count=300)
    (tmp_path / "ours").mkdir()
    path = write(tmp_path / "ours", batch)
    with torch_tensorboard.SummaryWriter(str(tmp_path / "torch")) as writer:
        for step, time, row in zip(batch.steps, batch.times, batch.values, strict=True):
            for key, value in zip(batch.keys, row, strict=True):
                writer.add_scalar(key, value, int(step), walltime=time)
    (theirs,) = (tmp_path / "torch").iterdir()
    assert payloads(path)[2:-1] == payloads(theirs)[1:]


def test_histograms_texts_and_tables(tmp_path):
    writing = tensorboard.SINK.open(opening(tmp_path))
    writing.histogram("weights", histogram())
    writing.text("sample", TEXT)
    writing.table("completions", TABLE)
    writing.settings(7, {"learning_rate": 1e-5})
    writing.event("note", 3, {})
    writing.flush()
    found = peer(tmp_path / "tensorboard")
    (one,) = found.Histograms("weights")
    assert (one.step, one.wall_time) == (3, 1.7e9)
    shown = one.histogram_value
    assert (shown.min, shown.max, shown.num) == (-1, 2, 6)
    assert (shown.sum, shown.sum_squares) == (-0.5 + 5 * 1.25, 0.25 + 5 * 1.25**2)
    assert list(shown.bucket_limit) == [-1, 0, 0.5, 2]
    assert list(shown.bucket) == [0, 1, 0, 5]
    (text,) = found.Tensors("sample")
    assert make_ndarray(text.tensor_proto).tolist() == [TEXT.text.encode()]
    assert found.PluginTagToContent("text").keys() >= {"sample", "completions"}
    (table,) = found.Tensors("completions")
    (shown,) = make_ndarray(table.tensor_proto).tolist()
    assert shown.decode().splitlines() == [
        "| step | completion | reward | n |",
        "| --- | --- | --- | --- |",
        '| 5 | say, "hi" | 0.5 | 1 |',
        "| 5 | b |  | 2 |",
        "| 6 |  | 1.0 | 3 |",
    ]
    (path,) = (tmp_path / "tensorboard").iterdir()
    log, _ = reader.read(path, None)
    (ours,) = log.histograms["weights"]
    np.testing.assert_array_equal(ours.edges, histogram().edges)
    np.testing.assert_array_equal(ours.counts, histogram().counts)
    assert [found.text for found in log.texts["sample"]] == [TEXT.text]


def test_no_cell_ends_its_line_or_the_next_cell(tmp_path):
    cells = ["a|b", "two\nlines", " wide  gap ", "x" * 600, None, 1.5, "plain"]
    writing = tensorboard.SINK.open(opening(tmp_path))
    writing.table("odd", Table(np.zeros(len(cells), np.int64), {"text": cells}))
    writing.close("finished")
    (table,) = peer(tmp_path / "tensorboard").Tensors("odd")
    (shown,) = make_ndarray(table.tensor_proto).tolist()
    want = ["a&#124;b", "two lines", "wide gap", "x" * 500, "", "1.5", "plain"]
    assert shown.decode().splitlines()[2:] == [f"| 0 | {cell} |" for cell in want]


def test_a_histogram_without_outer_limits(tmp_path):
    writing = tensorboard.SINK.open(opening(tmp_path))
    open_ended = histogram()
    open_ended.edges[[0, -1]] = -np.inf, np.inf  # of -inf, 0, 0.5, inf
    writing.histogram("weights", open_ended)
    writing.close("finished")
    (path,) = (tmp_path / "tensorboard").iterdir()
    (ours,) = reader.read(path, None)[0].histograms["weights"]
    np.testing.assert_array_equal(ours.edges, [-0.5, 0, 0.5, 1])
    np.testing.assert_array_equal(ours.counts, open_ended.counts)
    (theirs,) = peer(tmp_path / "tensorboard").Histograms("weights")
    assert theirs.histogram_value.num == 6
    assert np.isfinite(theirs.histogram_value.sum)


def test_settings_are_hyperparameters(tmp_path):
    settings = SETTINGS | {"net": {"width": 64}, "layers": [1, 2], "none": None, "lim": np.inf}
    path = write(tmp_path, rows(), settings=settings)
    log, _ = reader.read(path, None)
    assert log.settings == SETTINGS | {
        "net/width": 64,
        "layers": "[1, 2]",
        "none": "",
        "lim": "inf",
    }
    content = peer(tmp_path / "tensorboard").PluginTagToContent("hparams")
    start = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/session_start_info"])
    assert start.session_start_info.hparams["learning_rate"].number_value == 3e-4
    assert start.session_start_info.hparams["cuda"].bool_value is True
    assert start.session_start_info.group_name == "first"
    ended = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/session_end_info"])
    assert ended.session_end_info.status == 1  # STATUS_SUCCESS


def test_a_resumed_run_goes_on_in_a_file_of_its_own(tmp_path):
    write(tmp_path, rows(count=100))
    again = rows(count=50, first=60, seed=1)
    path = write(tmp_path, again, attempt=2, resumed=True)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    found = peer(tmp_path / "tensorboard")
    assert [event.step for event in found.Scalars("train/loss")] == list(range(110))
    assert found.Scalars("train/return")[60].value == np.float32(again.values[0, 1])
    assert len(reader.read(path, None)[0].series["train/loss"]) == 50


def test_other_ranks_are_runs_of_their_own(tmp_path):
    write(tmp_path, rows())
    write(tmp_path, rows(seed=1), rank=3)
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(tmp_path / "tensorboard")).Reload()
    assert sorted(multiplexer.Runs()) == [".", "rank-3"]


def test_two_attempts_at_once_keep_their_files(tmp_path):
    first = tensorboard.SINK.open(opening(tmp_path))
    second = tensorboard.SINK.open(opening(tmp_path, attempt=2))
    for writing in (first, second):
        writing.scalars(rows(count=3))
        writing.close("finished")
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2


def test_the_command_is_said_where_the_port_is_set(tmp_path, capsys):
    write(tmp_path, rows(), options={"port": 6007})
    command = f"tensorboard --logdir {tmp_path / 'tensorboard'} --port 6007\n"
    assert capsys.readouterr() == ("", command)
    write(tmp_path, rows(), rank=1, options={"port": 6007})
    write(tmp_path, rows(), attempt=2)
    assert capsys.readouterr() == ("", "")


def test_rows_without_keys_and_no_rows():
    empty = rows((), 4)
    assert list(scalars.encode(empty.keys, empty.steps, empty.times, empty.values)) == []
    none = rows(count=0)
    assert b"".join(scalars.encode(none.keys, none.steps, none.times, none.values)) == b""


def test_keys_are_renamed_and_the_folder_too(tmp_path):
    options = {"folder": "logs", "prefix": "train/", "names": {"b": "psr/b"}, "tables": False}
    writing = tensorboard.SINK.open(opening(tmp_path, options=options))
    batch = Rows(("a", "b"), np.array([1]), np.array([5.0]), np.array([[2.0, 3.0]]))
    writing.scalars(batch)
    writing.histogram("a/b", histogram())
    writing.table("samples", TABLE)
    writing.close("finished")
    found = peer(tmp_path / "logs")
    assert not [tag for tag in found.Tags()["tensors"] if "samples" in tag]
    assert found.Tags()["scalars"] == ["train/a", "psr/b"]
    assert found.Tags()["histograms"] == ["train/a/b"]
