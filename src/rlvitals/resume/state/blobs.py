"""Arrays and tensors beside a JSON tree, in one safetensors file."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays

from rlvitals.resume.manifest import BadCheckpoint

# safetensors has no complex numbers: their two halves are a last axis.
HALVES = {"complex64": np.float32, "complex128": np.float64}
ARRAYS, TENSORS = "arrays.safetensors", "tensors.safetensors"


class Blobs:
    """Collects arrays and tensors, each under the number it is written with."""

    def __init__(self) -> None:
        """Begin with none."""
        self.arrays: dict[str, NDArray[Any]] = {}
        self.tensors: dict[str, Any] = {}

    def array(self, array: NDArray[Any]) -> dict[str, object]:
        """Keep an array of numbers; returns what stands for it in the tree."""
        number = str(len(self.arrays))
        whole = np.array(array, order="C", copy=True)  # as it is now: training goes on
        half = HALVES.get(whole.dtype.name)
        shape = list(whole.shape)
        flat = whole.reshape(-1)
        self.arrays[number] = flat if half is None else flat.view(half)
        return {"array": number, "shape": shape, "dtype": whole.dtype.name}

    def tensor(self, tensor: Any) -> dict[str, object]:  # noqa: ANN401 - torch is optional
        """Keep a tensor's numbers, on the processor; returns what stands for it in the tree."""
        number = str(len(self.tensors))
        self.tensors[number] = tensor.detach().cpu().clone().contiguous()
        return {"tensor": number}

    def write(self, folder: Path) -> None:
        """Write the files. OSError, SafetensorError."""
        if self.arrays:
            save_arrays(self.arrays, folder / ARRAYS)
        if self.tensors:
            from safetensors.torch import save_file as save_tensors  # noqa: PLC0415 - needs torch

            save_tensors(self.tensors, folder / TENSORS)


class Stored:
    """The arrays and tensors of a written tree."""

    def __init__(self, folder: Path) -> None:
        """Read the files that are there. Raises BadCheckpoint for one that makes no sense."""
        try:
            arrays, tensors = folder / ARRAYS, folder / TENSORS
            self.arrays = load_arrays(arrays) if arrays.exists() else {}
            self.tensors: dict[str, Any] = {}
            if tensors.exists():
                from safetensors.torch import load_file as load_tensors  # noqa: PLC0415 - torch

                self.tensors = load_tensors(tensors)
        except (OSError, SafetensorError) as error:
            raise BadCheckpoint(f"its arrays cannot be read: {error}", where=str(folder)) from None

    def array(self, node: dict[str, Any]) -> NDArray[Any]:
        """Return the array that a part of the tree stands for."""
        flat = self.arrays[node["array"]]
        if node["dtype"] in HALVES:
            flat = flat.view(node["dtype"])
        return flat.reshape(node["shape"])

    def tensor(self, node: dict[str, Any]) -> Any:  # noqa: ANN401 - torch is optional
        """Return the tensor that a part of the tree stands for, on the processor."""
        return self.tensors[node["tensor"]]


def is_tensor(value: object) -> bool:
    """Tell a torch tensor, without loading torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
