"""Typed schemas for settings: read files, make command-line flags, write the documentation.

A section is a frozen dataclass whose fields `rlvitals.lab.option` makes; fields may be sections.
"""

import json
import os
from argparse import ArgumentError, ArgumentParser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from math import inf, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from rlvitals import UsageError
from rlvitals.lab import nearest

T = TypeVar("T")
Values = Mapping[str, Any]
QUICK_TEST_FLAG = "--quick-test"
NO_VALUES: Values = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Key:
    """An option of a schema, with its path through the sections."""

    path: tuple[str, ...]
    default: Any
    doc: str
    choices: tuple[str, ...]
    item: str
    flag: str  # "--learning-rate"
    inner: Any  # the type of a list's items

    @property
    def name(self) -> str:
        """The dotted name: `ppo_config.learning_rate`."""
        return ".".join(self.path)


def keys(schema: type[Any]) -> tuple[Key, ...]:
    """List all options of a schema, in the order they are declared."""
    return tuple(_make_keys(_walk(schema, ())))


def _make_keys(options: Iterable[tuple[tuple[str, ...], Any]]) -> Iterator[Key]:
    """Yield the keys; a generic or used flag name is prefixed with its section."""
    # A flag of such a name says little without its section.
    used_names = {
        "alpha", "beta", "enable", "enabled", "limit", "max", "min", "mode", "scale", "type",
    }  # fmt: skip
    for path, field in options:
        name = path[-1] if path[-1] not in used_names else "-".join(path[-2:])
        used_names.add(name)
        metadata = field.metadata
        flag = f"--{name.replace('_', '-')}"
        yield Key(
            path,
            _default(field),
            metadata["doc"],
            metadata["choices"],
            metadata["item"],
            flag,
            _inner(field),
        )


