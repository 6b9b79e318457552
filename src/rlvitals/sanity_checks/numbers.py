"""Convert numbers of any library to float64 arrays, and return their original precision."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def to_floats(values: ArrayLike) -> NDArray[np.float64]:
    """Return float64 of the same shape: from numbers, arrays, or torch tensors on any device."""
    return np.asarray(_plain(values), dtype=np.float64)


def machine_epsilon(values: ArrayLike) -> float:
    """Return the machine epsilon of the type of `values`; float64's for Python numbers."""
    if "bfloat16" in str(getattr(values, "dtype", "")):
        # torch's bfloat16 keeps 8 significant bits; numpy has no such type.
        return 2.0**-7
    plain = np.asarray(_plain(values))
    return float(np.finfo(plain.dtype if plain.dtype.kind == "f" else np.float64).eps)


def rounding_error(values: ArrayLike) -> float:
    """Return how much equal quantities may differ when computed twice: half of the digits."""
    return float(np.sqrt(machine_epsilon(values)))


def _plain(values: Any) -> Any:  # noqa: ANN401 - numbers of any library
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if "bfloat16" in str(values.dtype) else values).numpy()
    return values


def first_index(mask: NDArray[np.bool_]) -> str:
    """Return the index of the first true value: "[3, 0]"; "" for a single value."""
    index = np.argwhere(mask)[0]
    return f"[{', '.join(str(i) for i in index)}]" if len(index) else ""
