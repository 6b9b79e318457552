"""W&B's history rows: many of them walked side by side, values in columns.

A row is a HistoryRecord: items {1 key, 2 nested_key*, 16 value_json} and step {1 num}
(`wandb_internal.proto`). The items of a row stand in any order. `side_by_side` steps through all
rows at once, one item of each at a time, and takes a row only where every byte of it is
accounted for; `one_by_one` reads the rest, and all of them where something else is odd.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats import digits
from rlvitals.readers.formats.columns import NAN, json_number
from rlvitals.readers.formats.protobuf import BYTES, Malformed, fields, signed

ITEM, STEP = 1, 2  # HistoryRecord
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16  # HistoryItem
ITEM_TAG, STEP_TAG = 0x0A, 0x12
KEY_TAGS = (0x0A, 0x12)
VALUE_TAG = 0x182  # the bytes 82 01, little endian
CONTINUED = 0x80  # the bit of a length that goes on in the next byte
MAX_NESTED = 16
FEW = 24  # rows that are read faster one by one
ALONE = 4  # the same of rows that go on where all others have ended
MAX_KEY = 256  # bytes
WORD = 8  # bytes
NUMBER_WORDS = 3  # a float's longest JSON has 24 characters
PAD = bytes(2 * MAX_KEY)  # before and behind: eight bytes are looked at where one is meant
MAX_CELLS = 2**23  # keys times rows that are held as one table
# A word with its first n bytes kept, the rest 0 or blank.
KEPT = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], np.uint64)
BLANK = np.array(
    [int.from_bytes(bytes(n) + b" " * (WORD - n), "little") for n in range(WORD + 1)], np.uint64
)
COMMA = np.uint64(int.from_bytes(b"       ,", "little"))
MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / the golden ratio, odd
STARTS_NUMBER = np.zeros(256, bool)
STARTS_NUMBER[list(b"-0123456789NI")] = True  # NaN and Infinity too

Index = NDArray[np.int64]


@dataclass(slots=True)
class Rows:
    """What some rows hold: numbers in columns, everything else as it is."""

    count: int
    numbers: dict[str, tuple[Index, NDArray[np.float64]]] = field(default_factory=dict)
    others: list[tuple[int, str, object]] = field(default_factory=list)  # row, key, JSON value
    malformed: int = 0  # values that are no JSON


@dataclass(slots=True)
class _Items:
    """Where the items of the rows lie in a buffer; all int64 [n]."""

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
    rows = side_by_side(payloads) if len(payloads) >= FEW else None
    return one_by_one(payloads) if rows is None else rows


# ------------------------------------------------------------------------- the plain way


def one_by_one(payloads: Sequence[bytes], which: Sequence[int] | None = None) -> Rows:
    """Read rows item by item; `which` are their numbers, all of them without it."""
    rows = Rows(len(payloads))
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for row in range(len(payloads)) if which is None else which:
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
    for part in fields(payload):
        if part.id == ITEM and part.wire == BYTES:
            raw = key_and_value(part.data)
            try:
                name, value = raw[0], json.loads(raw[1])
            except (ValueError, RecursionError):
                bad = 1
                continue
            items.pop(name, None)
            items[name] = value
        elif part.id == STEP and part.wire == BYTES:
            step = next((signed(f.number) for f in fields(part.data) if f.id == 1), 0)
    if step is not None:
        items.setdefault("_step", step)
    return items, bad


def key_and_value(item: bytes) -> tuple[str, bytes]:
    """Return the name and the JSON of an item. Raises Malformed.

    Nested keys are joined by ".", as W&B shows them.
    """
    key, nested, value = b"", [], b""
    for part in fields(item):
        if part.id == KEY:
            key = part.data
        elif part.id == NESTED_KEY:
            nested.append(part.data)
        elif part.id == VALUE_JSON:
            value = part.data
    return (key or b".".join(nested)).decode(errors="replace"), value


# ---------------------------------------------------------------------- many rows at once


def side_by_side(payloads: Sequence[bytes]) -> Rows | None:
    """Read rows all at once; None where that cannot be shown to be what they say."""
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    ends = np.cumsum(sizes)
    ends += len(PAD)
    text = b"".join((PAD, *payloads, PAD))
    items, odd = _walk(np.frombuffer(text, np.uint8), ends - sizes, ends)
    if odd.any():
        items = items.where(~odd[items.row])
    keys = _keys(text, items) if len(items.row) else (np.zeros(0, np.int64), [])
    if keys is None:
        return None
    key, names = keys
    cells = len(names) * len(payloads)
    if len(set(names)) < len(names) or cells > MAX_CELLS:
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
    return rows if not len(strange) else _merged(rows, one_by_one(payloads, strange.tolist()))


def _walk(data: NDArray[np.uint8], starts: Index, ends: Index) -> tuple[_Items, NDArray[np.bool_]]:
    """Find the items of rows. bool [rows]: those that hold something else than expected."""
    odd = np.zeros(len(starts), bool)
    row, at, end = np.arange(len(starts)), starts, ends
    found: list[_Items] = []
    while True:
        going = at < end
        if not going.all():
            row, at, end = row[going], at[going], end[going]
        if len(row) < ALONE:  # rows far longer than all others
            odd[row] = True
            break
        tag, size = data[at], data[at + 1]
        if (steps := (tag == STEP_TAG) & (size < CONTINUED)).any():
            at = np.where(steps, at + 2 + size, at)
            odd[row[at > end]] = True
            rest = ~steps
            items, after = _items(data, row[rest], at[rest], end[rest], odd)
            at = at.copy()
            at[rest] = after
        else:
            items, at = _items(data, row, at, end, odd)
        found.append(items)
    return _chained(found), odd


def _items(
    data: NDArray[np.uint8],
    row: Index,
    at: Index,
    end: Index,
    odd: NDArray[np.bool_],
) -> tuple[_Items, Index]:
    """Read one item of each row; those that are none are marked in `odd`, and at their end."""
    key, size = _length(data, at + 1)
    after = key + size
    good = (data[at] == ITEM_TAG) & (size >= 0) & (after <= end)
    value = np.where(good, key, 0)
    for _ in range(MAX_NESTED):
        tag, length = data[value], data[value + 1]
        keyed = good & ((tag == KEY_TAGS[0]) | (tag == KEY_TAGS[1]))
        if not keyed.any():
            break
        good &= ~keyed | (length < CONTINUED)
        value = np.where(keyed & good, value + 2 + length, value)
        good &= value <= after
        value = np.where(good, value, 0)
    tags = data[value].astype(np.int64) | data[value + 1].astype(np.int64) << 8
    begin, size = _length(data, value + 2)
    good &= (tags == VALUE_TAG) & (size > 0) & (begin + size == after) & (value > key)
    if good.all():
        return _Items(row, key, value, begin, after), after
    odd[row[~good]] = True
    found = _Items(row, key, value, begin, after).where(good)
    return found, np.where(good, after, end)


def _length(data: NDArray[np.uint8], at: Index) -> tuple[Index, Index]:
    """Read a varint of one or two bytes: where it ends, and what it says; -1 for a longer one."""
    low = data[at].astype(np.int64)
    long = low >= CONTINUED
    if not long.any():
        return at + 1, low
    high = data[at + 1].astype(np.int64)
    both = np.where(high < CONTINUED, (low & 127) | high << 7, -1)
    return at + 1 + long, np.where(long, both, low)


def _chained(found: Sequence[_Items]) -> _Items:
    none = np.zeros(0, np.int64)
    return _Items(
        np.concatenate([none, *(items.row for items in found)]),
        np.concatenate([none, *(items.key for items in found)]),
        np.concatenate([none, *(items.key_end for items in found)]),
        np.concatenate([none, *(items.value for items in found)]),
        np.concatenate([none, *(items.value_end for items in found)]),
    )


def _words(text: bytes) -> NDArray[np.uint64]:
    """Return the eight bytes from each place of a text on, as a view."""
    return np.ndarray((len(text) - WORD + 1,), np.dtype("<u8"), text, strides=(1,))


def _keys(text: bytes, items: _Items) -> tuple[Index, list[str]] | None:
    """Return each item's key as a number, and what those are called; None where unsure."""
    size = items.key_end - items.key
    if int(size.max()) > MAX_KEY:
        return None
    words = _words(text)
    parts = []
    mixed = size.astype(np.uint64)
    for first in range(0, int(size.max()), WORD):
        part = words[items.key + first] & KEPT[np.clip(size - first, 0, WORD)]
        parts.append(part)
        mixed = (mixed ^ part) * MIXER
        mixed ^= mixed >> np.uint64(29)
    slot = (mixed >> np.uint64(48)).astype(np.int64)
    table = np.full(2**16, -1)
    table[slot] = np.arange(len(slot))
    same = table[slot]  # of each item, one item that should have the same key
    equal = size == size[same]
    for part in parts:
        equal &= part == part[same]
    if not equal.all():
        return None
    chosen = np.flatnonzero(table >= 0)
    number = np.full(2**16, -1)
    number[chosen] = np.arange(len(chosen))
    spans = zip(items.key[table[chosen]], items.key_end[table[chosen]], strict=True)
    return number[slot], [key_and_value(text[int(a) : int(b)])[0] for a, b in spans]


