"""Extract the parts of a completion, by search in linear time."""

FORM_TAGS = (
    "<think>", "<type>", "</type>", "<table>", "</table>", "</think>", "<answer>", "</answer>",
)  # fmt: skip


def in_order(text: str) -> bool:
    """Return True if each tag of the form occurs exactly once, in order."""
    places = [text.find(tag) for tag in FORM_TAGS]
    once = all(text.count(tag) == 1 for tag in FORM_TAGS)
    return once and places == sorted(places)


def inner(text: str, tag: str) -> str | None:
    """Return the content of a tag, stripped; None unless the tag occurs exactly once."""
    opened, closed = f"<{tag}>", f"</{tag}>"
    if text.count(opened) != 1 or text.count(closed) != 1:
        return None
    start, end = text.find(opened) + len(opened), text.find(closed)
    return text[start:end].strip() if start <= end else None


def extract_answer(text: str, *, plain: bool = False) -> str | None:
    """Return a completion's answer: the content of its answer tag, after its thinking.

    `plain`: a text without that tag is the answer, without its thinking.
    """
    if "</think>" not in text and not plain:
        return None
    after = text.rpartition("</think>")[2]
    if plain and "<answer>" not in after:
        return after.strip()
    return inner(after, "answer") if plain or "<think>" in text else None
