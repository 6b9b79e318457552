"""Write event files for the benchmarks, column by column.

Byte for byte what torch's SummaryWriter writes for `add_scalar` and `add_histogram`: one event
for each number, steps 0, 1, 2, ..., the tags of a step one after the other.
"""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.crc32c import crc32c, mask, term

Bytes = NDArray[np.uint8]
TAGS = (
    "rollout/ep_rew_mean",
    "rollout/ep_len_mean",
    "train/loss",
    "train/policy_loss",
    "train/value_loss",
    "train/entropy",
    "train/approx_kl",
    "train/clip_fraction",
    "train/explained_variance",
    "train/learning_rate",
    "train/grad_norm",
    "time/fps",
    "time/iterations",
    "time/total_timesteps",
    "env/success_rate",
    "env/reward_a",
    "env/reward_b",
    "sys/gpu_util",
    "sys/gpu_mem",
    "sys/cpu",
)
STARTED = 1.7e9  # seconds since the epoch
BLOCK_STEPS = 20_000  # written at once


def varint(number: int) -> bytes:
    data = b""
    while number > 127:  # seven bits a byte
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def text(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    checks = (struct.pack("<I", mask(crc32c(data))) for data in (length, payload))
    return length + next(checks) + payload + next(checks)


def head() -> bytes:
    return record(b"\x09" + struct.pack("<d", STARTED) + text(3, b"brain.Event:2"))


def columns(numbers: NDArray, kind: str) -> Bytes:
    """Return numbers [n] as rows of bytes."""
    return np.ascontiguousarray(numbers.astype(kind)).view(np.uint8).reshape(len(numbers), -1)


def varints(steps: NDArray[np.int64]) -> Bytes:
    """Return steps [n] whose varints take as many bytes as rows of bytes."""
    width = len(varint(int(steps[0])))
    rows = (steps[:, None] >> (7 * np.arange(width))) & 127
    rows[:, :-1] |= 128
    return rows.astype(np.uint8)


def records(tag: str, steps: NDArray, times: NDArray, values: NDArray) -> Bytes:
    """Return the records of scalars [n] as rows of bytes; their steps take as many bytes."""
    count = len(steps)
    summary = text(5, text(1, text(1, tag.encode()) + b"\x15" + bytes(4)))[:-4]
    fixed = np.broadcast_to(np.frombuffer(summary, np.uint8), (count, len(summary)))
    key = np.broadcast_to(np.array([[0x10]], np.uint8), (count, 1))
    step = (key, varints(steps)) if steps[0] else ()
    time = (np.full((count, 1), 9, np.uint8), columns(times, "<f8"))
    payloads = np.concatenate((*time, *step, fixed, columns(values, "<f4")), axis=1)
    size = payloads.shape[1]
    header = record(bytes(size))[:12]
    headers = np.broadcast_to(np.frombuffer(header, np.uint8), (count, 12))
    crcs = np.full(count, crc32c(bytes(size)), np.uint32)
    for index, column in enumerate(payloads.T):
        crcs ^= term(size - 1 - index)[column]
    masked = ((crcs >> 15) | (crcs << 17)) + np.uint32(0xA282EAD8)
    return np.concatenate((headers, payloads, columns(masked, "<u4")), axis=1)


def scalars(
    steps: NDArray[np.int64], generator: np.random.Generator, tags: tuple[str, ...] = TAGS
) -> bytes:
    """Return the records of every tag at each of some steps, ascending."""
    data = b""
    for width in range(6):
        low, high = (128 ** (width - 1) if width > 1 else width), 128**width
        some = steps[(steps >= low) & (steps < high)]
        if len(some):
            walks = generator.standard_normal((len(tags), len(some))).cumsum(axis=1)
            times = STARTED + some * 0.01
            rows = [
                records(tag, some, times + 1e-5 * index, walk)
                for index, (tag, walk) in enumerate(zip(tags, walks, strict=True))
            ]
            data += np.concatenate(rows, axis=1).tobytes()
    return data


def histogram(tag: str, step: int, generator: np.random.Generator, buckets: int) -> bytes:
    limits = np.sort(generator.standard_normal(buckets))
    counts = generator.integers(0, 1000, buckets).astype(float)
    moments = b"".join(bytes([9 + 8 * i]) + struct.pack("<d", i) for i in range(5))
    body = moments + text(6, limits.tobytes()) + text(7, counts.tobytes())
    when = b"\x09" + struct.pack("<d", STARTED + step * 0.01) + b"\x10" + varint(step)
    return record(when + text(5, text(1, text(1, tag.encode()) + text(5, body))))


def name(run: int = 0) -> str:
    return f"events.out.tfevents.{int(STARTED)}.host.1.{run}"


def write_run(folder: Path, steps: int, seed: int = 0, histograms_every: int = 0) -> Path:
    """Write a run of 20 tags, with 20 histograms of 20 to 1,500 buckets every so many steps."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    path = folder / name(seed)
    block = histograms_every or BLOCK_STEPS
    with path.open("wb") as file:
        file.write(head())
        for first in range(0, steps, block):
            file.write(scalars(np.arange(first, min(first + block, steps)), generator))
            for index in range(20 if histograms_every else 0):
                buckets = int(generator.integers(20, 1500))
                last = min(first + block, steps) - 1
                file.write(histogram(f"weights/{index}", last, generator, buckets))
    return path
