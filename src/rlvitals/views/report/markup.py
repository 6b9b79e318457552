"""HTML that cannot be broken by what it tells: a text is escaped wherever it stands."""

from html import escape

from rlvitals.errors import harmless

ALONE = ("meta", "input", "br")  # elements that hold nothing
LONGEST = 4000  # characters of a text of several lines


class Html(str):
    """Markup, safe as it stands."""

    __slots__ = ()


def el(name: str, /, *children: str, **attributes: str | int | bool | None) -> Html:
    """Make an element. A child that is no `Html` is a text; `class_` is "class"; None is left out.

    Attributes that Python cannot spell have `_` for `-`.
    """
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(harmless(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in ALONE:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Put elements and texts behind each other."""
    return Html("".join(c if isinstance(c, Html) else escape(harmless(c)) for c in children))


def paragraphs(text: str) -> Html:
    """Keep the lines of a text; what is too long is cut."""
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    lines = cut.replace("\r\n", "\n").split("\n")
    return Html("\n".join(joined(line.replace("\t", "    ")) for line in lines))
