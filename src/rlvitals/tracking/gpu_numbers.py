"""Copy the numbers of a row from a GPU by one copy, without waiting for it.

`.item()` of each would wait for all kernels before it, and a copy of each on the device launches a
kernel per number.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any


class GpuNumber:
    """A number that is on its way from a GPU."""

    __slots__ = ("_copy", "_index")

    def __init__(self, copy: "_Copy", index: int) -> None:
        self._copy, self._index = copy, index

    def item(self) -> float | int | bool:
        """Return the number; waits until its copy is done."""
        number: float | int | bool = self._copy.numbers()[self._index]
        return number


class _Copy:
    """A copy in pinned memory, and the event on the stream that makes it."""

    __slots__ = ("_event", "_host", "_numbers")

    def __init__(self, host: Any, event: Any) -> None:  # noqa: ANN401 - torch is optional
        self._host, self._event = host, event
        self._numbers: list[Any] | None = None

    def numbers(self) -> list[Any]:
        if self._numbers is None:
            with _sparing_captures():
                self._event.synchronize()
                self._numbers = self._host.tolist()
                self._host = self._event = None
        return self._numbers


def is_on_gpu(value: object) -> bool:
    """Return whether a value is a plain tensor of one real number on a CUDA device."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.is_cuda  # type: ignore[attr-defined]
        and value.numel() == 1  # type: ignore[attr-defined]
        and not value.is_complex()  # type: ignore[attr-defined]
    )


def is_capturing() -> bool:
    """Return whether a CUDA graph is captured: what is launched then computes nothing yet."""
    return bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def copy(tensors: Mapping[str, Any]) -> dict[str, GpuNumber]:
    """Start the copies of tensors of one element, by name: one of each device and dtype.

    They are made on the current stream of the tensors' device, after what was launched there.
    """
    torch = sys.modules["torch"]
    groups: dict[tuple[object, object], list[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault((tensor.device, tensor.dtype), []).append(name)
    numbers: dict[str, GpuNumber] = {}
    for (device, _), names in groups.items():
        with torch.no_grad(), torch.cuda.device(device):
            scalars = [tensors[name].reshape(()) for name in names]
            host = torch.stack(scalars).to("cpu", non_blocking=True)  # pinned by torch
            event = torch.cuda.Event(blocking=True)
            event.record()
        copied = _Copy(host, event)
        numbers |= {name: GpuNumber(copied, i) for i, name in enumerate(names)}
    return numbers


@contextlib.contextmanager
def _sparing_captures() -> Iterator[None]:
    """Let this thread wait for a GPU while another one captures a CUDA graph.

    By default that is an error, and ends the capture: torch captures in the global mode.
    """
    exchange = _load_exchange()
    mode = ctypes.c_int(2)  # cudaStreamCaptureModeRelaxed
    if exchange is not None:
        exchange(ctypes.byref(mode))  # it leaves the thread's earlier mode in `mode`
    try:
        yield
    finally:
        if exchange is not None:
            exchange(ctypes.byref(mode))


@cache
def _load_exchange() -> Any:  # noqa: ANN401 - a function of C
    """Return the function that exchanges a thread's capture mode, of the library torch loaded."""
    with contextlib.suppress(OSError, AttributeError, StopIteration):
        maps = Path("/proc/self/maps").read_text().splitlines()
        library = next(line.split()[-1] for line in maps if "/libcudart" in line)
        return ctypes.CDLL(library).cudaThreadExchangeStreamCaptureMode
    return None
