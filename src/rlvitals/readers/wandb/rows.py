"""Parse W&B's history rows, vectorised over rows.

A row is a HistoryRecord: items {1 key, 2 nested_key*, 16 value_json} and step {1 num}
(`wandb_internal.proto`). The items of a row stand in any order. `side_by_side` steps through all
rows at once, one item of each at a time, and takes a row only where every byte of it is
accounted for; `one_by_one` reads the rest, and all of them where something else is odd.
"""

import json
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats import digits
from rlvitals.readers.formats.columns import NAN, json_number
from rlvitals.readers.formats.protobuf import (
    BYTES,
    VARINT_CONTINUATION,
    Malformed,
    fields,
    to_signed,
)
from rlvitals.startup.fast_dataclass import dataclass

KEY_TAGS = (0x0A, 0x12)
MAX_NESTED_KEYS = 16
MAX_ITEM_KEY_BYTES = 256  # bytes
UINT64_BYTES = 8  # bytes
NUMBER_WORDS = 3  # a float's longest JSON has 24 characters
ROW_PADDING = bytes(
    2 * MAX_ITEM_KEY_BYTES
)  # before and behind: eight bytes are looked at where one is meant
# A word with its first n bytes kept, the rest 0 or blank.
PREFIX_MASKS = np.array([(1 << 8 * n) - 1 for n in range(UINT64_BYTES + 1)], np.uint64)
BLANK_SUFFIXES = np.array(
    [
        int.from_bytes(bytes(n) + b" " * (UINT64_BYTES - n), "little")
        for n in range(UINT64_BYTES + 1)
    ],
    np.uint64,
)
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / the golden ratio, odd
IS_NUMBER_START = np.zeros(256, bool)
IS_NUMBER_START[list(b"-0123456789NI")] = True  # NaN and Infinity too

Index = NDArray[np.int64]


@dataclass(slots=True)
class Rows:
    """Values of some rows: numbers in columns, other values as objects."""

    count: int
    numbers: dict[str, tuple[Index, NDArray[np.float64]]] = field(default_factory=dict)
    others: list[tuple[int, str, object]] = field(default_factory=list)  # row, key, JSON value
    malformed: int = 0  # values that are no JSON


@dataclass(slots=True)
class _Items:
    """Byte offsets of the items of the rows in a buffer; all int64 [n]."""

    row: Index
    key: Index
    key_end: Index
    value: Index
    value_end: Index

    def where(self, mask: NDArray[np.bool_] | Index) -> "_Items":
        return _Items(
            self.row[mask],
            self.key[mask],
            self.key_end[mask],
            self.value[mask],
            self.value_end[mask],
        )


def parse(payloads: Sequence[bytes]) -> Rows:
    """Return what rows hold. A key twice in a row counts once, its last value."""
    # Fewer are read faster one by one.
    rows = parse_vectorized(payloads) if len(payloads) >= 24 else None
    return parse_each(payloads) if rows is None else rows


# ------------------------------------------------------------------------- the plain way


def parse_each(payloads: Sequence[bytes], row_numbers: Sequence[int] | None = None) -> Rows:
    """Read rows item by item; `which` are their numbers, all of them without it."""
    rows = Rows(len(payloads))
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for row in range(len(payloads)) if row_numbers is None else row_numbers:
        try:
            items, bad = _row(payloads[row])
        except Malformed:
            continue  # it has no step then, and is counted as such
        rows.malformed += bad
        for key, value in items.items():
            number = json_number(value)
            if number is None:
                rows.others.append((row, key, value))
                continue
            column = columns.setdefault(key, ([], []))
            column[0].append(row)
            column[1].append(number)
    rows.numbers = {key: (np.array(r, np.int64), np.array(v)) for key, (r, v) in columns.items()}
    return rows


def _row(payload: bytes) -> tuple[dict[str, object], int]:
    items: dict[str, object] = {}
    bad = 0
    step = None
    for record_field in fields(payload):
        if record_field.wire != BYTES:
            continue
        match record_field.id:
            case 1:  # item
                raw = key_and_value(record_field.data)
                try:
                    name, value = raw[0], json.loads(raw[1])
                except (ValueError, RecursionError):
                    bad = 1
                    continue
                items.pop(name, None)
                items[name] = value
            case 2:  # step, its num
                numbers = (to_signed(f.number) for f in fields(record_field.data) if f.id == 1)
                step = next(numbers, 0)
    if step is not None:
        items.setdefault("_step", step)
    return items, bad


def key_and_value(item: bytes) -> tuple[str, bytes]:
    """Return the name and the JSON of an item. Raises Malformed.

    Nested keys are joined by ".", as W&B shows them.
    """
    key, nested, value = b"", [], b""
    for item_field in fields(item):
        match item_field.id:
            case 1:  # key
                key = item_field.data
            case 2:  # nested_key
                nested.append(item_field.data)
            case 16:  # value_json
                value = item_field.data
    return (key or b".".join(nested)).decode(errors="replace"), value


