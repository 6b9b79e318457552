"""Sample the machine on a thread: processor, memory, disk, graphics cards.

    sampler = Sampler(interval=10.0).start()
    sampler.take()      # what was measured since the last call: means, and peaks of memory

Percentages are of what this process may use: a container's memory is its limit, not the host's.
Without psutil or NVML only their numbers are missing.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

FIRST_SAMPLE_SECONDS = (
    0.5  # seconds until it looks, and then to the first sample: a short run has one too
)
GIB_BYTES = 2.0**30


class Sampler:
    """Measures every `interval` seconds on a daemon thread; a fork's child measures nothing."""

    def __init__(self, interval: float = 10.0, folder: Path | None = None) -> None:
        """Set the interval and the folder whose disk is watched: the working folder by default."""
        self.interval = max(interval, 0.01)
        self._probe = _Probe(folder or Path())
        self._samples: list[dict[str, float]] = []
        self._stopped = threading.Event()
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    def start(self) -> "Sampler":
        """Start the thread; it never keeps the interpreter alive."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rlvitals-machine", daemon=True)
            self._thread.start()
        return self

    def sample(self) -> dict[str, float]:
        """Measure now, under names such as "machine/cpu_percent"; missing values are left out.

        The use of processors is since the last sample: the first has none.
        """
        return self._probe.measure()

    def take(self) -> dict[str, float]:
        """Return what the thread measured since the last call; empty where it measured nothing."""
        if os.getpid() != self._pid:
            return {}
        samples, self._samples = self._samples, []
        return _aggregate(samples)

    def stop(self) -> None:
        """Let the thread end; it is not waited for."""
        self._stopped.set()

    def _run(self) -> None:
        wait = first = min(FIRST_SAMPLE_SECONDS, self.interval)
        if not self._stopped.wait(first):  # whoever starts us is not held up by what we load
            self._probe.measure()  # processors are measured from here on
        while not self._stopped.wait(wait):
            self._samples.append(self._probe.measure())
            wait = self.interval


def cores() -> int:
    """Count the cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def memory_gib() -> float | None:
    """Return the memory that this process may use, in GiB; None where it is unknown."""
    sizes = [size for size in (_total_memory(), _limits().get("limit")) if size]
    return round(min(sizes) / GIB_BYTES, 2) if sizes else None


def gpus() -> list[str]:
    """Name the graphics cards that this process may use."""
    cards = _Cards()
    return [name for card in cards.handles if (name := cards.name(card))]


def _aggregate(samples: list[dict[str, float]]) -> dict[str, float]:
    names = {name: None for sample in samples for name in sample}
    row: dict[str, float] = {}
    for name in names:
        values = [sample[name] for sample in samples if name in sample]
        # The highest of these counts, not the mean.
        row[name] = (
            max(values)
            if name.endswith(("_gib", "ram_percent", "vram_percent"))
            else sum(values) / len(values)
        )
    return row


