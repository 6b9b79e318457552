"""The writer of safetensors files: read back by the library that the format comes from."""

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.torch import save_file

from rlvitals.checkpoints import manifest
from rlvitals.checkpoints.state import hash_writer
from rlvitals.checkpoints.state.hash_writer import SAFETENSORS_TYPES, RawArray
from rlvitals.checkpoints.state.serialize import Unsaveable
from rlvitals.checkpoints.state.training_state import State


def parts(tensors):
    return {
        name: RawArray(str(one.dtype).removeprefix("torch."), tuple(one.shape),
                   one.contiguous().reshape(-1).view(torch.uint8).numpy())
        for name, one in tensors.items()
    }  # fmt: skip


@pytest.mark.parametrize("kind", SAFETENSORS_TYPES)
def test_every_kind_of_number_is_what_the_library_writes(tmp_path, kind):
    tensors = {"a": torch.arange(6).reshape(2, 3).to(getattr(torch, kind)),
               "none": torch.empty(0, 3).to(getattr(torch, kind)),
               "one": torch.tensor(1).to(getattr(torch, kind))}  # fmt: skip
    written = hash_writer.write_arrays(tmp_path / "ours", parts(tensors))
    assert written == manifest.describe_file(tmp_path, "ours")
    save_file(tensors, tmp_path / "theirs")
    with safe_open(tmp_path / "ours", "pt") as ours, safe_open(tmp_path / "theirs", "pt") as theirs:
        assert set(ours.keys()) == set(theirs.keys()) == set(tensors)
        for name in tensors:
            there = theirs.get_tensor(name)
            here = ours.get_tensor(name)
            assert here.dtype == there.dtype
            assert here.shape == there.shape
            assert parts({"x": here})["x"].data.tolist() == parts({"x": there})["x"].data.tolist()


def test_wide_numbers_come_first_so_that_all_are_aligned(tmp_path):
    mixed = {"a": torch.ones(3, dtype=torch.bool), "b": torch.ones(5, dtype=torch.float64),
             "c": torch.ones(7, dtype=torch.bfloat16), "d": torch.ones(3)}  # fmt: skip
    hash_writer.write_arrays(tmp_path / "x", parts(mixed))
    data = (tmp_path / "x").read_bytes()
    assert int.from_bytes(data[:8], "little") % 8 == 0
    with safe_open(tmp_path / "x", "pt") as file:
        assert list(file.offset_keys()) == ["b", "d", "c", "a"]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_the_parts_that_are_written_at_once_do_not_matter(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(hash_writer, "WRITE_CHUNK_BYTES", chunk)
    written = hash_writer.write_arrays(tmp_path / "x", parts({"a": torch.arange(100.0)}))
    assert written == manifest.describe_file(tmp_path, "x")
    assert load_file(tmp_path / "x")["a"].tolist() == list(range(100))


def back(folder, value):
    State(it=value).save(folder)
    state = State(it=None)
    state.load(folder)
    return state["it"]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_tensors(tmp_path, dtype):
    value = torch.complex(torch.randn(3, 4).double(), torch.randn(3, 4).double()).to(dtype).T
    for one in (value, value.conj(), value.reshape(-1)[0]):
        found = back(tmp_path, one)
        assert found.dtype == dtype
        assert torch.equal(found, one.resolve_conj())


def test_big_endian_and_strided_arrays(tmp_path):
    value = np.arange(24, dtype=">f4").reshape(4, 6)[::2, ::-3]
    assert back(tmp_path, value).tolist() == value.tolist()


def test_tensors_that_share_their_memory(tmp_path):
    base = torch.arange(10.0)
    found = back(tmp_path, [base[:5], base[3:], base])
    assert [one.tolist() for one in found] == [list(range(5)), list(range(3, 10)), list(range(10))]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (torch.eye(3).to_sparse(), "sparse"),
        (torch.empty(3, device="meta"), "meta"),
        (np.zeros(3, np.longdouble), "numpy's longdouble|numpy's float128"),
    ],
)
def test_what_the_files_cannot_hold_is_refused_by_name(tmp_path, value, why):
    with pytest.raises(Unsaveable, match=why):
        State(it=value).save(tmp_path)
