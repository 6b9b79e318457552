"""The plain content of a YAML document: mappings, lists, text, numbers; nothing is constructed.

Tags of other people's classes (`!!python/object:...`) are read as the content they stand on, or
as None. libyaml's events are put together here, since its composer calls itself for each level of
nesting and takes the process down with it. An anchor's content is shared, not copied, so that a
"billion laughs" costs what its text costs; whoever walks the content must count (see `leaves`).
Scalars follow YAML 1.1 as PyYAML reads it, and `1e-4`, which it leaves as text, is a number.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

MAX_EVENTS = 200_000
MAX_DEPTH = 32
MAX_MERGED = 50_000  # keys that `<<` copies
MAX_DIGITS = 40
STANDARD = "tag:yaml.org,2002:"
PYTHON = f"{STANDARD}python/"
MADE = (f"{PYTHON}object/apply:", f"{PYTHON}object/new:")  # a call, with its arguments
DROPPED = (f"{STANDARD}binary", f"{PYTHON}name:", f"{PYTHON}module:", f"{PYTHON}bytes")
MERGE = "<<"
WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("yes", "true", "on"), True),
    **dict.fromkeys(("no", "false", "off"), False),
    **{f"{sign}.inf": float(f"{sign}inf") for sign in ("", "+", "-")},
    ".nan": float("nan"),
}
DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
BASED = re.compile(r"[-+]?0(?:b[01_]+|x[0-9a-fA-F_]+|o?[0-7_]+)")
FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")


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
            if count > MAX_EVENTS or len(self._stack) > MAX_DEPTH:
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
                    ended = self._stack.pop()
                    self._add(self._whole(ended), ended.anchor)
                case "DocumentEndEvent":
                    break
        found = self._stack[0].content
        return found[0] if isinstance(found, list) and found else None

    def _add(self, value: object, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = value
        self._stack[-1].add(value)

    def _whole(self, ended: _Open) -> object:
        content = ended.content
        if isinstance(content, dict) and MERGE in content:
            content = self._with_merged(content)
        return _argument(content) if ended.tag.startswith(MADE) else content

    def _with_merged(self, content: dict[str, object]) -> dict[str, object]:
        """Add what `<<` names, below the mapping's own keys and in its own order of rank."""
        merged = content.pop(MERGE)
        for part in merged if isinstance(merged, list) else [merged]:
            if isinstance(part, dict):
                self._merged += len(part)
                if self._merged > MAX_MERGED:
                    raise NotPlainError("more YAML than a run's settings are")
                content = {**part, **content}
        return content


def _argument(content: object) -> object:
    """Return what a call in Python was given: an OrderedDict's pairs, an Enum's value."""
    if isinstance(content, dict):
        return content.get("dictitems") or _argument(content.get("args"))
    if not isinstance(content, list) or len(content) != 1:
        return None
    (only,) = content
    if isinstance(only, list):
        pairs = [pair for pair in only if isinstance(pair, list) and len(pair) == 2]  # noqa: PLR2004
        return {str(key): value for key, value in pairs} if len(pairs) == len(only) else only
    return only


def _scalar(event: Any) -> object:  # noqa: ANN401 - PyYAML has no types
    tag = event.tag or ""
    if tag.startswith((*DROPPED, *MADE)):
        return None
    quoted = event.style in {"'", '"', "|", ">"} and tag in {"", "!"}
    text: str = event.value
    return text if quoted or tag == f"{STANDARD}str" else resolved(text)


def resolved(text: str) -> bool | float | str | None:
    """Return what a plain scalar stands for: a number, a truth value, None, or its text."""
    word = text.lower()
    if word in WORDS:
        return WORDS[word]
    if len(text) <= MAX_DIGITS:
        if DECIMAL.fullmatch(text):
            return int(text.replace("_", ""))
        if BASED.fullmatch(text):
            digits = text.replace("_", "")
            octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
            return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
        if FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    return text


def leaves(item: object, most: int, deepest: int = MAX_DEPTH) -> Iterator[tuple[str, object]]:
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
        most -= 1
        if most < 0:
            raise NotPlainError("more settings than are read")
        key, value = pair
        name = f"{prefix}/{key}" if prefix else str(key)
        if not isinstance(value, dict):
            yield name, value
        elif len(stack) < deepest:
            stack.append((name, iter(value.items())))
