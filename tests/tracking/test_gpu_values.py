"""What `run.log` takes from a GPU: it does not wait for it, and disturbs nothing there."""

import pytest
import torch
from recording_checks import notes, points

import rlvitals
from rlvitals.tracking import tensors

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
CYCLES = 400_000_000  # of the GPU's clock: about 0.2 s


@pytest.fixture
def run(tmp_path):
    with rlvitals.start(tmp_path / "run", strict=False) as run:
        yield run


def column(run, name):
    run.finish()
    return points(run.folder)[name]


def test_log_does_not_wait_for_the_kernels_before_it(run):
    loss = torch.zeros((), device="cuda")
    run.log(0, {"loss": loss})  # loads the kernels
    run.flush()
    done = torch.cuda.Event()
    torch.cuda._sleep(5 * CYCLES)
    loss += 3
    done.record()
    run.log(1, {"loss": loss})
    assert not done.query()
    loss += 5  # what was logged is what it was
    assert column(run, "loss") == [(0, 0.0), (1, 3.0)]


def test_a_stream_of_its_own_has_finished_before_its_number_is_read(run):
    stream = torch.cuda.Stream()
    for step in range(20):
        with torch.cuda.stream(stream):
            loss = torch.zeros((), device="cuda")
            torch.cuda._sleep(CYCLES // 4)
            loss += step + 1
            run.log(step, {"loss": loss})
        assert run.flush()
    assert column(run, "loss") == [(step, step + 1.0) for step in range(20)]


def test_many_rows_leave_nothing_on_the_card(run):
    loss = torch.ones((), device="cuda", requires_grad=True) * 2
    run.log(0, {"loss": loss})
    run.flush()
    before = torch.cuda.memory_allocated()
    for step in range(1, 10_001):
        run.log(step, {"loss": loss, "kl": loss.detach()})
    run.flush()
    assert torch.cuda.memory_allocated() == before
    assert len(column(run, "kl")) == 10_000


def test_a_graph_is_captured_while_rows_are_written(run):
    weights = torch.ones(64, 64, device="cuda")
    (weights @ weights).sum()  # cuBLAS makes its workspace
    torch.cuda.synchronize()
    for step in range(30):
        run.log(step, {"loss": weights.sum() + step})
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run.flush()  # what the writer does at any moment
            total = (weights @ weights).sum()
        graph.replay()
        assert float(total) == 64.0**3
    assert column(run, "loss") == [(step, 64.0 * 64 + step) for step in range(30)]


def test_what_is_logged_inside_a_capture_is_left_out_and_said(run):
    value = torch.ones((), device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inner = value * 3
        run.log(1, {"inner": inner, "step_size": 0.5})
    graph.replay()
    assert float(inner) == 3.0
    run.finish()
    assert points(run.folder) == {"step_size": [(1, 0.5)]}
    assert any("inner" in text and "graph" in text for text in notes(run.folder))


def test_a_complex_tensor_is_no_number_at_once_either():
    row = {"x": torch.ones((), device="cuda"), "z": torch.ones((), device="cuda") * 1j}
    flat = tensors.flatten_metrics(row, at_once=True)
    assert flat.values == {"x": 1.0}
    assert flat.wrong == ["z: a torch.Tensor is no number"]
