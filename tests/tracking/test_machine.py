"""The machine's numbers: there where they can be had, silent where not."""

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest
from recording_checks import await_machine
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.metrics import frameworks
from rlvitals.metrics.frameworks import lookup
from rlvitals.tracking import machine
from rlvitals.tracking.machine import GIB_BYTES, Sampler


def test_one_sample_is_this_process_and_this_machine(tmp_path):
    sampler = Sampler(folder=tmp_path)
    sampler.sample()
    held = bytearray(os.urandom(64 << 20))
    begun = time.process_time()
    while time.process_time() - begun < 0.05:
        sum(range(1000))
    found = sampler.sample()
    assert found["machine/rss_gib"] > len(held) / GIB_BYTES
    assert found["machine/threads"] >= threading.active_count()
    assert found["machine/open_files"] >= 3
    assert 0 < found["machine/process_cpu_percent"] <= 120
    assert 0 <= found["machine/cpu_percent"] <= 100
    assert 0 < found["machine/ram_percent"] <= 100
    free = psutil.disk_usage(str(tmp_path)).free / GIB_BYTES
    assert found["machine/disk_free_gib"] == pytest.approx(free, rel=0.1)
    assert found["machine/load"] >= 0
    assert found["machine/cores"] >= machine.cores() >= 1


