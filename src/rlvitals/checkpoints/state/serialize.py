"""Objects in, a tree of plain values out, and back into the same objects.

Nothing is constructed from a file: what an object holds is put back into the object that stands in
its place, so a checkpoint cannot run code. What has `state_dict()` is asked for it; generators of
random numbers give their state; of any other object the attributes are taken, as deep as they go.
"""

import math
import random
import sys
from base64 import b64decode, b64encode
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.state.tensors import Blobs, Stored, Unfit, is_tensor
from rlvitals.errors import VitalsError

Node = Any  # JSON
# What does not change while a program trains: it is made anew by the same program.
STATIC = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, partial, Enum)
STATIC_MODULES = ("gymnasium.spaces", "gymnasium.envs.registration", "logging", "pygame", "weakref")
OPAQUE = ("builtins", "_io", "io", "_thread", "threading", "multiprocessing", "socket", "queue")
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
DEEPEST = 60


class Unsaveable(VitalsError):  # noqa: N818 - the name says what went wrong
    """A value that cannot be written without pickle."""


class Writer:
    """Turns values into a tree; `lost` names what could not be taken along."""

    def __init__(self, blobs: Blobs) -> None:
        """Begin with nothing lost; arrays and tensors go to `blobs`."""
        self.blobs = blobs
        self.lost: list[str] = []
        self._path: list[str] = []
        self._inside: set[int] = set()

    def part(self, name: str, value: object) -> Node:
        """Return the tree of a named part: errors say its name. Raises Unsaveable."""
        return self._at(name, value)

    def node(self, value: object) -> Node:
        """Return the tree of a value. Raises Unsaveable."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if isinstance(value, float) and not isinstance(value, np.generic):
            return value if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if is_tensor(value):
            return self._kept(self.blobs.tensor, value)
        return self._nested(value)

    def _nested(self, value: object) -> Node:
        if isinstance(value, bytes):
            return {"bytes": b64encode(value).decode()}
        if _static(value) or id(value) in self._inside or len(self._path) > DEEPEST:
            return {"stays": True}  # made anew by the program, or a way back to what is written
        self._inside.add(id(value))
        try:
            return self._container(value)
        finally:
            self._inside.discard(id(value))

    def _array(self, value: Any) -> Node:  # noqa: ANN401 - of any number type
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            if array.dtype.kind == "O":
                return {"objects": self._items(array.reshape(-1)), "shape": list(array.shape)}
            if array.dtype.kind in "US":
                data = b64encode(array.tobytes()).decode()
                return {"texts": data, "dtype": array.dtype.str, "shape": list(array.shape)}
            raise self._refused(value)
        made = self._kept(self.blobs.array, array)
        return made if isinstance(value, np.ndarray) else {**made, "scalar": True}

    def _container(self, value: object) -> Node:
        if isinstance(value, list):
            return {"list": self._items(value)}
        if isinstance(value, tuple):
            return {"tuple": self._items(value)}
        if isinstance(value, deque):
            return {"deque": self._items(value), "longest": value.maxlen}
        if isinstance(value, set | frozenset):
            kind = "set" if isinstance(value, set) else "frozenset"
            return {kind: self._items(sorted(value, key=repr))}
        if isinstance(value, Mapping):
            return {"dict": self._pairs(value)}
        return self._object(value)

    def _items(self, values: Any) -> list[Node]:  # noqa: ANN401 - any iterable
        return [self._at(str(i), item) for i, item in enumerate(values)]

    def _pairs(self, values: Mapping[Any, Any]) -> list[list[Node]]:
        return [[self.node(key), self._at(str(key), item)] for key, item in values.items()]

    def _at(self, name: str, value: object) -> Node:
        self._path.append(name)
        try:
            return self.node(value)
        finally:
            self._path.pop()

    def _object(self, value: Any) -> Node:  # noqa: ANN401 - any object
        if (state := _generator(value)) is not None:
            return {"generator": self.node(state)}
        if callable(getattr(value, "state_dict", None)) and hasattr(value, "load_state_dict"):
            return {"state_dict": self.node(dict(value.state_dict()))}
        attributes = _attributes(value)
        if attributes is None:
            raise self._refused(value)
        held: dict[str, Node] = {}
        for name, item in attributes.items():
            if _static(item):
                continue
            self._path.append(name)
            try:
                held[name] = self.node(item)
            except Unsaveable as error:
                self.lost.append(error.problem)
            finally:
                self._path.pop()
        return {"object": held, "type": type(value).__qualname__}

    def _kept(self, keep: Callable[[Any], dict[str, object]], value: Any) -> dict[str, object]:  # noqa: ANN401
        try:
            return keep(value)
        except Unfit as error:
            raise self._refused(value, str(error)) from None

    def _refused(self, value: object, why: str = "") -> Unsaveable:
        where = ".".join(self._path) or "the value"
        kind = ", ".join(one for one in (type(value).__qualname__, why) if one)
        return Unsaveable(f"{where} ({kind})", where="state")


class Reader:
    """Puts a tree back into the values that stand in its place."""

    def __init__(self, stored: Stored, *, streams: bool = True) -> None:
        """Read arrays and tensors from `stored`; without `streams` generators stay as they are."""
        self.stored, self._streams = stored, streams
        self._path: list[str] = []

    def value(self, node: Node, now: Any = None) -> Any:  # noqa: ANN401 - whatever was written
        """Return what a tree stands for; objects are `now` itself, with its state put back.

        Raises BadCheckpoint where `now` is another kind of object, or a shape does not fit.
        """
        if not isinstance(node, dict):
            return node
        kind = next(iter(node))
        if kind in ("object", "state_dict", "generator"):
            return self._into(kind, node, now)
        if kind == "stays":
            return now
        return _PLAIN[kind](self, node, now)

    def part(self, name: str, node: Node, now: Any) -> Any:  # noqa: ANN401 - whatever was written
        """Return what a named part stands for: errors say its name. Raises as `value`."""
        return self._at(name, node, now)

    def array(self, node: dict[str, Any], now: Any) -> Any:  # noqa: ANN401 - of any number type
        """Return an array; an array of the same shape and kind in its place is filled."""
        found = self.stored.array(node)
        if node.get("scalar"):
            return found[()]
        if not isinstance(now, np.ndarray):
            return found
        if now.shape != found.shape or now.dtype != found.dtype:
            if now.shape == found.shape or now.size == 0 or found.size == 0:
                return found
            raise self._misfit(f"shape {found.shape} does not fit {now.shape}")
        if now.flags.writeable:
            now[...] = found  # others may look at the same memory
            return now
        return found

    def items(self, nodes: list[Node], now: Any) -> list[Any]:  # noqa: ANN401 - any sequence
        """Return the values of a list, put into those that are there already."""
        known = list(now) if isinstance(now, list | tuple | deque) else []
        known += [None] * (len(nodes) - len(known))
        return [self._at(str(i), node, known[i]) for i, node in enumerate(nodes)]

    def pairs(self, node: dict[str, Any], now: Any) -> Any:  # noqa: ANN401 - any mapping
        """Return a dict; one that is there already is filled."""
        known = now if isinstance(now, Mapping) else {}
        keys = [self.value(key) for key, _ in node["dict"]]
        found = {
            key: self._at(str(key), item, known.get(key))
            for key, (_, item) in zip(keys, node["dict"], strict=True)
        }
        if type(now) in (dict, OrderedDict):
            now.clear()
            now.update(found)
            return now
        return found

    def _at(self, name: str, node: Node, now: Any) -> Any:  # noqa: ANN401 - whatever was written
        self._path.append(name)
        try:
            return self.value(node, now)
        finally:
            self._path.pop()

    def _into(self, kind: str, node: dict[str, Any], now: Any) -> Any:  # noqa: ANN401
        if kind == "generator":
            if now is not None and not self._streams:
                return now
            return _with_state(now, self.value(node["generator"]))
        if now is None:
            raise self._misfit("there is no object to put its state into")
        if kind == "state_dict":
            state = self.value(node["state_dict"])
            try:
                now.load_state_dict(state)
            except (RuntimeError, ValueError, KeyError) as error:
                raise self._misfit(str(error)) from error
        else:
            if type(now).__qualname__ != node["type"]:
                raise self._misfit(f"a {type(now).__qualname__} stands where a {node['type']} was")
            for name, item in node["object"].items():
                # A frozen or slotted object is set past its own __setattr__.
                object.__setattr__(now, name, self._at(name, item, getattr(now, name, None)))
        return now

    def _misfit(self, why: str) -> BadCheckpoint:
        where = ".".join(self._path) or "state"
        return BadCheckpoint(
            f"the state does not fit: {where}: {why}",
            hint="resume with the same program and settings, or start in another folder",
        )


def _objects(reader: Reader, node: dict[str, Any], now: Any) -> Any:  # noqa: ANN401
    known = list(now.reshape(-1)) if isinstance(now, np.ndarray) else None
    flat = np.empty(len(node["objects"]), object)
    flat[:] = reader.items(node["objects"], known)
    return flat.reshape(node["shape"])


_PLAIN: dict[str, Any] = {
    "float": lambda _, node, __: float(node["float"]),
    "bytes": lambda _, node, __: b64decode(node["bytes"]),
    "array": Reader.array,
    "tensor": lambda reader, node, _: reader.stored.tensor(node),
    "list": lambda reader, node, now: reader.items(node["list"], now),
    "tuple": lambda reader, node, now: tuple(reader.items(node["tuple"], now)),
    "set": lambda reader, node, _: set(reader.items(node["set"], None)),
    "frozenset": lambda reader, node, _: frozenset(reader.items(node["frozenset"], None)),
    "deque": lambda reader, node, now: deque(reader.items(node["deque"], now), node["longest"]),
    "dict": Reader.pairs,
    "texts": lambda _, node, __: (
        np.frombuffer(b64decode(node["texts"]), node["dtype"]).reshape(node["shape"]).copy()
    ),
    "objects": _objects,
}


def _attributes(value: object) -> dict[str, Any] | None:
    """Return an object's attributes, those in slots too; None where it has none to look at."""
    if _module(value).partition(".")[0] in OPAQUE:
        return None
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and not name.startswith("__"):
                found[name] = getattr(value, name)
    return found if found or hasattr(value, "__dict__") else None


def _static(value: object) -> bool:
    return isinstance(value, STATIC) or _module(value).startswith(STATIC_MODULES)


def _module(value: object) -> str:
    return str(getattr(type(value), "__module__", ""))  # types made in C may have none


def _generator(value: object) -> object:
    """Return the state of a generator of random numbers, None for anything else."""
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    if isinstance(value, random.Random):
        return value.getstate()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return value.get_state()
    return None


def _with_state(now: Any, state: Any) -> Any:  # noqa: ANN401 - any of four kinds
    """Give a generator its state, a new one of numpy's where none is there."""
    if now is None and isinstance(state, dict) and state.get("bit_generator") in BIT_GENERATORS:
        now = np.random.Generator(getattr(np.random, state["bit_generator"])())
    if isinstance(now, np.random.Generator):
        now.bit_generator.state = state
    elif isinstance(now, random.Random):
        now.setstate(state)
    elif hasattr(now, "set_state"):  # numpy's RandomState and torch's Generator
        now.set_state(state)
    else:
        raise BadCheckpoint(f"the state does not fit: a {type(now).__qualname__} is no generator")
    return now
