"""Parse histograms in the two forms that writers use.

Field numbers: TensorFlow `summary.proto`; TensorBoard `plugins/histogram/summary_v2.py`.
"""

import math
import sys

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.tensors import matrix_of
from rlvitals.readers.formats.protobuf import BYTES, FIXED64, Malformed, double, fields
from rlvitals.types import Histogram


def of_proto(data: bytes, step: int, time: float) -> Histogram | None:
    """Return the histogram of a HistogramProto (torch, tensorboardX, TensorFlow 1).

    Its buckets have upper limits only; the first one's lower limit is the least value. A first
    bucket that is empty only says where the second begins. None where it has no bucket.
    """
    low, high = -math.inf, math.inf
    chunks: dict[int, list[bytes]] = {6: [], 7: []}  # bucket_limit, bucket
    for item in fields(data):
        if item.id in chunks and item.wire in {BYTES, FIXED64}:  # packed, or one by one
            chunks[item.id].append(item.data)
            continue
        match item.id:
            case 1:  # min
                low = double(item)
            case 2:  # max
                high = double(item)
    limits, counts = map(_doubles, chunks.values())
    if not len(counts) or len(limits) != len(counts):
        return None
    if limits[-1] >= sys.float_info.max:  # TensorFlow's last limit: no limit
        lower = limits[-2] if len(limits) > 1 else low
        limits[-1] = high if high >= lower else math.inf
    if counts[0] == 0 and len(counts) > 1:
        return Histogram(step, time, limits, counts[1:])
    first = low if low <= limits[0] else -math.inf
    return Histogram(step, time, np.concatenate(([first], limits)), counts)


def of_tensor(data: bytes, step: int, time: float) -> Histogram | None:
    """Return the histogram of a tensor [buckets, 3]: left, right, count (TensorFlow 2)."""
    buckets = matrix_of(data)
    if buckets is None or buckets.shape[1] != 3 or not len(buckets):
        return None
    edges = np.append(buckets[:, 0], buckets[-1, 1])
    return Histogram(step, time, edges, buckets[:, 2].copy())


def _doubles(chunks: list[bytes]) -> NDArray[np.float64]:
    data = b"".join(chunks)
    if len(data) % 8:
        raise Malformed
    return np.frombuffer(data, "<f8").astype(np.float64)