def _walk(schema: type[Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in fields(schema):
        path = (*above, field.name)
        if is_dataclass(_default(field)):
            yield from _walk(type(_default(field)), path)
        elif field.metadata:
            yield path, field


def _default(field: Any) -> Any:  # noqa: ANN401 - a field of any type
    return field.default if field.default is not MISSING else field.default_factory()


def read(
    schema: type[T], values: object, source: str, above: str = "", root: type[Any] | None = None
) -> T:
    """Make a section of the values of a file. Raises UsageError for what the schema has not.

    `root`: the schema of the complete file, where a misplaced key is looked for.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"{above or 'the settings'} is no table but {values!r}", where=source)
    fields_by_name = {field.name: field for field in fields(schema)}  # type: ignore[arg-type]
    options: dict[str, Any] = {}
    root = root or schema
    for name, value in values.items():
        path = f"{above}.{name}" if above else name
        if name not in fields_by_name:
            namesakes = [key.name for key in keys(root) if key.path[-1] == name]
            hint = (
                f"did you mean {' or '.join(namesakes)}?"
                if namesakes
                else _suggest_name(name, fields_by_name)
            )
            raise UsageError(f"there is no {path}", where=source, hint=hint)
        default = _default(fields_by_name[name])
        if is_dataclass(default):
            options[name] = read(type(default), value, source, path, root)
        else:
            options[name] = _check_value(fields_by_name[name], default, value, f"{source}, {path}")
    return schema(**options)


def _suggest_name(name: str, names: Collection[str]) -> str:
    return nearest(name, names) or f"one of {', '.join(names)}"


def _check_value(field: Any, default: Any, value: Any, path: str) -> Any:  # noqa: ANN401 - of any type
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        raise UsageError(f"{value!r} is not true or false", where=path)
    if isinstance(default, str):
        return _check_text(field, value, path)
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple):
            hint = '["this", "that"]' if _inner(field) is str else "[1, 2]"
            raise UsageError(f"{value!r} is not a list", where=path, hint=hint)
        check = (
            _check_text if _inner(field) is str else _number_check(default[0] if default else 0.0)
        )
        return tuple(check(field, item, path) for item in value)
    return _number_check(default)(field, value, path)


def _inner(field: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type of a list's items: str for `tuple[str, ...]`, also if it is empty."""
    return next(iter(get_args(field.type)), None)


def _check_text(field: Any, value: Any, path: str) -> str:  # noqa: ANN401 - of any type
    choices = field.metadata["choices"]
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", where=path)
    if choices and value not in choices:
        raise UsageError(f"it cannot be {value!r}", where=path, hint=_suggest_name(value, choices))
    return value


def _number_check(default: float) -> Callable[[Any, Any, str], float]:
    """Return a function that checks a number, an integer if `default` is one."""
    is_integer = isinstance(default, int)

    def check(field: Any, value: Any, path: str) -> float:  # noqa: ANN401 - of any type
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise UsageError(f"{value!r} is not a number", where=path, hint=f"as {default}")
        if is_integer and value != int(value):
            raise UsageError(f"{value!r} is not a whole number", where=path, hint=f"as {default}")
        # What an item may be, both ends included; any other number from 0 on.
        ranges = {
            "SHARE": (0.0, 1.0), "GAMMA": (0.0, 1.0), "LAMBDA": (0.0, 1.0), "WEIGHT": (-inf, inf),
            "SEED": (0.0, 2**32 - 1),  # NumPy's
        }  # fmt: skip
        low, high = ranges.get(field.metadata["item"], (0.0, inf))
        low = min(low, default)
        if low <= value <= high:
            return int(value) if is_integer else float(value)
        limits = f"between {low:g} and {high:.10g}" if isfinite(high) else f"{low:g} or more"
        raise UsageError(f"it cannot be {value!r}", where=path, hint=limits)

    return check


def to_dict(section: Any) -> dict[str, Any]:  # noqa: ANN401 - any section
    """Return a section as a dictionary, as in a settings file."""
    return {
        field.name: to_dict(value)
        if is_dataclass(value)
        else list(value)
        if isinstance(value, tuple)
        else value
        for field in fields(section)
        for value in (getattr(section, field.name),)
    }


def load(  # noqa: PLR0913 - what a file may be, each by its name
    schema: type[T],
    file: Path | None,
    overrides: Values,
    *,
    below: Values = NO_VALUES,
    unread: Mapping[str, str] = MappingProxyType({}),
    tell: Callable[[str], None] = lambda _: None,
) -> T:
    """Combine overrides by dotted names with a JSON file and the defaults, in this precedence.

    `below`: values by dotted names between the file and the defaults. `unread`: sections of files
    by other programs, with their replacement here, which is reported if a file has one.

    Raises UsageError for a file that cannot be read, and as `read`.
    """
    values: dict[str, Any] = {} if file is None else read_json(file)
    for name, replacement in unread.items():
        inner, key = _find_section(values, name) if name.partition(".")[0] in values else ({}, name)
        if inner.pop(key, None) is not None:
            tell(f"{file}: {name} is not read: {replacement}")
    for name, value in overrides.items():
        inner, key = _find_section(values, name)
        inner[key] = value
    for name, value in below.items():
        inner, key = _find_section(values, name)
        inner.setdefault(key, value)
    return read(schema, values, "the command line" if file is None else str(file))


def _find_section(values: dict[str, Any], name: str) -> tuple[Any, str]:
    """Return the section that a dotted name is in, and its key there."""
    *sections, key = name.split(".")
    inner: Any = values
    for section in sections:
        inner = inner.setdefault(section, {})
        if not isinstance(inner, dict):
            return {}, key  # `read` reports what the file has there
    return inner, key


def read_json(file: Path) -> dict[str, Any]:
    """Return the values of a JSON file. Raises UsageError for one that cannot be read."""
    try:
        values = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(
            f"the settings cannot be read: {error.strerror}", where=str(file)
        ) from None
    except ValueError as error:
        raise UsageError(f"the settings are not JSON: {error}", where=str(file)) from None
    if not isinstance(values, dict):
        raise UsageError(
            "the settings are no table", where=str(file), hint='{"section": {"key": 1}}'
        )
    return values


def add_flags(
    parser: ArgumentParser,
    schema: type[Any],
    *,
    sections: Collection[str] = (),
    aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
    defaults: Sequence[tuple[Values, str]] = (),
) -> None:
    """Give a parser a flag for each option of a schema, or of some of its sections.

    `aliases`: other flags that mean the same, by the option's dotted name. A flag of a truth needs
    no value: `--wandb` is `--wandb true`. `defaults`: what stands in for defaults, and whose values
    these are, empty where that goes without saying; of several that have a key the first counts.
    """
    groups: dict[str, Any] = {}
    for key in keys(schema):
        if sections and key.path[0] not in sections:
            continue
        section = ".".join(key.path[:-1])
        group = groups.setdefault(section, parser.add_argument_group(section))
        truth = isinstance(key.default, bool)
        metavar = None if key.choices else "true|false" if truth else "X"
        is_list = isinstance(key.default, tuple)
        parse: Any = _truth if truth else key.inner if is_list else type(key.default)
        declared = ({key.name: key.default}, "")
        values, source = next(layer for layer in (*defaults, declared) if key.name in layer[0])
        default = _format_value(values[key.name]) or "none"
        default = f"{default}, {source}" if source else default
        group.add_argument(
            key.flag, *aliases.get(key.name, ()), dest=key.name, default=None,
            metavar=key.item or metavar,
            type=parse, choices=key.choices or None,
            nargs="*" if is_list else "?" if truth else None,
            const=True if truth else None,
            help=f"{key.doc} (default: {default})".replace("%", "%%"),
        )  # fmt: skip


def quick_test_defaults(options: Sequence[str], values: Values) -> tuple[Values, str]:
    """Return what a quick test sets, as `add_flags` shows it; nothing where none is asked for."""
    return values if QUICK_TEST_FLAG in options else NO_VALUES, QUICK_TEST_FLAG


def read_choice(
    options: Sequence[str],
    flags: Sequence[str],
    name: str,
    default: str,
    *,
    find: Callable[[Path], Path] = Path,
) -> str:
    """Return one text that flags, else their file, say: that by which a preset is chosen.

    `name`: its dotted name; `find` locates the file. Errors are left to the complete parser.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*flags, dest="value")
    parser.add_argument("--config", "--config-file", type=Path)
    try:
        args = parser.parse_known_args(options)[0]
    except ArgumentError:
        return default
    section, key = name.split(".")
    values = read_json(find(args.config)).get(section) if args.config else None
    return str(args.value or (values.get(key) if isinstance(values, dict) else None) or default)


def flag_values(options: Mapping[str, Any], schema: type[Any]) -> dict[str, Any]:
    """Return what the flags of a schema were given, by dotted names."""
    return {
        key.name: options[key.name] for key in keys(schema) if options.get(key.name) is not None
    }


def list_changes(
    file: Path,
    section: Any,  # noqa: ANN401 - any section
    *,
    besides: Collection[str] = (),
) -> list[str]:
    """Return the settings that differ from a file of `text`: "training.seed 1 -> 2".

    Nothing of `besides`, dotted names; and nothing where no such file can be read.
    """
    try:
        old = read_json(file)
    except UsageError:
        return []
    changes = dict(_iter_changes(old, to_dict(section), ()))
    return [f"{name} {change}" for name, change in changes.items() if name not in besides]


def _iter_changes(old: Values, new: Values, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, value in new.items():
        old_value = old.get(name)
        if isinstance(value, dict):
            yield from _iter_changes(
                old_value if isinstance(old_value, dict) else {}, value, (*above, name)
            )
        elif name in old and old_value != value:
            yield ".".join((*above, name)), f"{old_value} -> {value}"


def text(section: Any) -> str:  # noqa: ANN401 - any section
    """Return a section as the text of a file that `load` reads."""
    return f"{json.dumps(to_dict(section), indent=1)}\n"


def write(file: Path, section: Any) -> None:  # noqa: ANN401 - any section
    """Replace a file by the `text` of a section; of a link there, the link alone. OSError."""
    temporary = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text(section))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _format_value(default: Any) -> str:  # noqa: ANN401 - of any type
    if isinstance(default, bool):
        return str(default).lower()
    return " ".join(map(str, default)) or "none" if isinstance(default, tuple) else f"{default}"


def _truth(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError(text)


def table(schema: type[Any]) -> str:
    """Return a schema as tables in Markdown, one for each section."""
    lines: list[str] = []
    section = ""
    for key in keys(schema):
        if (heading := ".".join(key.path[:-1])) != section:
            section = heading
            lines += ["", f"## `{section}`", "", "| key | default | what it does | flag |"]
            lines += ["| --- | --- | --- | --- |"]
        choices = f" ({', '.join(key.choices)})" if key.choices else ""
        default = _format_value(key.default)
        lines.append(f"| `{key.path[-1]}` | {default} | {key.doc}{choices} | `{key.flag}` |")
    return "\n".join(lines).strip() + "\n"