def _values(text: bytes, items: _Items, key: Index, names: Sequence[str], rows: Rows) -> bool:
    """Put the values into `rows`; False where they cannot be told apart for sure."""
    size = items.value_end - items.value
    first = np.frombuffer(text, np.uint8)[items.value]
    plain = STARTS_NUMBER[first] & (size <= NUMBER_WORDS * WORD)
    chosen = np.flatnonzero(plain)
    numbers = _numbers(text, items.value[chosen], size[chosen])
    if numbers is None:
        return False
    table = np.full((len(names), rows.count), NAN)
    has = np.zeros(table.shape, bool)
    table[key[chosen], items.row[chosen]] = numbers
    has[key[chosen], items.row[chosen]] = True
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
        where = np.flatnonzero(has[number])
        if len(where):
            rows.numbers[name] = (where, table[number, where])
    rows.others.sort(key=lambda other: other[0])
    return True


def _numbers(text: bytes, at: Index, size: Index) -> NDArray[np.float64] | None:
    """Read JSON numbers of up to 24 characters at many places; None where one is none."""
    words = _words(text)
    values, good = digits.parse(words, at, size)
    rest = np.flatnonzero(~good)
    found = _numbers_of_json(words, at[rest], size[rest])
    if found is None:
        return None
    values[rest] = found
    return values


