"""Convert objects to a tree of plain values, and load the tree into the same objects.

Nothing is constructed from a file: a saved value is loaded into the object in its place, so a
checkpoint cannot run code. Objects with `state_dict()` supply it; random number generators give
their state; of any other object the attributes are saved, recursively.
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
from rlvitals.checkpoints.state.tensors import TensorReader, TensorWriter, Unsupported, is_tensor
from rlvitals.errors import VitalsError

Node = Any  # JSON


class Unsaveable(VitalsError):  # noqa: N818 - the name says what went wrong
    """A value that cannot be written without pickle."""


class TreeWriter:
    """Converts values to a tree; `lost` names what could not be saved."""

    def __init__(self, blobs: TensorWriter) -> None:
        """Begin with an empty `lost`; arrays and tensors go to `blobs`."""
        self.blobs = blobs
        self.lost: list[str] = []
        self._path: list[str] = []
        self._inside: set[int] = set()

    def named_node(self, name: str, value: object) -> Node:
        """Return the tree of a named part: errors contain its name. Raises Unsaveable."""
        self._path.append(name)
        try:
            return self.node(value)
        finally:
            self._path.pop()

    def node(self, value: object) -> Node:
        """Return the tree of a value. Raises Unsaveable."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if isinstance(value, float) and not isinstance(value, np.generic):
            return value if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if is_tensor(value):
            return self._store(self.blobs.tensor, value)
        return self._node_of_object(value)

    def _node_of_object(self, value: object) -> Node:
        if isinstance(value, bytes):
            return {"bytes": b64encode(value).decode()}
        if _is_static(value) or id(value) in self._inside or len(self._path) > 60:
            return {"stays": True}  # created again by the program, or a cycle
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
            raise self._unsaveable(value)
        tensor_node = self._store(self.blobs.array, array)
        return tensor_node if isinstance(value, np.ndarray) else {**tensor_node, "scalar": True}

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
            return {
                "dict": [
                    [self.node(key), self.named_node(str(key), item)] for key, item in value.items()
                ]
            }
        return self._object(value)

    def _items(self, values: Any) -> list[Node]:  # noqa: ANN401 - any iterable
        return [self.named_node(str(i), item) for i, item in enumerate(values)]

    def _object(self, value: Any) -> Node:  # noqa: ANN401 - any object
        if (state := _generator_state(value)) is not None:
            return {"generator": self.node(state)}
        if callable(getattr(value, "state_dict", None)) and hasattr(value, "load_state_dict"):
            return {"state_dict": self.node(dict(value.state_dict()))}
        attributes = _attributes(value)
        if attributes is None:
            raise self._unsaveable(value)
        nodes: dict[str, Node] = {}
        for name, item in attributes.items():
            if _is_static(item):
                continue
            self._path.append(name)
            try:
                nodes[name] = self.node(item)
            except Unsaveable as error:
                self.lost.append(error.problem)
            finally:
                self._path.pop()
        return {"object": nodes, "type": type(value).__qualname__}

    def _store(self, keep: Callable[[Any], dict[str, object]], value: Any) -> dict[str, object]:  # noqa: ANN401
        try:
            return keep(value)
        except Unsupported as error:
            raise self._unsaveable(value, str(error)) from None

    def _unsaveable(self, value: object, reason: str = "") -> Unsaveable:
        path = ".".join(self._path) or "the value"
        kind = ", ".join(text for text in (type(value).__qualname__, reason) if text)
        return Unsaveable(f"{path} ({kind})", where="state")


