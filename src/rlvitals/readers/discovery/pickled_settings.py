"""Read the plain fields of Hugging Face's `training_args.bin` without unpickling it.

`torch.save` writes a zip with `<name>/data.pkl`, in which the arguments' `__dict__` stands as
keys and values. Its opcodes are walked with a stack of our own that knows text, numbers, truth
values and containers; whatever else the pickle makes or calls is a blank, and nothing is imported
or called. Sources: `pickletools`, `torch/serialization.py`.
"""

import io
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final

MAX_PICKLE_BYTES = 2**20  # of the pickle
MAX_TORCH_FILE_BYTES = 16 * 2**20
NOT_PLAIN: Final = object()  # what is not plain: a class, an instance, a tensor
STACK_MARK: Final = object()


class DoubtError(ValueError):
    """Not the pickle of an object with plain fields, as far as we can tell."""


# What `zipfile` raises on damage.
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, NotImplementedError),
    *(RuntimeError, ValueError, LookupError, OverflowError),
)


def fields(file: BinaryIO) -> dict[str, object]:
    """Return the plain fields of the object that `torch.save` wrote. Raises DoubtError."""
    data = file.read(MAX_TORCH_FILE_BYTES + 1)
    if len(data) > MAX_TORCH_FILE_BYTES:
        raise DoubtError("too long")
    try:
        pickled = _read_pickle(data)
    except ZIP_ERRORS as error:
        raise DoubtError("not a file of torch.save") from error
    if pickled is None:
        raise DoubtError("no pickle of settings in it")
    return _Stack().state(pickled)


def _read_pickle(data: bytes) -> bytes | None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1 or archive.getinfo(names[0]).file_size > MAX_PICKLE_BYTES:
            return None
        with archive.open(names[0]) as member:
            return member.read(MAX_PICKLE_BYTES)


class _Stack:
    """Stack of the opcodes' results, with blanks for what is not plain."""

    def __init__(self) -> None:
        self._items: list[object] = []
        self._memo: dict[int, object] = {}
        self._state: object = None  # of the last object whose fields were set

    def state(self, pickled: bytes) -> dict[str, object]:
        """Walk the opcodes; return the fields of the object they end with."""
        try:
            for count, (op, arg, _) in enumerate(pickletools.genops(pickled)):
                if count > 200_000:
                    raise DoubtError("too many opcodes")
                if op.name == "STOP":
                    break
                self._take(op.name, arg)
        except (ValueError, IndexError, KeyError, TypeError, RecursionError) as error:
            raise DoubtError("not a pickle") from error
        state = self._state[0] if isinstance(self._state, tuple) and self._state else self._state
        if not isinstance(state, dict) or self._items != [NOT_PLAIN]:
            raise DoubtError("not an object with fields")
        return {
            key: value
            for key, value in state.items()
            if isinstance(key, str) and isinstance(value, bool | int | float | str)
        }

    def _take(self, name: str, arg: object) -> None:
        if name in VALUE_OPCODES:
            self._items.append(VALUE_OPCODES[name](arg))
        elif name in BLANK_OPCODES:
            del self._items[len(self._items) - BLANK_OPCODES[name] :]
            self._items.append(NOT_PLAIN)
        elif name in TUPLE_OPCODES:
            size = TUPLE_OPCODES[name]
            items = tuple(self._items[len(self._items) - size :])
            del self._items[len(self._items) - size :]
            self._items.append(items)
        elif name in {"BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"}:
            key = len(self._memo) if name == "MEMOIZE" else int(str(arg))
            self._memo[key] = self._items[-1]
        elif name in {"BINGET", "LONG_BINGET", "GET"}:
            self._items.append(self._memo[int(str(arg))])
        elif name not in {"PROTO", "FRAME"}:
            self._contain(name)

    def _contain(self, name: str) -> None:
        """Fill a container, or set an object's fields."""
        match name:
            case "TUPLE" | "LIST" | "DICT" | "FROZENSET":
                items = self._pop_to_mark()
                self._items.append(tuple(items) if name == "TUPLE" else NOT_PLAIN)
            case "SETITEM":
                key, value = self._items.pop(-2), self._items.pop()
                self._set([key, value])
            case "SETITEMS":
                self._set(self._pop_to_mark())
            case "APPEND" | "POP":
                self._items.pop()
            case "APPENDS" | "ADDITEMS" | "POP_MARK":
                self._pop_to_mark()
            case "BUILD":
                self._state = self._items.pop()
            case _:
                raise DoubtError(f"an opcode that settings do not need: {name}")

    def _pop_to_mark(self) -> list[object]:
        """Take what stands above the last mark, and the mark."""
        mark = max(index for index, item in enumerate(self._items) if item is STACK_MARK)
        items = self._items[mark + 1 :]
        del self._items[mark:]
        return items

    def _set(self, pairs: list[object]) -> None:
        container = self._items[-1]
        if isinstance(container, dict):
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                if isinstance(key, str):
                    container[key] = value


def _identity(arg: object) -> object:
    return arg


def _blank(_: object) -> object:
    return NOT_PLAIN


# Opcodes that push one thing.
VALUE_OPCODES: dict[str, Callable[[object], object]] = {
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"), _identity),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "INT", "LONG1", "LONG4", "LONG"), _identity),
    **dict.fromkeys(("BINFLOAT", "FLOAT"), _identity),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "MARK": lambda _: STACK_MARK,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_TUPLE": lambda _: (),
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_SET", "GLOBAL", "PERSID"), _blank),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), _blank),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING", "STRING"), _blank),
}
# Opcodes that take so many things and leave one that is not plain.
BLANK_OPCODES = {"STACK_GLOBAL": 2, "NEWOBJ": 2, "NEWOBJ_EX": 3, "REDUCE": 2, "BINPERSID": 1}
TUPLE_OPCODES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
