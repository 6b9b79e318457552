"""The parts of a completion. Texts are searched, never matched: no text takes long."""

TAGS = (
    "<think>", "<type>", "</type>", "<table>", "</table>", "</think>", "<answer>", "</answer>",
)  # fmt: skip


def in_order(text: str) -> bool:
    """Say whether each tag of the form is there exactly once, and in its order."""
    places = [text.find(tag) for tag in TAGS]
    once = all(text.count(tag) == 1 for tag in TAGS)
    return once and places == sorted(places)


def inner(text: str, tag: str) -> str | None:
    """Return what stands in a tag, stripped; None where it is not there exactly once."""
    opened, closed = f"<{tag}>", f"</{tag}>"
    if text.count(opened) != 1 or text.count(closed) != 1:
        return None
    start, end = text.find(opened) + len(opened), text.find(closed)
    return text[start:end].strip() if start <= end else None


def said(text: str, *, plain: bool = False) -> str | None:
    """Return a completion's answer: what stands in its one answer tag, after its thinking.

    `plain`: a text without that tag is an answer as a whole, less its thinking.
    """
    if "</think>" not in text and not plain:
        return None
    after = text.rpartition("</think>")[2]
    if plain and "<answer>" not in after:
        return after.strip()
    return inner(after, "answer") if plain or "<think>" in text else None
