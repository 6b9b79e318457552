"""`dataclass`, made for a program that defines hundreds of them and ends within half a second.

The standard library's compiles seven methods of each class from text, which took a third of the
time of a short command. This one compiles the constructor; the other methods are shared closures.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

RecordT = TypeVar("RecordT")


class _Factory:
    """The default, in a signature, of a field that a factory fills."""

    def __repr__(self) -> str:
        return "<factory>"


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> object:
        """Make a class a dataclass, with the options and the methods of the standard library's."""
        return _build(cls, **options) if cls else lambda decorated: _build(decorated, **options)


def _build(
    source: type[RecordT],
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 - the standard library's name
    **layout: bool,
) -> type[RecordT]:
    """Let the standard library find the fields and make the slots; add the methods."""
    source.__doc__ = source.__doc__ or source.__name__  # else it asks `inspect` for a signature
    cls = dataclasses.dataclass(source, init=False, repr=False, eq=False, **layout)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    methods: dict[str, object] = {"__init__": _compile_init(cls, fields, frozen=frozen)}
    if repr:
        methods["__repr__"] = _describe
    if eq:
        names = [field.name for field in fields if field.compare]
        values: Callable[[object], object] = (
            attrgetter(*names)
            if len(names) > 1  # of one name, `attrgetter` gives no tuple
            else lambda record: tuple(getattr(record, name) for name in names)
        )

        def equal(self: object, peer: object) -> bool:
            return values(self) == values(peer) if type(self) is type(peer) else NotImplemented

        def get_hash(self: object) -> int:
            return hash(values(self))

        methods |= {"__eq__": equal, "__hash__": get_hash}
    if eq and not frozen:
        methods["__hash__"] = None
    if frozen:
        methods |= _refusal(cls, {field.name for field in fields})
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name, method in methods.items():
        if vars(source).get(name) is None:
            setattr(cls, name, method)
    return cls


def _compile_init(cls: type, fields: Iterable[Field[Any]], *, frozen: bool) -> Callable[..., None]:
    """Compile the constructor."""
    scope: dict[str, Any] = {
        "__name__": cls.__module__, "_assign": object.__setattr__, "_factory": _Factory(),
    }  # fmt: skip
    positional, body = ["self"], []
    keyword: list[str] = []
    for field in fields:
        name, value, default, initial = field.name, field.name, "", ""
        if field.default is not MISSING:
            scope[f"_default_{name}"] = field.default
            default, initial = f"=_default_{name}", f"_default_{name}"
        elif field.default_factory is not MISSING:
            scope[f"_make_{name}"] = field.default_factory
            default, initial = "=_factory", f"_make_{name}()"
            value = f"{initial} if {name} is _factory else {name}"
        if field.init:
            (keyword if field.kw_only else positional).append(f"{name}{default}")
        else:
            value = initial
        if value:
            body.append(f"_assign(self, '{name}', {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *keyword] if keyword else [])])
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({parameters}):\n {lines}", scope)  # noqa: S102 - of the class's own names
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields if field.init}
    init.__annotations__["return"] = None
    return init


def _refusal(cls: type, names: set[str]) -> dict[str, object]:
    """Refuse changes of an instance."""

    def refuse_assignment(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]  # of a subclass

    def refuse_deletion(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]  # of a subclass

    return {"__setattr__": refuse_assignment, "__delattr__": refuse_deletion}


@recursive_repr()
def _describe(self: Any) -> str:  # noqa: ANN401 - a record of any class
    """Name the class and each field with its value."""
    described = (field for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in described)
    return f"{type(self).__qualname__}({values})"


def _get_state(self: Any) -> list[object]:  # noqa: ANN401 - a record of any class
    """Return what a pickle or a copy keeps."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[object]) -> None:  # noqa: ANN401 - a record of any class
    """Restore an instance past its own refusal."""
    for field, value in zip(dataclasses.fields(self), state, strict=False):
        object.__setattr__(self, field.name, value)
