"""Parse the plain content of YAML: mappings, lists, text, numbers; no object is constructed.

Tags of other people's classes (`!!python/object:...`) are read as the content they stand on, or
as None. libyaml's events are put together here, since its composer calls itself for each level of
nesting and takes the process down with it. An anchor's content is shared, not copied, so that a
"billion laughs" costs what its text costs; whoever walks the content must count (see `leaves`).
Scalars follow YAML 1.1 as PyYAML reads it, and `1e-4`, which it leaves as text, is a number.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rlvitals.startup.fast_dataclass import dataclass

MAX_YAML_DEPTH = 32
YAML_TAG = "tag:yaml.org,2002:"
PYTHON_TAG = f"{YAML_TAG}python/"
CALL_TAGS = (f"{PYTHON_TAG}object/apply:", f"{PYTHON_TAG}object/new:")  # a call, with its arguments
DROPPED_TAGS = (
    f"{YAML_TAG}binary",
    f"{PYTHON_TAG}name:",
    f"{PYTHON_TAG}module:",
    f"{PYTHON_TAG}bytes",
)
YAML_CONSTANTS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("yes", "true", "on"), True),
    **dict.fromkeys(("no", "false", "off"), False),
    **{f"{sign}.inf": float(f"{sign}inf") for sign in ("", "+", "-")},
    ".nan": float("nan"),
}
DECIMAL_SCALAR = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
BASED_SCALAR = re.compile(r"[-+]?0(?:b[01_]+|x[0-9a-fA-F_]+|o?[0-7_]+)")
FLOAT_SCALAR = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")


class NotPlainError(ValueError):
    """No YAML, or more of it than settings need; the text says which."""


def parse(text: str) -> object:
    """Return the first document's content. Raises NotPlainError."""
    import yaml  # noqa: PLC0415 - only where a file needs it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Document().content(yaml.parse(text, Loader=loader))
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, NotPlainError):
            raise
        raise NotPlainError("not YAML") from None


@dataclass(slots=True)
class _Open:
    """A mapping or a list whose end has not come yet."""

    content: dict[str, object] | list[object]
    anchor: str | None
    tag: str
    key: str | None = None  # of a mapping: the key whose value comes next
    has_key: bool = False

    def add(self, value: object) -> None:
        """Add an item; of a mapping, a key and its value in turn. Keys that are no text: none."""
        if isinstance(self.content, list):
            self.content.append(value)
        elif not self.has_key:
            plain = isinstance(value, str | int | float) or value is None
            self.key, self.has_key = (str(value) if plain else None), True
        else:
            if self.key is not None:
                self.content[self.key] = value
            self.has_key = False


class _Document:
    """Puts a document's events together."""

    def __init__(self) -> None:
        self._stack = [_Open([], None, "")]
        self._anchors: dict[str, object] = {}
        self._merged = 0

    def content(self, events: Iterable[Any]) -> object:
        """Return the first document's content; the events are PyYAML's, which has no types."""
        for count, event in enumerate(events):
            if count > 200_000 or len(self._stack) > MAX_YAML_DEPTH:
                raise NotPlainError("more YAML than a run's settings are")
            match type(event).__name__:
                case "ScalarEvent":
                    self._add(_scalar(event), event.anchor)
                case "AliasEvent":
                    self._add(self._anchors.get(event.anchor), None)
                case "MappingStartEvent":
                    self._stack.append(_Open({}, event.anchor, event.tag or ""))
                case "SequenceStartEvent":
                    self._stack.append(_Open([], event.anchor, event.tag or ""))
                case "MappingEndEvent" | "SequenceEndEvent":
                    node = self._stack.pop()
                    content = node.content
                    if isinstance(content, dict) and "<<" in content:
                        content = self._merge(content)
                    self._add(
                        _argument(content) if node.tag.startswith(CALL_TAGS) else content,
                        node.anchor,
                    )
                case "DocumentEndEvent":
                    break
        documents = self._stack[0].content
        return documents[0] if isinstance(documents, list) and documents else None

    def _add(self, value: object, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = value
        self._stack[-1].add(value)

    def _merge(self, content: dict[str, object]) -> dict[str, object]:
        """Add what `<<` names, below the mapping's own keys and in its own order of rank."""
        merged = content.pop("<<")
        for mapping in merged if isinstance(merged, list) else [merged]:
            if isinstance(mapping, dict):
                self._merged += len(mapping)
                if self._merged > 50_000:  # keys that `<<` copies
                    raise NotPlainError("more YAML than a run's settings are")
                content = {**mapping, **content}
        return content


def _argument(content: object) -> object:
    """Return what a call in Python was given: an OrderedDict's pairs, an Enum's value."""
    if isinstance(content, dict):
        return content.get("dictitems") or _argument(content.get("args"))
    if not isinstance(content, list) or len(content) != 1:
        return None
    (only,) = content
    if isinstance(only, list):
        pairs = [pair for pair in only if isinstance(pair, list) and len(pair) == 2]
        return {str(key): value for key, value in pairs} if len(pairs) == len(only) else only
    return only


def _scalar(event: Any) -> object:  # noqa: ANN401 - PyYAML has no types
    tag = event.tag or ""
    if tag.startswith((*DROPPED_TAGS, *CALL_TAGS)):
        return None
    quoted = event.style in {"'", '"', "|", ">"} and tag in {"", "!"}
    text: str = event.value
    return text if quoted or tag == f"{YAML_TAG}str" else resolve_scalar(text)


def resolve_scalar(text: str) -> bool | float | str | None:
    """Return the value of a plain scalar: a number, a boolean, None, or its text."""
    lower = text.lower()
    if lower in YAML_CONSTANTS:
        return YAML_CONSTANTS[lower]
    if len(text) <= 40:
        if DECIMAL_SCALAR.fullmatch(text):
            return int(text.replace("_", ""))
        if BASED_SCALAR.fullmatch(text):
            digits = text.replace("_", "")
            octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
            return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
        if FLOAT_SCALAR.fullmatch(text):
            return float(text.replace("_", ""))
    return text


def leaves(
    item: object, max_items: int, max_depth: int = MAX_YAML_DEPTH
) -> Iterator[tuple[str, object]]:
    """Yield the leaves of nested mappings under names joined by "/"; lists are leaves.

    `most` bounds the items looked at, as shared content may be met again and again. Raises
    NotPlainError beyond it.
    """
    stack: list[tuple[str, Iterator[tuple[object, object]]]] = []
    if isinstance(item, dict):
        stack.append(("", iter(item.items())))
    while stack:
        prefix, items = stack[-1]
        pair = next(items, None)
        if pair is None:
            stack.pop()
            continue
        max_items -= 1
        if max_items < 0:
            raise NotPlainError("more settings than are read")
        key, value = pair
        name = f"{prefix}/{key}" if prefix else str(key)
        if not isinstance(value, dict):
            yield name, value
        elif len(stack) < max_depth:
            stack.append((name, iter(value.items())))