class _Probe:
    """The measurements of this process and its machine, with the state between two samples."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: psutil.Process | None = None
        self._cards: _Cards | None = None
        self._spent: tuple[float, float] | None = None  # wall and processor seconds

    def measure(self) -> dict[str, float]:
        """Return all measurements; a part that fails is left out."""
        row: dict[str, float] = {}
        for probe in (
            self._system_load,
            self._process_usage,
            self._memory,
            self._disk,
            self._graphics,
        ):
            row.update(_call_or_empty(probe))
        return {f"machine/{name}": value for name, value in row.items()}

    def _system_load(self) -> Mapping[str, float]:
        import psutil  # noqa: PLC0415 - 20 ms: on the sampler's thread

        row = {"cores": float(os.cpu_count() or 1)}  # all of them, as the load is everybody's
        if hasattr(os, "getloadavg"):
            row["load"] = os.getloadavg()[0]
        if self._spent is not None:  # else it is of no time at all
            row["cpu_percent"] = psutil.cpu_percent()
        else:
            psutil.cpu_percent()
        return row

    def _process_usage(self) -> Mapping[str, float]:
        import psutil  # noqa: PLC0415 - the same

        process = self._process = self._process or psutil.Process()
        with process.oneshot():
            times = process.cpu_times()
            row = {
                "rss_gib": process.memory_info().rss / GIB_BYTES,
                "threads": float(process.num_threads()),
            }
            if hasattr(process, "num_fds"):
                row["open_files"] = float(process.num_fds())
        spent = (time.monotonic(), times.user + times.system)
        if self._spent is not None and spent[0] > self._spent[0]:
            used = (spent[1] - self._spent[1]) / (spent[0] - self._spent[0])
            row["process_cpu_percent"] = 100.0 * used / cores()
        self._spent = spent
        return row

    def _memory(self) -> Mapping[str, float]:
        limits, total = _limits(), _total_memory()
        if limits.get("limit") and (not total or limits["limit"] < total):
            return {"ram_percent": 100.0 * limits["used"] / limits["limit"]}
        import psutil  # noqa: PLC0415 - the same

        return {"ram_percent": float(psutil.virtual_memory().percent)}

    def _disk(self) -> Mapping[str, float]:
        import psutil  # noqa: PLC0415 - the same

        room = psutil.disk_usage(str(self._folder.absolute()))
        return {"disk_free_gib": room.free / GIB_BYTES, "disk_percent": float(room.percent)}

    def _graphics(self) -> Mapping[str, float]:
        self._cards = self._cards or _Cards()
        row: dict[str, float] = {}
        for i, card in enumerate(self._cards.handles):
            measurements = self._cards.measure(card)
            row.update({f"gpu{i}_{name}": value for name, value in measurements.items()})
        return row


class _Cards:
    """NVIDIA's cards through NVML: those that this process may use, in its own order."""

    def __init__(self) -> None:
        self._nvml: Any = None  # the library has no types
        self.handles: list[Any] = []
        if not _may_have_cards():
            return
        try:
            import pynvml  # noqa: PLC0415 - optional, and 9 ms

            pynvml.nvmlInit()
            self._nvml = pynvml
            self.handles = self._visible()
        except Exception:  # noqa: BLE001 - no card, no driver, a driver of another version
            self.handles = []

    def _visible(self) -> list[Any]:
        """Follow CUDA_VISIBLE_DEVICES: numbers or names, and none behind the first wrong one."""
        nvml, variable = self._nvml, os.environ.get("CUDA_VISIBLE_DEVICES")
        count = nvml.nvmlDeviceGetCount()
        if variable is None:
            return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        handles = []
        for device in filter(None, (entry.strip() for entry in variable.split(","))):
            if device.isdigit() and int(device) < count:
                handles.append(nvml.nvmlDeviceGetHandleByIndex(int(device)))
            elif device.startswith(("GPU-", "MIG-")):
                handles.append(nvml.nvmlDeviceGetHandleByUUID(device))
            else:
                break
        return handles

    def name(self, card: object) -> str:
        """Return the name of a card; empty where it is unknown."""
        try:
            name = self._nvml.nvmlDeviceGetName(card)
        except Exception:  # noqa: BLE001 - a card that fails has no name
            return ""
        return name.decode(errors="replace") if isinstance(name, bytes) else str(name)

    def measure(self, card: object) -> dict[str, float]:
        """Return use and memory in percent, GiB used, watts and degrees, as far as available."""
        nvml = self._nvml
        memory = _call_or_empty(lambda: _card_memory(nvml, card))
        queries: tuple[tuple[str, Callable[[], float]], ...] = (
            ("percent", lambda: float(nvml.nvmlDeviceGetUtilizationRates(card).gpu)),
            ("watts", lambda: nvml.nvmlDeviceGetPowerUsage(card) / 1000.0),
            ("celsius", lambda: float(nvml.nvmlDeviceGetTemperature(card, 0))),
        )
        row = dict(memory)
        for name, ask in queries:
            row.update(_call_or_empty(lambda name=name, ask=ask: {name: ask()}))  # type: ignore[misc]
        return row


def _may_have_cards() -> bool:
    """Return False on Linux without NVIDIA's driver and devices: its library would find no card."""
    if sys.platform != "linux" or "pynvml" in sys.modules or Path("/proc/driver/nvidia").exists():
        return True
    prefixes = ("nvidia", "nvhost", "nvgpu", "dxg")  # the last is Windows' own Linux
    try:
        return any(file.name.startswith(prefixes) for file in Path("/dev").iterdir())
    except OSError:
        return True


def _card_memory(nvml: Any, card: object) -> dict[str, float]:  # noqa: ANN401 - it has no types
    memory = nvml.nvmlDeviceGetMemoryInfo(card)
    return {"vram_gib": memory.used / GIB_BYTES, "vram_percent": 100.0 * memory.used / memory.total}


def _call_or_empty(ask: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
    """Call one part; empty where it raises."""
    try:
        return ask()
    except Exception:  # noqa: BLE001 - a sensor that fails must not stop the others or the run
        return {}


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def cgroup(
    own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Path | None:
    """Return the folder that limits this process's memory: of cgroup v2, else v1; None without."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root if not controllers else root / "memory"
        if controllers and "memory" not in controllers.split(","):
            continue
        # Within a container the path is the host's, and its own folder is the root.
        for folder in (base / path.strip("/"), base):
            if any((folder / name).exists() for name in ("memory.max", "memory.limit_in_bytes")):
                return folder
    return None


def kills(folder: Path) -> int | None:
    """Count the out-of-memory kills in a cgroup so far; None where nobody counts."""
    events = counter(folder / "memory.events", "oom_kill")
    return counter(folder / "memory.oom_control", "oom_kill") if events is None else events


def _limits(folder: Path | None = None) -> dict[str, int]:
    """Return a cgroup's limit and what is used of it, in bytes; empty where there is no limit."""
    folder = folder or cgroup()
    if folder is None:
        return {}
    new = (folder / "memory.max").exists()
    limit = _number(folder / ("memory.max" if new else "memory.limit_in_bytes"))
    used = _number(folder / ("memory.current" if new else "memory.usage_in_bytes"))
    # cgroup v1 writes a number near 2**63 for no limit.
    if not limit or limit > 2**60 or used is None:
        return {}
    # What was read from files and can be dropped at once is no need of the program.
    key = "inactive_file" if new else "total_inactive_file"
    return {"limit": limit, "used": max(used - (counter(folder / "memory.stat", key) or 0), 0)}


def counter(path: Path, name: str) -> int | None:
    """Return one counter of a file of "name number" lines; None where it is not there."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    rows = (line.split() for line in lines)
    return next((int(fields[1]) for fields in rows if fields[0] == name and len(fields) > 1), None)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
