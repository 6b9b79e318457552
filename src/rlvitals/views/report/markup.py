"""Build HTML elements with every text escaped."""

import json
import re
from html import escape

from rlvitals.errors import harmless

MAX_TEXT_CHARS = 4000  # of a text of several lines


class Html(str):
    """Markup that needs no escaping."""

    __slots__ = ()


def el(name: str, /, *children: str, **attributes: str | int | bool | None) -> Html:
    """Return an element. A child that is not `Html` is escaped; attributes of None are left out.

    In names of attributes `_` stands for `-`; a final `_` is dropped: `class_`.
    """
    attribute_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(harmless(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in ("meta", "input", "br"):
        return Html(f"<{name}{attribute_text}>")
    return Html(f"<{name}{attribute_text}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Concatenate elements and escaped texts."""
    return Html("".join(c if isinstance(c, Html) else escape(harmless(c)) for c in children))


def breakable(text: str) -> Html:
    """Return a text whose long names may be broken after `_`, `/`, `.` and `-`.

    Names of fewer than 20 characters fit into a column of a phone.
    """
    return Html(re.sub(r"\S{20,}", _break_name, join(text)))


def _break_name(match: re.Match[str]) -> str:
    # After `.` and `-` not before a digit: numbers such as 0.01 and 1e-05 stay whole.
    return re.sub(r"(?<=[_/])(?=[^\W_])|(?<=[.-])(?=[^\W\d_])", "<wbr>", match[0])


def paragraphs(text: str) -> Html:
    """Return a text with its line breaks, truncated to MAX_TEXT_CHARS."""
    cut = text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"
    lines = cut.replace("\r\n", "\n").split("\n")
    return Html("\n".join(join(line.replace("\t", "    ")) for line in lines))


def json_in_html(content: object) -> str:
    """Return JSON in which no text can close the surrounding script element."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
