"""Histograms in the two forms that their writers use.

Field numbers: TensorFlow `summary.proto`; TensorBoard `plugins/histogram/summary_v2.py`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.tensors import matrix_of
from rlvitals.readers.formats.protobuf import BYTES, FIXED64, Malformed, double, fields
from rlvitals.types import Histogram

# HistogramProto
MIN, MAX, LIMITS, COUNTS = 1, 2, 6, 7
BIGGEST = float(np.finfo(np.float64).max)  # TensorFlow's last limit: no limit


def of_proto(data: bytes, step: int, time: float) -> Histogram | None:
    """Return the histogram of a HistogramProto (torch, tensorboardX, TensorFlow 1).

    Its buckets have upper limits only; the first one's lower limit is the least value. A first
    bucket that is empty only says where the second begins. None where it has no bucket.
    """
    least, most = -math.inf, math.inf
    parts: dict[int, list[bytes]] = {LIMITS: [], COUNTS: []}
    for part in fields(data):
        if part.id in parts and part.wire in {BYTES, FIXED64}:  # packed, or one by one
            parts[part.id].append(part.data)
        elif part.id == MIN:
            least = double(part)
        elif part.id == MAX:
            most = double(part)
    limits, counts = _doubles(parts[LIMITS]), _doubles(parts[COUNTS])
    if not len(counts) or len(limits) != len(counts):
        return None
    if limits[-1] >= BIGGEST:
        lower = limits[-2] if len(limits) > 1 else least
        limits[-1] = most if most >= lower else math.inf
    if counts[0] == 0 and len(counts) > 1:
        return Histogram(step, time, limits, counts[1:])
    first = least if least <= limits[0] else -math.inf
    return Histogram(step, time, np.concatenate(([first], limits)), counts)


def of_tensor(data: bytes, step: int, time: float) -> Histogram | None:
    """Return the histogram of a tensor [buckets, 3]: left, right, count (TensorFlow 2)."""
    buckets = matrix_of(data)
    if buckets is None or buckets.shape[1] != 3 or not len(buckets):  # noqa: PLR2004
        return None
    edges = np.append(buckets[:, 0], buckets[-1, 1])
    return Histogram(step, time, edges, buckets[:, 2].copy())


def _doubles(parts: list[bytes]) -> NDArray[np.float64]:
    data = b"".join(parts)
    if len(data) % 8:
        raise Malformed
    return np.frombuffer(data, "<f8").astype(np.float64)
