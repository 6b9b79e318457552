"""Measure sealing, verification and blocking time of checkpoints, compared with the peers.

    python benchmarks/checkpointing.py [--mib 1024] [--rounds 5]

The state is float32 tensors of 8 MiB. Every save is of new files into the page cache; making them
durable (fsync) is measured apart, as it is the disk's time and the peers leave it out. The peers'
files are sealed by us after they wrote them, as `with checkpoints.save()` does it; our own are
hashed while they are written, and the same writer without its hash is what that adds to. Each
number is the best of the rounds, in which all take turns. Blocked is the time that the call
takes from the training; a save begins when the last one is on the disk. DCP's second row keeps
its copy's memory from save to save, as ours does.
"""

import argparse
import os
import shutil
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import xxhash
from safetensors.torch import save_file
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

import rlvitals
from rlvitals.checkpoints import disk, manifest
from rlvitals.checkpoints.state import hash_writer

MIB = 1 << 20
TENSOR = 8 * MIB  # bytes
BUFFER = MIB  # bytes of a plain read
PAIRS = 3  # of our writer without and with its hash, in a round
Tensors = dict[str, torch.Tensor]


class NoHash:
    """Stands for a hash, and costs nothing."""

    def update(self, _: memoryview) -> None:
        pass

    def hexdigest(self) -> str:
        return ""


@contextmanager
def without_hash() -> Iterator[None]:
    """Let our writer write and hash nothing."""
    true, hash_writer.xxhash = hash_writer.xxhash, type("none", (), {"xxh3_128": NoHash})
    try:
        yield
    finally:
        hash_writer.xxhash = true


def spent(call: Callable[[], object]) -> float:
    """Measure seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def torch_save(tensors: Tensors, folder: Path) -> None:
    torch.save(tensors, folder / "state.pt")


def safetensors(tensors: Tensors, folder: Path) -> None:
    save_file(tensors, folder / "state.safetensors")


def by_dcp(tensors: Tensors, folder: Path) -> None:
    dcp.save(dict(tensors), checkpoint_id=folder / "sharded", no_dist=True)


PEERS = {"torch.save": torch_save, "safetensors": safetensors, "DCP": by_dcp}


def saves(tensors: Tensors, root: Path, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Measure writing, what seal adds to it, and fsync, in seconds: the best."""
    times_by_name: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    state = rlvitals.State(tensors=tensors)
    for _ in range(rounds):
        for name, save in PEERS.items():
            with fresh(root) as folder:
                wrote = spent(lambda save=save, folder=folder: save(tensors, folder))
                sealed = spent(lambda folder=folder: sealing(folder))
                synced = spent(lambda folder=folder: disk.settle(folder))
                times_by_name[name].append((wrote, sealed, synced))
        for _ in range(PAIRS):  # a small difference of two
            times_by_name["rlvitals"].append(own(state, root))
    best = {
        name: [min(column) for column in zip(*times, strict=True)]
        for name, times in times_by_name.items()
    }
    best["rlvitals"][1] -= best["rlvitals"][0]
    return {name: tuple(times) for name, times in best.items()}


def own(state: rlvitals.State, root: Path) -> tuple[float, float, float]:
    """Measure our writer without its hash, with it and the manifest, and fsync."""
    with fresh(root) as folder, without_hash():
        wrote = spent(lambda: state.save(folder))
    with fresh(root) as folder:
        hashed = spent(lambda: state.copy().save(folder))
        sealed = spent(lambda: whole(folder))
        synced = spent(lambda: disk.sync_tree(folder))
    return wrote, hashed + sealed, synced


def sealing(folder: Path) -> None:
    """Hash and write a manifest, without fsync."""
    sealed = {name: manifest.describe_file(folder, name) for name in manifest.list_files(folder)}
    written(folder, sealed)


def whole(folder: Path) -> None:
    """Write a manifest of files whose hashes are known, as the writer tells them."""
    files = {name: manifest.File((folder / name).stat().st_size, "0" * 32)
             for name in manifest.names(folder) if name.endswith(".safetensors")}  # fmt: skip
    states = {name: manifest.look(folder, name)
            for name in manifest.names(folder) if name not in files}  # fmt: skip
    written(folder, files | states)


def written(folder: Path, files: dict[str, manifest.File]) -> None:
    """Write a manifest; the fsync of its own is not waited for."""
    true, os.fsync = os.fsync, lambda _: None
    try:
        manifest.write(folder, manifest.Manifest(step=1, sequence=1, files=files))
    finally:
        os.fsync = true


