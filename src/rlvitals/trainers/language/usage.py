"""Measure memory and time of a training, to compare with its plan."""

import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Memory and time of updates."""

    memory: int | None  # peak bytes above those before the model; None: unknown on this platform
    seconds: float  # of an update; NaN before the second
    cpu_seconds: float  # of all threads


class Usage:
    """Measures from its making on; `step` is called after each update.

    The time of the first update does not count: libraries are loaded in it.
    """

    def __init__(self) -> None:
        """Begin, before the model is loaded."""
        self._gpu = torch.cuda.is_available()
        self._can_reset = True
        if self._gpu:
            torch.cuda.reset_peak_memory_stats()
        else:
            try:  # Linux alone has the file, and a container may forbid to write it
                # 5 resets the peak of resident memory: proc(5), since Linux 4.0.
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            except OSError:
                self._can_reset = False
        self._before = psutil.Process().memory_info().rss
        self._first = self._last = (0.0, 0.0)
        self._steps = 0

    def step(self) -> None:
        """Note that an update is done."""
        self._last = time.perf_counter(), time.process_time()
        if not self._steps:
            self._first = self._last
        self._steps += 1

    def measure(self) -> ResourceUsage:
        """Return the peak and the mean time so far."""
        count = self._steps - 1
        spans = [
            (last - first) / count if count > 0 else float("nan")
            for first, last in zip(self._first, self._last, strict=True)
        ]
        if self._gpu:
            peak = int(torch.cuda.max_memory_allocated())
        elif not self._can_reset:
            peak = None
        else:
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
            # The kernel counts resident pages to within some per thread, and an allocator may reuse
            # what it holds: then the peak is that of the start.
            peak = max(int(kib * 1024 - self._before), 0)
        return ResourceUsage(peak, *spans)
