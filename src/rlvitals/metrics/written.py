"""Settings that a script logged as a text: a table, or a printed namespace.

CleanRL and its kin write `|param|value|` rows as "hyperparameters" (`writer.add_text`), Tianshou's
examples `str(args)` as "args": "Namespace(task='CartPole-v1', lr=0.001)".
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from rlvitals.records import Setting, Text

TAGS = ("hyperparameters", "args", "hparams", "config")  # torch adds "/text_summary"
MAX_LETTERS = 50_000
HEADINGS = 2  # rows of a table that are none: its head, and the line below it
CELLS = 2  # a setting and its value; a row with more is no setting


def settings(texts: Mapping[str, Sequence[Text]]) -> dict[str, Setting]:
    """Return what the texts hold under the names in them; of several the last counts."""
    found: dict[str, Setting] = {}
    for tag, written in texts.items():
        if written and tag.removesuffix("/text_summary").lower() in TAGS:
            found |= dict(_pairs(written[-1].text[:MAX_LETTERS].strip()))
    return found


def _pairs(text: str) -> Iterator[tuple[str, Setting]]:
    if text.startswith("|"):
        yield from _table(text)
    elif text.startswith("Namespace("):
        yield from _namespace(text)


def _table(text: str) -> Iterator[tuple[str, Setting]]:
    for row in text.splitlines()[HEADINGS:]:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if len(cells) == CELLS and cells[0] and (value := _value(cells[1])) is not None:
            yield cells[0], value


def _value(cell: str) -> Setting | None:
    """Return a cell's value, None for an empty one and for Python's None."""
    if cell in ("None", ""):
        return None
    if cell in ("True", "False"):
        return cell == "True"
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            continue
    return cell


def _namespace(text: str) -> Iterator[tuple[str, Setting]]:
    """Yield the plain arguments of a printed namespace; nothing of it is evaluated."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for keyword in call.keywords if isinstance(call, ast.Call) else ():
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError, MemoryError):
            continue
        if keyword.arg and isinstance(value, bool | int | float | str):
            yield keyword.arg, value
