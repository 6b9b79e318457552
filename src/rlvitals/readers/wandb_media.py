"""What W&B logs beside numbers: objects with a `_type`.

Source: `wandb/sdk/data_types/histogram.py`: `bins` (edges) and `values` (counts), or
`packedBins` {min, size, count} in place of the edges.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.columns import json_number

HISTOGRAM = "histogram"
MAX_BINS = 2**16


def media_kind(value: object) -> str:
    """Return the kind of a media object, "" for anything else."""
    kind = value.get("_type") if isinstance(value, Mapping) else None
    return kind[:40] if isinstance(kind, str) else ""


def histogram(value: object) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return a histogram's edges [n + 1] and counts [n]; None for what is none."""
    if not isinstance(value, Mapping) or media_kind(value) != HISTOGRAM:
        return None
    counts = _numbers(value.get("values"))
    edges = _numbers(value.get("bins"))
    packed = value.get("packedBins")
    if edges is None and counts is not None and isinstance(packed, Mapping):
        low, width = json_number(packed.get("min")), json_number(packed.get("size"))
        if low is not None and width is not None:
            edges = low + width * np.arange(len(counts) + 1)
    if edges is None or counts is None or len(edges) != len(counts) + 1 or not len(counts):
        return None
    return (edges, counts) if (np.diff(edges) >= 0).all() else None


def _numbers(value: object) -> NDArray[np.float64] | None:
    if not isinstance(value, list) or len(value) > MAX_BINS:
        return None
    numbers = [json_number(item) for item in value]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, np.float64)