def test_every_number_is_a_metric_that_the_catalogue_knows(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", cards(2))
    sampler = Sampler()
    sampler.sample()
    found = sampler.sample()
    named = {key: lookup.find(frameworks.GENERIC, key) for key in found}
    assert not [key for key, metric in named.items() if metric is None]
    told = {key: metric[0] for key, metric in named.items()}
    assert told["machine/ram_percent"] == "throughput/machine/ram"
    assert told["machine/rss_gib"] == "throughput/memory/rss"
    assert told["machine/gpu1_percent"] == "throughput/machine/gpu1"
    assert told["machine/gpu1_vram_percent"] == "throughput/machine/gpu1_vram"
    assert told["machine/gpu1_vram_gib"] == "throughput/memory/gpu1_vram"
    assert told["machine/disk_free_gib"] == "throughput/disk_free"
    assert len(set(told.values())) == len(told)


def test_the_thread_gathers_means_and_peaks():
    sampler = Sampler(0.02).start()
    until = time.monotonic() + HANG_SECONDS
    while not (found := sampler.take()) and time.monotonic() < until:
        time.sleep(0.02)
    sampler.stop()
    assert "machine/rss_gib" in found
    held = [{"machine/load": 1.0, "machine/rss_gib": 3.0}, {"machine/load": 2.0}]
    held.append({"machine/load": 3.0, "machine/rss_gib": 2.0})
    assert machine._aggregate(held) == {"machine/load": 2.0, "machine/rss_gib": 3.0}
    assert machine._aggregate([]) == {}


def test_the_thread_keeps_no_interpreter_alive_and_no_fork_busy():
    code = """
import os, sys, time
from rlvitals.tracking.machine import Sampler
sampler = Sampler(0.01).start()
while not sampler.take():
    time.sleep(0.01)
if not (child := os.fork()):
    sys.exit(0 if sampler.take() == {} else 1)
while not sampler.take():
    time.sleep(0.01)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=HANG_SECONDS, check=True
    )
    assert done.stdout == b"0\n"
    assert done.stderr == b""


def test_a_run_logs_its_machine_under_metrics_that_rules_read(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0.02")
    monkeypatch.setattr(machine, "FIRST_SAMPLE_SECONDS", 0.02)
    with rlvitals.start(tmp_path, flush_seconds=0.05) as run:
        for step in range(5):
            await_machine(run)
            run.log(step, {"reward_mean": float(step)})
            run.flush()
    trace = rlvitals.diagnose(tmp_path).trace
    rss = trace["throughput/memory/rss"]
    assert 0.01 < rss.values[-1] < 100
    assert set(rss.steps.tolist()) == {0, 1, 2, 3, 4}
    assert "throughput/machine/ram" in trace
    assert not [key for key in trace.unmapped if key.startswith("machine/")]


def test_the_machine_can_be_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0")
    before = set(threading.enumerate())  # of an earlier run: they end by themselves
    with rlvitals.start(tmp_path) as run:
        run.log(0, {"reward_mean": 1.0})
        started = {thread.name for thread in threading.enumerate() if thread not in before}
        assert "rlvitals" in started
        assert "rlvitals-machine" not in started


def test_without_psutil_there_is_what_the_system_tells(monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert set(Sampler().sample()) <= {"machine/ram_percent"}


@pytest.mark.parametrize("broken", ["absent", "no driver", "card fails"])
def test_without_a_card_there_is_silence(monkeypatch, broken, capfd):
    library = {"absent": None, "no driver": cards(0, init=False)}.get(broken, cards(1, fails=True))
    monkeypatch.setitem(sys.modules, "pynvml", library)
    found = Sampler().sample()
    assert not [key for key in found if "gpu" in key]
    assert machine.gpus() == []
    assert capfd.readouterr() == ("", "")


def test_the_real_library_is_asked():
    pynvml = pytest.importorskip("pynvml")
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        count = 0
    assert len(machine.gpus()) == count
    assert sum(key.endswith("_vram_gib") for key in Sampler().sample()) == count


@pytest.mark.parametrize(
    ("said", "seen"),
    [(None, [0, 1, 2]), ("2,0", [2, 0]), ("GPU-1", [1]), ("", []), ("0,7,1", [0]), ("-1", [])],
)
def test_only_the_cards_that_this_process_may_use(monkeypatch, said, seen):
    monkeypatch.setitem(sys.modules, "pynvml", cards(3))
    if said is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
    assert machine.gpus() == [f"card {i}" for i in seen]
    found = Sampler().sample()
    for place, card in enumerate(seen):
        assert found[f"machine/gpu{place}_percent"] == 10.0 * card
        assert found[f"machine/gpu{place}_vram_percent"] == 25.0
        assert found[f"machine/gpu{place}_watts"] == 250.0
    assert f"machine/gpu{len(seen)}_percent" not in found


def cards(count, *, init=True, fails=False):
    """What NVML says on a machine with cards: there is none where the tests run."""

    def failing(*_):
        raise RuntimeError("driver/library version mismatch")

    one = {
        "nvmlInit": (lambda: None) if init else failing,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda i: i,
        "nvmlDeviceGetHandleByUUID": lambda name: int(name[4:]),
        "nvmlDeviceGetName": lambda card: f"card {card}".encode(),
        "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=10 * card),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=2 << 30, total=8 << 30),
        "nvmlDeviceGetPowerUsage": lambda _: 250_000,
        "nvmlDeviceGetTemperature": lambda *_: 60,
    }
    if fails:
        one |= {
            name: failing for name in one if name.startswith("nvmlDeviceGet") and "ByI" not in name
        }
        one["nvmlDeviceGetCount"] = lambda: count
    return SimpleNamespace(**one)


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/job/7", {"job/7/memory.max": 1000, "job/7/memory.current": 700}),
        ("0::/outside", {"memory.max": 1000, "memory.current": 700}),  # within a container
        (
            "4:memory:/job\n0::/",
            {"memory/job/memory.limit_in_bytes": 1000, "memory/job/memory.usage_in_bytes": 700},
        ),
    ],
)
def test_a_container_s_memory_is_its_limit(tmp_path, monkeypatch, own, files):
    for name, value in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
        key = "total_inactive_file" if "bytes" in name else "inactive_file"
        (path.parent / "memory.stat").write_text(f"anon 5\n{key} 200\n")
        kills = "memory.oom_control" if "bytes" in name else "memory.events"
        (path.parent / kills).write_text("low 0\noom 4\noom_kill 3\n")
    (tmp_path / "own").write_text(own)
    folder = machine.cgroup(tmp_path / "own", tmp_path / "fs")
    assert machine._limits(folder) == {"limit": 1000, "used": 500}
    assert machine.kills(folder) == 3
    monkeypatch.setattr(machine, "cgroup", lambda: folder)
    assert Sampler().sample()["machine/ram_percent"] == 50.0


def test_no_limit_is_no_limit(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._limits(tmp_path) == {}
    assert machine.kills(tmp_path) is None
    assert machine.cgroup(tmp_path / "absent", tmp_path) is None
    assert 0 < machine.memory_gib() <= psutil.virtual_memory().total / GIB_BYTES + 1


def test_no_library_of_nvidia_is_loaded_where_no_card_can_be(monkeypatch):
    """It takes 9 ms, a tenth of what the recorder adds to a short program."""
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.delitem(machine.sys.modules, "pynvml", raising=False)
    monkeypatch.setattr(machine.Path, "exists", lambda _: False)
    for names, may_have in (["null", "nvme0"], False), (["null", "nvidiactl"], True):
        files = [machine.Path("/dev", name) for name in names]
        monkeypatch.setattr(machine.Path, "iterdir", lambda _, files=files: iter(files))
        assert machine._may_have_cards() is may_have
    monkeypatch.setattr(machine.Path, "iterdir", unreadable)
    assert machine._may_have_cards()
    monkeypatch.setattr(machine.Path, "iterdir", lambda _: iter(()))
    monkeypatch.setattr(machine.Path, "exists", lambda path: path.name == "nvidia")
    assert machine._may_have_cards()


def unreadable(_):
    raise PermissionError
