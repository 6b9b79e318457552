"""Compute rates of a device: measured in a second, or stated by a person."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import psutil
import torch

# Share of a stated peak that training reaches: 0.46 in Chowdhery et al. 2022 (PaLM), table 3.
PEAK_UTILISATION = 0.46
COPY_BYTES = 1 << 26  # bytes that are copied: more than caches hold


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a device and its free memory."""

    flops: float  # floating point operations a second
    bandwidth: float  # bytes a second, read and written
    overhead: float  # seconds of an operation, however small it is
    memory: int  # bytes
    device: str
    source: str  # "measured" or "stated"


def rates(
    dtype: torch.dtype, sides: tuple[int, int, int], *, flops: float, bandwidth: float
) -> Rates:
    """Return the rates of this machine; those of the peaks that are stated, where one is.

    `sides`: tokens, width and inner width of the model's layers, whose product is timed; `flops`:
    a peak in FLOP/s, `bandwidth` one in bytes/s (0: not stated).
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if flops:
        reached = PEAK_UTILISATION * flops
        # 200 FLOP a byte where only the FLOPs are stated: 156 of an A100, 295 of an H100 (dense
        # bfloat16).
        return Rates(
            reached, PEAK_UTILISATION * (bandwidth or flops / 200.0), 0.0,
            _memory(device), str(device), "stated",
        )  # fmt: skip
    tokens, width, inner = (min(side, 4096) for side in sides)
    left = torch.randn(tokens, width, device=device).to(dtype)
    right = torch.randn(width, inner, device=device).to(dtype)
    source = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return Rates(
        2.0 * tokens * width * inner / seconds(lambda: left @ right, device),
        2.0 * COPY_BYTES / seconds(lambda: target.copy_(source), device),
        0.0, _memory(device), str(device), "measured",
    )  # fmt: skip


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def seconds(
    operation: Callable[[], object], device: torch.device, min_repeat_s: float = 0.05
) -> float:
    """Return the median seconds of a call in several repeats, after a warm-up call.

    On a CPU it is the CPU time of all threads by their number: what it takes on an idle machine.
    A repeat makes calls for `min_repeat_s` or longer: the CPU clocks of virtual machines tick every
    10 ms.
    """
    clock = time.perf_counter if device.type == "cuda" else time.process_time

    def repeat(count: int) -> float:
        start = clock()
        for _ in range(count):
            operation()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return clock() - start

    operation()
    count = 1
    while repeat(count) < min_repeat_s:
        count *= 2
    duration = median(repeat(count) for _ in range(3)) / count
    return duration / (1 if device.type == "cuda" else torch.get_num_threads())