# ---------------------------------------------------------------------- many rows at once


def parse_vectorized(payloads: Sequence[bytes]) -> Rows | None:
    """Read rows all at once; None where that cannot be shown to be what they say."""
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    ends = np.cumsum(sizes)
    ends += len(ROW_PADDING)
    text = b"".join((ROW_PADDING, *payloads, ROW_PADDING))
    items, odd = _walk(np.frombuffer(text, np.uint8), ends - sizes, ends)
    if odd.any():
        items = items.where(~odd[items.row])
    keys = _keys(text, items) if len(items.row) else (np.zeros(0, np.int64), [])
    if keys is None:
        return None
    key, names = keys
    cells = len(names) * len(payloads)
    if len(set(names)) < len(names) or cells > 2**23:
        return None
    has = np.zeros((len(names), len(payloads)), bool)
    has[key, items.row] = True
    if int(has.sum()) < len(key):  # a key twice in a row
        return None
    stepped = has[names.index("_step")] if "_step" in names else np.zeros(len(payloads), bool)
    if not (stepped | odd).all():  # a row that says its step otherwise
        return None
    rows = Rows(len(payloads))
    if not _values(text, items, key, names, rows):
        return None
    strange = np.flatnonzero(odd)
    return rows if not len(strange) else _merge_rows(rows, parse_each(payloads, strange.tolist()))


def _walk(data: NDArray[np.uint8], starts: Index, ends: Index) -> tuple[_Items, NDArray[np.bool_]]:
    """Find the items of rows. bool [rows]: those that hold something else than expected."""
    odd = np.zeros(len(starts), bool)
    row, offset, end = np.arange(len(starts)), starts, ends
    batches: list[_Items] = []
    while True:
        is_active = offset < end
        if not is_active.all():
            row, offset, end = row[is_active], offset[is_active], end[is_active]
        if len(row) < 4:  # rows far longer than all others
            odd[row] = True
            break
        tag, size = data[offset], data[offset + 1]
        # A step, whose tag is 0x12, or an item, whose tag is 0x0A.
        if (steps := (tag == 0x12) & (size < VARINT_CONTINUATION)).any():
            offset = np.where(steps, offset + 2 + size, offset)
            odd[row[offset > end]] = True
            has_item = ~steps
            items, after = _items(data, row[has_item], offset[has_item], end[has_item], odd)
            offset = offset.copy()
            offset[has_item] = after
        else:
            items, offset = _items(data, row, offset, end, odd)
        batches.append(items)
    none = np.zeros(0, np.int64)
    return _Items(
        np.concatenate([none, *(items.row for items in batches)]),
        np.concatenate([none, *(items.key for items in batches)]),
        np.concatenate([none, *(items.key_end for items in batches)]),
        np.concatenate([none, *(items.value for items in batches)]),
        np.concatenate([none, *(items.value_end for items in batches)]),
    ), odd


def _items(
    data: NDArray[np.uint8],
    row: Index,
    offset: Index,
    end: Index,
    odd: NDArray[np.bool_],
) -> tuple[_Items, Index]:
    """Read one item of each row; those that are none are marked in `odd`, and at their end."""
    key, size = _length(data, offset + 1)
    after = key + size
    good = (data[offset] == 0x0A) & (size >= 0) & (after <= end)
    value = np.where(good, key, 0)
    for _ in range(MAX_NESTED_KEYS):
        tag, length = data[value], data[value + 1]
        keyed = good & ((tag == KEY_TAGS[0]) | (tag == KEY_TAGS[1]))
        if not keyed.any():
            break
        good &= ~keyed | (length < VARINT_CONTINUATION)
        value = np.where(keyed & good, value + 2 + length, value)
        good &= value <= after
        value = np.where(good, value, 0)
    tags = data[value].astype(np.int64) | data[value + 1].astype(np.int64) << 8
    begin, size = _length(data, value + 2)
    # The bytes 82 01, little endian.
    good &= (tags == 0x182) & (size > 0) & (begin + size == after) & (value > key)
    if good.all():
        return _Items(row, key, value, begin, after), after
    odd[row[~good]] = True
    items = _Items(row, key, value, begin, after).where(good)
    return items, np.where(good, after, end)


def _length(data: NDArray[np.uint8], offset: Index) -> tuple[Index, Index]:
    """Read a varint of one or two bytes: where it ends, and what it says; -1 for a longer one."""
    low = data[offset].astype(np.int64)
    long = low >= VARINT_CONTINUATION
    if not long.any():
        return offset + 1, low
    high = data[offset + 1].astype(np.int64)
    two_bytes = np.where(high < VARINT_CONTINUATION, (low & 127) | high << 7, -1)
    return offset + 1 + long, np.where(long, two_bytes, low)


