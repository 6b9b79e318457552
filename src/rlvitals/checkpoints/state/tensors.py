"""Write and read the arrays and tensors of a state as safetensors files."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays

from rlvitals.checkpoints.manifest import BadCheckpoint, File
from rlvitals.checkpoints.state import hash_writer
from rlvitals.checkpoints.state.hash_writer import SAFETENSORS_TYPES, RawArray

# The format has no complex numbers: their two halves are a last axis.
REAL_TYPES = {"complex64": "float32", "complex128": "float64"}
ARRAYS_FILE, TENSORS_FILE = "arrays.safetensors", "tensors.safetensors"
Bytes = NDArray[np.uint8]


class Unsupported(Exception):  # noqa: N818 - the name says what went wrong
    """An array or tensor that the format cannot represent; the message states why."""


class BufferPool:
    """Memory for copies, reused by later ones: new memory is slow to touch."""

    def __init__(self) -> None:
        """Begin empty."""
        self._memories: list[Bytes] = []
        self._next = 0

    def reset(self) -> None:
        """Start over: earlier buffers may be overwritten."""
        self._memories = self._memories[: self._next]
        self._next = 0

    def take(self, size: int, *, pinned: bool = False) -> Bytes:
        """Return a buffer of `size` bytes; `pinned`: a GPU can write to it directly."""
        index, self._next = self._next, self._next + 1
        if index == len(self._memories):
            self._memories.append(_allocate(size, pinned=pinned))
        elif self._memories[index].size != size:
            self._memories[index] = _allocate(size, pinned=pinned)
        return self._memories[index]


class TensorWriter:
    """Collector of arrays and tensors, each under the number it is written with."""

    def __init__(self, buffers: BufferPool | None = None) -> None:
        """Begin empty. Copy into `buffers`; without them, call `write` before anything changes."""
        self.arrays: dict[str, RawArray] = {}
        self.tensors: dict[str, RawArray] = {}
        self._buffers = buffers
        self._devices: set[Any] = set()  # of torch

    def array(self, array: NDArray[Any]) -> dict[str, object]:
        """Add an array of numbers; return its node in the tree. Raises Unsupported."""
        number = str(len(self.arrays))
        name = array.dtype.name
        half = REAL_TYPES.get(name, name)
        if half not in SAFETENSORS_TYPES:
            raise Unsupported(f"numpy's {name}")
        little = array.dtype.newbyteorder("<")
        flat = np.ascontiguousarray(array, dtype=little).reshape(-1).view(np.uint8)
        if self._buffers is not None:
            copy = self._buffers.take(flat.size)
            np.copyto(copy, flat)
            flat = copy
        width = np.dtype(half).itemsize
        self.arrays[number] = RawArray(half, (flat.size // width,), flat)
        return {"array": number, "shape": list(array.shape), "dtype": name}

    def tensor(self, tensor: Any) -> dict[str, object]:  # noqa: ANN401 - torch is optional
        """Add a tensor; return its node in the tree. Raises Unsupported."""
        import torch  # noqa: PLC0415 - it is loaded: there is a tensor

        number = str(len(self.tensors))
        if hasattr(tensor, "to_local"):
            raise Unsupported(
                "sharded: save it by torch.distributed.checkpoint within `with save()`"
            )
        tensor = tensor.detach()
        node: dict[str, object] = {"tensor": number}
        if tensor.is_complex():
            tensor, node = torch.view_as_real(tensor.resolve_conj()), {**node, "complex": True}
        name = str(tensor.dtype).removeprefix("torch.")
        if (
            name not in SAFETENSORS_TYPES
            or tensor.layout != torch.strided
            or tensor.device.type == "meta"
        ):
            raise Unsupported(f"{name}, {tensor.layout}, on {tensor.device}")
        cuda = tensor.device.type == "cuda"
        if self._buffers is None:
            contiguous = tensor.cpu().contiguous()
        else:
            size = tensor.numel() * tensor.element_size()
            memory = torch.from_numpy(self._buffers.take(size, pinned=cuda))
            contiguous = memory.view(tensor.dtype).reshape(tensor.shape)
            contiguous.copy_(tensor, non_blocking=cuda)
            if cuda:
                self._devices.add(tensor.device)
        flat: Bytes = contiguous.reshape(-1).view(torch.uint8).numpy()
        self.tensors[number] = RawArray(name, tuple(tensor.shape), flat)
        return node

    def settle(self) -> None:
        """Wait until each GPU has finished its copies."""
        if self._devices:
            import torch  # noqa: PLC0415 - the same

            for device in self._devices:
                torch.cuda.synchronize(device)

    def write(self, folder: Path) -> dict[str, File]:
        """Write the files; return their sizes and hashes. Raises OSError."""
        files: Mapping[str, dict[str, RawArray]] = {
            ARRAYS_FILE: self.arrays,
            TENSORS_FILE: self.tensors,
        }
        return {
            name: hash_writer.write_arrays(folder / name, arrays)
            for name, arrays in files.items()
            if arrays
        }


class TensorReader:
    """The arrays and tensors of a saved tree."""

    def __init__(self, folder: Path) -> None:
        """Read the existing files. Raises BadCheckpoint for an invalid one."""
        try:
            arrays, tensors = folder / ARRAYS_FILE, folder / TENSORS_FILE
            self.arrays = load_arrays(arrays) if arrays.exists() else {}
            self.tensors: dict[str, Any] = {}
            if tensors.exists():
                from safetensors.torch import load_file as load_tensors  # noqa: PLC0415 - torch

                self.tensors = load_tensors(tensors)
        except (OSError, SafetensorError) as error:
            raise BadCheckpoint(f"its arrays cannot be read: {error}", where=str(folder)) from None

    def array(self, node: dict[str, Any]) -> NDArray[Any]:
        """Return the array of a node."""
        flat = self.arrays[node["array"]]
        if node["dtype"] in REAL_TYPES:
            flat = flat.view(node["dtype"])
        return flat.reshape(node["shape"])

    def tensor(self, node: dict[str, Any]) -> Any:  # noqa: ANN401 - torch is optional
        """Return the tensor of a node, on the CPU."""
        stored_tensor = self.tensors[node["tensor"]]
        if node.get("complex"):
            import torch  # noqa: PLC0415 - it is loaded: there is a tensor

            return torch.view_as_complex(stored_tensor)
        return stored_tensor


def is_tensor(value: object) -> bool:
    """Return whether a value is a torch tensor, without loading torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _allocate(size: int, *, pinned: bool) -> Bytes:
    if not pinned:
        return np.empty(size, np.uint8)
    import torch  # noqa: PLC0415 - there is a tensor on a graphics card

    memory: Bytes = torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()
    return memory