class TreeReader:
    """Loads a tree into the values in its place."""

    def __init__(self, stored: TensorReader, *, streams: bool = True) -> None:
        """Read arrays and tensors from `stored`; without `streams` keep generators unchanged."""
        self.stored, self._streams = stored, streams
        self._path: list[str] = []

    def value(self, node: Node, current: Any = None) -> Any:  # noqa: ANN401 - whatever was written
        """Return the value of a tree; an object is `current` itself, with its state loaded.

        Raises BadCheckpoint if `current` is another kind of object, or a shape does not fit.
        """
        if not isinstance(node, dict):
            return node
        kind = next(iter(node))
        if kind in ("object", "state_dict", "generator"):
            return self._into(kind, node, current)
        if kind == "stays":
            return current
        return _PLAIN_READERS[kind](self, node, current)

    def named_value(self, name: str, node: Node, current: Any) -> Any:  # noqa: ANN401 - whatever was written
        """Return the value of a named part: errors contain its name. Raises as `value`."""
        self._path.append(name)
        try:
            return self.value(node, current)
        finally:
            self._path.pop()

    def array(self, node: dict[str, Any], current: Any) -> Any:  # noqa: ANN401 - of any number type
        """Return an array; an existing array of the same shape and type is filled."""
        stored_array = self.stored.array(node)
        if node.get("scalar"):
            return stored_array[()]
        if not isinstance(current, np.ndarray):
            return stored_array
        if current.shape != stored_array.shape or current.dtype != stored_array.dtype:
            if current.shape == stored_array.shape or current.size == 0 or stored_array.size == 0:
                return stored_array
            raise self._misfit(f"shape {stored_array.shape} does not fit {current.shape}")
        if current.flags.writeable:
            current[...] = stored_array  # others may look at the same memory
            return current
        return stored_array

    def tensor(self, node: dict[str, Any], current: Any) -> Any:  # noqa: ANN401 - torch is optional
        """Return a tensor, on the device of an existing one."""
        tensor = self.stored.tensor(node)
        if is_tensor(current) and current.device.type != "meta":  # meta has no memory
            return tensor.to(current.device)
        return tensor

    def items(self, nodes: list[Node], current: Any) -> list[Any]:  # noqa: ANN401 - any sequence
        """Return the values of a list, loaded into the existing ones."""
        values = list(current) if isinstance(current, list | tuple | deque) else []
        values += [None] * (len(nodes) - len(values))
        return [self.named_value(str(i), node, values[i]) for i, node in enumerate(nodes)]

    def pairs(self, node: dict[str, Any], current: Any) -> Any:  # noqa: ANN401 - any mapping
        """Return a dict; an existing one is filled."""
        values = current if isinstance(current, Mapping) else {}
        keys = [self.value(key) for key, _ in node["dict"]]
        entries = {
            key: self.named_value(str(key), item, values.get(key))
            for key, (_, item) in zip(keys, node["dict"], strict=True)
        }
        if type(current) in (dict, OrderedDict):
            current.clear()
            current.update(entries)
            return current
        return entries

    def _into(self, kind: str, node: dict[str, Any], current: Any) -> Any:  # noqa: ANN401
        if kind == "generator":
            if current is not None and not self._streams:
                return current
            return _set_generator_state(current, self.value(node["generator"]))
        if current is None:
            raise self._misfit("there is no object to put its state into")
        if kind == "state_dict":
            state = self.value(node["state_dict"])
            try:
                current.load_state_dict(state)
            except (RuntimeError, ValueError, KeyError) as error:
                raise self._misfit(str(error)) from error
        else:
            if type(current).__qualname__ != node["type"]:
                raise self._misfit(
                    f"a {type(current).__qualname__} stands where a {node['type']} was"
                )
            for name, item in node["object"].items():
                # A frozen or slotted object is set past its own __setattr__.
                object.__setattr__(
                    current, name, self.named_value(name, item, getattr(current, name, None))
                )
        return current

    def _misfit(self, reason: str) -> BadCheckpoint:
        path = ".".join(self._path) or "state"
        return BadCheckpoint(
            f"the state does not fit: {path}: {reason}",
            hint="resume with the same program and settings, or start in another folder",
        )


def _read_objects(reader: TreeReader, node: dict[str, Any], current: Any) -> Any:  # noqa: ANN401
    values = list(current.reshape(-1)) if isinstance(current, np.ndarray) else None
    flat = np.empty(len(node["objects"]), object)
    flat[:] = reader.items(node["objects"], values)
    return flat.reshape(node["shape"])


_PLAIN_READERS: dict[str, Any] = {
    "float": lambda _, node, __: float(node["float"]),
    "bytes": lambda _, node, __: b64decode(node["bytes"]),
    "array": TreeReader.array,
    "tensor": TreeReader.tensor,
    "list": lambda reader, node, now: reader.items(node["list"], now),
    "tuple": lambda reader, node, now: tuple(reader.items(node["tuple"], now)),
    "set": lambda reader, node, _: set(reader.items(node["set"], None)),
    "frozenset": lambda reader, node, _: frozenset(reader.items(node["frozenset"], None)),
    "deque": lambda reader, node, now: deque(reader.items(node["deque"], now), node["longest"]),
    "dict": TreeReader.pairs,
    "texts": lambda _, node, __: (
        np.frombuffer(b64decode(node["texts"]), node["dtype"]).reshape(node["shape"]).copy()
    ),
    "objects": _read_objects,
}


def _attributes(value: object) -> dict[str, Any] | None:
    """Return an object's attributes, including slots; None if it has none to read."""
    if _module_name(value).partition(".")[0] in (
        "builtins",
        "_io",
        "io",
        "_thread",
        "threading",
        "multiprocessing",
        "socket",
        "queue",
    ):
        return None
    attributes = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and not name.startswith("__"):
                attributes[name] = getattr(value, name)
    return attributes if attributes or hasattr(value, "__dict__") else None


def _is_static(value: object) -> bool:
    # They do not change during a training: the program creates them again.
    static = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, partial, Enum)
    return isinstance(value, static) or _module_name(value).startswith(
        ("gymnasium.spaces", "gymnasium.envs.registration", "logging", "pygame", "weakref")
    )


def _module_name(value: object) -> str:
    return str(getattr(type(value), "__module__", ""))  # types made in C may have none


def _generator_state(value: object) -> object:
    """Return the state of a random number generator, None for anything else."""
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


def _set_generator_state(generator: Any, state: Any) -> Any:  # noqa: ANN401 - any of four kinds
    """Set the state of a generator; without one, create numpy's."""
    if (
        generator is None
        and isinstance(state, dict)
        and state.get("bit_generator") in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
    ):
        generator = np.random.Generator(getattr(np.random, state["bit_generator"])())
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):  # numpy's RandomState and torch's Generator
        generator.set_state(state)
    else:
        raise BadCheckpoint(
            f"the state does not fit: a {type(generator).__qualname__} is not a generator"
        )
    return generator