def _numbers_of_json(
    words: NDArray[np.uint64], at: Index, size: Index
) -> NDArray[np.float64] | None:
    """Pad each number with blanks, a comma after it, and read all of them as one array."""
    cells = np.empty((len(at), NUMBER_WORDS + 1), np.uint64)
    for word in range(NUMBER_WORDS):
        held = np.clip(size - WORD * word, 0, WORD)
        cells[:, word] = (words[at + WORD * word] & KEPT[held]) | BLANK[held]
    cells[:, NUMBER_WORDS] = COMMA
    joined = cells.tobytes()
    if joined.count(b",") != len(at):
        return None
    try:
        return np.array(json.loads(b"[" + joined[:-1] + b"]"), np.float64)
    except (ValueError, OverflowError):
        return None


def _merged(rows: Rows, more: Rows) -> Rows:
    """Put two readings of different rows together, in the rows' order."""
    numbers = dict(rows.numbers)
    for key, column in more.numbers.items():
        if key not in numbers:
            numbers[key] = column
            continue
        where = np.concatenate([numbers[key][0], column[0]])
        order = np.argsort(where, kind="stable")
        numbers[key] = where[order], np.concatenate([numbers[key][1], column[1]])[order]
    others = sorted([*rows.others, *more.others], key=lambda other: other[0])
    return Rows(rows.count, numbers, others, rows.malformed + more.malformed)
