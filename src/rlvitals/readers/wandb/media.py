"""Parse W&B's media objects, which have a `_type`.

Source: `wandb/sdk/data_types/histogram.py`: `bins` (edges) and `values` (counts), or
`packedBins` {min, size, count} in place of the edges. New files hold such an object member by
member, as nested keys: its numbers are no metrics.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats.columns import json_number
from rlvitals.readers.wandb.rows import MAX_NESTED_KEYS, Rows


def take_media(rows: Rows) -> list[tuple[int, str, Mapping[str, object]]]:
    """Take the media objects out of some rows: (row, key, object), in the rows' order."""
    complete = [(r, k, v) for r, k, v in rows.others if isinstance(v, Mapping) and media_kind(v)]
    members: dict[tuple[int, str], dict[str, object]] = defaultdict(dict)
    homes: dict[str, set[int]] = defaultdict(set)  # the rows in which a key is an object
    for row, key, value in rows.others:
        if key.endswith("._type") and isinstance(value, str):
            homes[key.removesuffix("._type")].add(row)
    if not homes:
        return complete
    for row, key, value in rows.others:
        for home in (h for h in _above(key) if row in homes.get(h, ())):
            members[row, home][key.removeprefix(f"{home}.")] = value
    for key in list(rows.numbers):
        for home in (h for h in _above(key) if h in homes):
            row_numbers, values = rows.numbers[key]
            inside = np.isin(row_numbers, list(homes[home]))
            for row, value in zip(
                row_numbers[inside].tolist(), values[inside].tolist(), strict=True
            ):
                members[row, home][key.removeprefix(f"{home}.")] = value
            rows.numbers[key] = row_numbers[~inside], values[~inside]
    nested = [(row, key, value) for (row, key), value in members.items()]
    return sorted([*complete, *nested], key=lambda media: media[0])


def _above(key: str) -> list[str]:
    """Return the keys that a nested key is inside of: "a" and "a.b" for "a.b.c"."""
    segments = key.split(".")[:MAX_NESTED_KEYS]
    return [".".join(segments[:count]) for count in range(1, len(segments))]


def media_kind(value: object) -> str:
    """Return the kind of a media object, "" for anything else."""
    kind = value.get("_type") if isinstance(value, Mapping) else None
    return kind[:40] if isinstance(kind, str) else ""


def histogram(value: object) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return a histogram's edges [n + 1] and counts [n]; None for what is none."""
    if not isinstance(value, Mapping) or media_kind(value) != "histogram":
        return None
    counts = _numbers(value.get("values"))
    edges = _numbers(value.get("bins"))
    if edges is None and counts is not None:
        packed = value.get("packedBins")
        packed = packed if isinstance(packed, Mapping) else {}
        low = json_number(packed.get("min", value.get("packedBins.min")))
        width = json_number(packed.get("size", value.get("packedBins.size")))
        if low is not None and width is not None:
            edges = np.asarray(low + width * np.arange(len(counts) + 1), np.float64)
    if edges is None or counts is None or len(edges) != len(counts) + 1 or not len(counts):
        return None
    return (edges, counts) if (np.diff(edges) >= 0).all() else None


def _numbers(value: object) -> NDArray[np.float64] | None:
    if not isinstance(value, list) or len(value) > 2**16:
        return None
    numbers = [json_number(item) for item in value]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, np.float64)
