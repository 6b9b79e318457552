"""Convert logged values to numbers that do not change after the call."""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from math import inf
from operator import index
from typing import Any

import numpy as np

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.typed import INT64_RANGE
from rlvitals.tracking import gpu_numbers

# A dict of these alone can be kept as it is: none of them can change after the call.
IMMUTABLE_TYPES = frozenset({
    float, int, bool, np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8,
    np.uint64, np.uint32, np.uint16, np.uint8, np.bool_,
})  # fmt: skip
NAME_TYPES = frozenset({str})
MAX_DICT_DEPTH = 16  # levels of nested dicts; deeper is a dict that holds itself
MAX_ROW_NAMES = 1_000_000  # of a row: a mapping without end is cut there


@dataclass(slots=True)
class FlatMetrics:
    """The metrics of a call: flat, copied, with the problems found in them."""

    at_once: bool  # whether other devices are waited for
    values: dict[str, object] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    none: list[str] = field(default_factory=list)  # names whose value was None
    on_gpu: dict[str, Any] = field(default_factory=dict)  # tensors that are copied together

    def take(
        self, metrics: Mapping[object, object], prefix: str = "", depth: int = MAX_DICT_DEPTH
    ) -> None:
        """Take a dict, nested ones with "/" between their names."""
        for key, value in islice(metrics.items(), MAX_ROW_NAMES - len(self.values)):
            try:
                self._take(key, value, prefix, depth)
            except Exception as error:  # noqa: BLE001 - a caller's object may raise anything
                name = prefix + (key if type(key) is str else kind(key))
                error_name = type(error).__name__
                self.wrong.append(f"{name}: {kind(value)} is no number ({error_name})")

    def _take(self, key: object, value: object, prefix: str, depth: int) -> None:
        if not isinstance(key, str):
            self.wrong.append(f"a metric's name must be a string, not {kind(key)}")
        elif type(value) in IMMUTABLE_TYPES:
            self.values[prefix + key] = value
        elif value is None:
            self.none.append(prefix + key)
        elif gpu_numbers.is_on_gpu(value):
            name = prefix + key
            if gpu_numbers.is_capturing():
                self.wrong.append(
                    f"{name}: it is computed when the CUDA graph is replayed; log it then"
                )
            else:
                self.values[name] = self.on_gpu[name] = value
        elif not isinstance(value, Mapping):
            if (number := _freeze(value, at_once=self.at_once)) is None:
                self.wrong.append(f"{prefix}{key}: {kind(value)} is no number")
            else:
                self.values[prefix + key] = number
        elif depth:
            self.take(value, f"{prefix}{key}/", depth - 1)
        else:
            self.wrong.append(f"{prefix[:60]}...: dicts nested more than {MAX_DICT_DEPTH} deep")

    def copy_from_gpu(self) -> None:
        """Replace tensors on a GPU by numbers, which are on their way if not `at_once`."""
        try:
            copies = gpu_numbers.copy(self.on_gpu)
            self.values |= {n: number(c) for n, c in copies.items()} if self.at_once else copies
        except Exception as error:  # noqa: BLE001 - its memory is full, or it has failed
            for name in self.on_gpu:
                del self.values[name]
                self.wrong.append(f"{name}: not copied from the GPU ({type(error).__name__})")


def flatten_metrics(metrics: Mapping[object, object], *, at_once: bool) -> FlatMetrics:
    """Flatten nested dicts with "/" and copy every value as it is now.

    Tensors on the CPU and arrays of one element become numbers. Tensors on a GPU are copied by one
    asynchronous copy and become numbers at the next flush, those on other devices are cloned there;
    `at_once` makes them numbers now, and waits for the device.
    """
    plain = type(metrics) is dict
    row = dict(metrics) if plain else dict(islice(metrics.items(), MAX_ROW_NAMES))
    if IMMUTABLE_TYPES.issuperset(map(type, row.values())) and NAME_TYPES.issuperset(
        map(type, row)
    ):
        return FlatMetrics(at_once, row)  # type: ignore[arg-type]
    found = FlatMetrics(at_once)
    found.take(row)
    if found.on_gpu:
        found.copy_from_gpu()
    return found


def _freeze(value: Any, *, at_once: bool) -> object:  # noqa: ANN401 - anything at all
    """Return the value to keep until the flush: a number, or a copy on the device."""
    if isinstance(value, int | float | np.generic | Decimal | Fraction):
        return number(value)
    device = getattr(value, "device", None)
    if device is not None and hasattr(value, "detach"):  # torch, without importing it
        if getattr(device, "type", "cpu") == "cpu" or at_once:
            return number(value.detach().item())
        return value.detach().clone() if value.numel() == 1 else None
    if hasattr(value, "block_until_ready") and not at_once:  # JAX: its arrays never change
        return value
    return number(value)


def number(value: object) -> float | None:
    """Return a value as float64, None where it is not a single number.

    An integer beyond float64's range becomes an infinity of its sign, as rounding would.
    """
    if isinstance(value, str | bytes) or value is None:
        return None
    if isinstance(value, complex | np.complexfloating):
        return None
    try:
        if isinstance(value, int | float | Decimal | Fraction):
            return float(value)
        item = getattr(value, "item", None)
        return float(value if item is None else item())  # type: ignore[arg-type]
    except OverflowError:
        return inf if value > 0 else -inf  # type: ignore[operator]
    except (TypeError, ValueError):
        return None


def to_int64(step: object) -> int | None:
    """Return a step as an int64, None where it is not an integer or too large."""
    try:
        if isinstance(step, bool | np.bool_):
            return None
        try:
            integer = index(step)  # type: ignore[arg-type]
        except TypeError:
            amount = number(step)
            if amount is None or not amount.is_integer():
                return None
            integer = int(amount)
    except Exception:  # noqa: BLE001 - a caller's __index__ may raise anything
        return None
    return integer if integer in INT64_RANGE else None


def kind(value: object) -> str:
    """Name a value's type as a person writes it: "a str", "an int", "a torch.Tensor [4, 2]"."""
    name = type(value).__qualname__
    home = str(type(value).__module__).partition(".")[0]
    full = name if home == "builtins" else f"{home}.{name}"
    try:
        shape: Any = getattr(value, "shape", None)
        size = f" {list(islice(shape, MAX_DICT_DEPTH))}" if shape is not None and len(shape) else ""
    except Exception:  # noqa: BLE001 - a caller's property may raise anything
        size = ""
    return f"{'an' if full[0] in 'aeiou' else 'a'} {full}{size}"