def verification(tensors: Tensors, root: Path, rounds: int) -> dict[str, float]:
    """Measure bytes a second of verifying a checkpoint in the page cache, and of what bounds it."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    data = np.concatenate(
        [tensor.numpy().reshape(-1).view(np.uint8) for tensor in tensors.values()]
    )
    target = np.empty_like(data)
    times_by_name: dict[str, list[float]] = defaultdict(list)
    with fresh(root) as folder:
        checkpoints = rlvitals.Checkpoints(folder, tell=lambda _: None)
        checkpoints.save_state(1, rlvitals.State(tensors=tensors))
        tensor = checkpoints.latest()
        path = tensor.folder / "tensors.safetensors"
        for _ in range(rounds):
            times_by_name["verify a checkpoint"].append(
                spent(lambda: manifest.verify(tensor.folder))
            )
            times_by_name["read its file"].append(spent(lambda: plain(path)))
            times_by_name["xxh3_128 of memory"].append(
                spent(lambda: xxhash.xxh3_128(data).digest())
            )
            times_by_name["memcpy"].append(spent(lambda: np.copyto(target, data)))
    return {name: size / min(times) for name, times in times_by_name.items()}


def plain(path: Path) -> None:
    """Read a file and look at nothing."""
    view = memoryview(bytearray(BUFFER))
    with path.open("rb", buffering=0) as file:
        while file.readinto(view):
            pass


def blocked(tensors: Tensors, root: Path, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Measure seconds that a save takes from the training: the first, the next, and all of one."""
    staging_options = StagingOptions(
        use_pinned_memory=False, use_shared_memory=False,
        use_async_staging=False, use_non_blocking_copy=False,
    )  # fmt: skip # what a machine without a graphics card can do
    stager = DefaultStager(staging_options)
    with fresh(root) as folder:
        checkpoints = rlvitals.Checkpoints(
            folder / "ours", every=1, background=True, tell=lambda _: None
        )
        state = rlvitals.State(tensors=tensors)

        def ours(step: int) -> Callable[[], object]:
            checkpoints.save_state(step, state)
            return checkpoints.wait

        def theirs(step: int, name: str, **options: object) -> Callable[[], object]:
            path = folder / name / str(step)
            future = dcp.async_save(dict(tensors), checkpoint_id=path, **options)
            saved = getattr(future, "upload_completion", future)  # a stager of one's own: two
            return lambda: (saved.result(), shutil.rmtree(path))

        ways = {
            "rlvitals, background": ours,
            "DCP, async": lambda step: theirs(step, "dcp"),
            "DCP, async, memory kept": lambda step: theirs(step, "kept", async_stager=stager),
        }
        times_by_name: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for step in range(1, rounds + 2):
            for name, way in ways.items():
                start = time.perf_counter()
                wait = way(step)
                call = time.perf_counter() - start
                wait()
                times_by_name[name].append((call, time.perf_counter() - start))
    return {
        name: (times[0][0], min(call for call, _ in times[1:]), min(wait for _, wait in times[1:]))
        for name, times in times_by_name.items()
    }


@contextmanager
def fresh(root: Path) -> Iterator[Path]:
    """Make a folder for one measurement."""
    path = Path(tempfile.mkdtemp(dir=root))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def main(mib: int = 1024, rounds: int = 5) -> None:
    """Measure, and print the numbers beside the targets."""
    tensors = {f"t{n}": torch.randn(TENSOR // 4) for n in range(max(1, mib * MIB // TENSOR))}
    warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as it is meant
    with fresh(Path(tempfile.gettempdir())) as root:
        os.sync()
        print(f"{mib} MiB, torch {torch.__version__}, {torch.get_num_threads()} threads\n")
        print(f"{'save':26}{'write s':>9}{'+ seal s':>10}{'%':>7}{'fsync s':>9}")
        for name, (wrote, sealed, synced) in saves(tensors, root, rounds).items():
            print(f"{name:26}{wrote:9.3f}{sealed:10.3f}{sealed / wrote:7.1%}{synced:9.3f}")
        print()
        for name, speed in verification(tensors, root, rounds).items():
            print(f"{name:26}{speed / 1e9:9.1f} GB/s")
        dist.init_process_group("gloo", init_method=f"file://{root}/group", rank=0, world_size=1)
        print(f"\n{'training is blocked':26}{'first s':>9}{'next s':>9}{'whole save s':>14}")
        for name, (first, rest, all_) in blocked(tensors, root, rounds).items():
            print(f"{name:26}{first:9.3f}{rest:9.3f}{all_:14.3f}")
        dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the state")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    main(options.mib, options.rounds)