def _view_words(text: bytes) -> NDArray[np.uint64]:
    """Return the eight bytes from each place of a text on, as a view."""
    return np.ndarray((len(text) - UINT64_BYTES + 1,), np.dtype("<u8"), text, strides=(1,))


def _keys(text: bytes, items: _Items) -> tuple[Index, list[str]] | None:
    """Return each item's key as a number, and what those are called; None where unsure."""
    size = items.key_end - items.key
    if int(size.max()) > MAX_ITEM_KEY_BYTES:
        return None
    view = _view_words(text)
    chunks = []
    mixed = size.astype(np.uint64)
    for first in range(0, int(size.max()), UINT64_BYTES):
        chunk = view[items.key + first] & PREFIX_MASKS[np.clip(size - first, 0, UINT64_BYTES)]
        chunks.append(chunk)
        mixed = (mixed ^ chunk) * HASH_MULTIPLIER
        mixed ^= mixed >> np.uint64(29)
    slot = (mixed >> np.uint64(48)).astype(np.int64)
    table = np.full(2**16, -1)
    table[slot] = np.arange(len(slot))
    representative = table[slot]  # of each item, one item that should have the same key
    equal = size == size[representative]
    for chunk in chunks:
        equal &= chunk == chunk[representative]
    if not equal.all():
        return None
    slots = np.flatnonzero(table >= 0)
    number = np.full(2**16, -1)
    number[slots] = np.arange(len(slots))
    spans = zip(items.key[table[slots]], items.key_end[table[slots]], strict=True)
    return number[slot], [key_and_value(text[int(a) : int(b)])[0] for a, b in spans]


def _values(text: bytes, items: _Items, key: Index, names: Sequence[str], rows: Rows) -> bool:
    """Put the values into `rows`; False if they are ambiguous."""
    size = items.value_end - items.value
    first = np.frombuffer(text, np.uint8)[items.value]
    plain = IS_NUMBER_START[first] & (size <= NUMBER_WORDS * UINT64_BYTES)
    plain_items = np.flatnonzero(plain)
    numbers = _numbers(text, items.value[plain_items], size[plain_items])
    if numbers is None:
        return False
    table = np.full((len(names), rows.count), NAN)
    has = np.zeros(table.shape, bool)
    table[key[plain_items], items.row[plain_items]] = numbers
    has[key[plain_items], items.row[plain_items]] = True
    for item in np.flatnonzero(~plain).tolist():
        row, number = int(items.row[item]), int(key[item])
        try:
            value = json.loads(text[int(items.value[item]) : int(items.value_end[item])])
        except (ValueError, RecursionError):
            return False
        point = json_number(value)
        if point is None:
            rows.others.append((row, names[number], value))
        else:
            table[number, row], has[number, row] = point, True
    for number, name in enumerate(names):
        row_numbers = np.flatnonzero(has[number])
        if len(row_numbers):
            rows.numbers[name] = (row_numbers, table[number, row_numbers])
    rows.others.sort(key=lambda item: item[0])
    return True


def _numbers(text: bytes, starts: Index, size: Index) -> NDArray[np.float64] | None:
    """Read JSON numbers of up to 24 characters at many places; None where one is none."""
    view = _view_words(text)
    values, good = digits.parse(view, starts, size)
    unread = np.flatnonzero(~good)
    numbers = _numbers_of_json(view, starts[unread], size[unread])
    if numbers is None:
        return None
    values[unread] = numbers
    return values


def _numbers_of_json(
    view: NDArray[np.uint64], starts: Index, size: Index
) -> NDArray[np.float64] | None:
    """Pad each number with blanks, a comma after it, and read all of them as one array."""
    cells = np.empty((len(starts), NUMBER_WORDS + 1), np.uint64)
    for index in range(NUMBER_WORDS):
        length = np.clip(size - UINT64_BYTES * index, 0, UINT64_BYTES)
        cells[:, index] = (
            view[starts + UINT64_BYTES * index] & PREFIX_MASKS[length]
        ) | BLANK_SUFFIXES[length]
    cells[:, NUMBER_WORDS] = np.uint64(int.from_bytes(b"       ,", "little"))
    joined = cells.tobytes()
    if joined.count(b",") != len(starts):
        return None
    try:
        return np.array(json.loads(b"[" + joined[:-1] + b"]"), np.float64)
    except (ValueError, OverflowError):
        return None


def _merge_rows(rows: Rows, more: Rows) -> Rows:
    """Put two readings of different rows together, in the rows' order."""
    numbers = dict(rows.numbers)
    for key, column in more.numbers.items():
        if key not in numbers:
            numbers[key] = column
            continue
        row_numbers = np.concatenate([numbers[key][0], column[0]])
        order = np.argsort(row_numbers, kind="stable")
        numbers[key] = row_numbers[order], np.concatenate([numbers[key][1], column[1]])[order]
    objects = sorted([*rows.others, *more.others], key=lambda item: item[0])
    return Rows(rows.count, numbers, objects, rows.malformed + more.malformed)
