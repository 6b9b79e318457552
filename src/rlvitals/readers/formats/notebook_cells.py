"""Read the cells of a Jupyter notebook, of a damaged one those that can be read.

    cells, is_damaged = read_cells(data)

nbformat 4 has `cells`, nbformat 3 `worksheets` of cells with `input` for `source` and outputs
called `pyout` and `pyerr`. Texts are strings or lists of lines. Images are not decoded.
Source: nbformat's `v4/nbformat.v4.schema.json` and `v3/nbformat.v3.schema.json`.
"""

import json
import re

from rlvitals.readers.formats import column_guess
from rlvitals.startup.fast_dataclass import dataclass

# The first key of a cell or of an output.
OBJECT_START = re.compile(
    r'\{\s*"(?:cell_type|source|metadata|execution_count|attachments|id|collapsed|outputs'
    r'|output_type|data|name|text|ename|evalue|traceback|transient)"\s*:'
)
CELL_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a cell: `text` that was printed or shown, `html`, or the frames of an error."""

    kind: str  # "stdout", "stderr", "shown" or "error"
    text: str
    html: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its place in the notebook from 1, its source and its outputs."""

    number: int
    source: str
    outputs: tuple[Output, ...]


def read_cells(data: bytes) -> tuple[list[Cell], bool]:
    """Return the code cells, and True where the document is damaged or cut short."""
    text = data.decode("utf-8-sig", errors="replace")
    try:
        document = CELL_DECODER.decode(text)
    except (ValueError, RecursionError):
        items, is_damaged = _intact_cells(text), True
    else:
        items, is_damaged = _cells_of(document), False
    cells = [_cell(number, item) for number, item in enumerate(items, 1)]
    return [cell for cell in cells if cell is not None], is_damaged


def _cells_of(document: object) -> list[object]:
    if not isinstance(document, dict):
        return []
    sheets = document.get("worksheets")
    holders = [document, *(sheets if isinstance(sheets, list) else [])]
    lists = [holder.get("cells") for holder in holders if isinstance(holder, dict)]
    return [cell for cells in lists if isinstance(cells, list) for cell in cells]


def _intact_cells(text: str) -> list[object]:
    """Return the cells of a damaged document, a damaged one without what cannot be read of it."""
    match = re.search(r'"cells"\s*:\s*\[', text)
    position = match.end() if match else 0
    cells: list[object] = []
    outputs: list[object] = []  # of the last cell, where it is damaged
    failures = 0
    # After a thousand objects that do not parse, the rest is given up.
    while failures < 1000 and (start := OBJECT_START.search(text, position)) is not None:
        position = start.end()
        is_intact = True
        try:
            item, position = CELL_DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            failures += 1
            is_intact = False
            item = _close(text, start.start(), error)
            if isinstance(item, dict) and not item.keys().isdisjoint({"cell_type", "output_type"}):
                position = max(position, error.pos)
        except RecursionError:
            failures += 1
            continue
        if not isinstance(item, dict):
            continue
        if "cell_type" in item:
            outputs = item.setdefault("outputs", []) if not is_intact else []
            cells.append(item)
        elif "output_type" in item and isinstance(outputs, list):
            outputs.append(item)
    return cells


def _close(text: str, start: int, error: json.JSONDecodeError) -> object:
    """Parse the beginning of an object, up to where it goes wrong, with its brackets closed.

    Of a string that the document ends in, the complete lines count.
    """
    brackets: list[str] = []
    tokens = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
    for token in tokens.finditer(text, start, error.pos):
        if token[0] in "{[":
            brackets.append("}" if token[0] == "{" else "]")
        elif token[0] in "}]" and (not brackets or brackets.pop() != token[0]):
            return None
    tail = "".join(reversed(brackets))
    body = text[start : error.pos].rstrip(" \t\r\n,")
    attempts = [body, re.sub(r',?\s*"(?:[^"\\]|\\.)*"\s*:?$', "", body)]
    if error.msg.startswith("Unterminated string"):
        end = text.rfind("\\n", error.pos)
        attempts = [*([f'{text[start:end]}\\n"'] if end > 0 else []), *attempts]
    for attempt in attempts:
        try:
            return CELL_DECODER.decode(f"{attempt}{tail}")
        except (ValueError, RecursionError):
            continue
    return None


def _cell(number: int, item: object) -> Cell | None:
    if not isinstance(item, dict) or item.get("cell_type") != "code":
        return None
    outputs = item.get("outputs")
    parsed = (_output(output) for output in (outputs if isinstance(outputs, list) else []))
    source = _text(item.get("source", item.get("input")))
    return Cell(number, source, tuple(output for output in parsed if output is not None))


def _output(item: object) -> Output | None:
    """Return an output as text; None for a picture and for what has none."""
    if not isinstance(item, dict):
        return None
    kind = item.get("output_type")
    if kind == "stream":
        name = item.get("name", item.get("stream"))
        return Output("stderr" if name == "stderr" else "stdout", _text(item.get("text")))
    if kind in ("error", "pyerr"):
        last = f"{_text(item.get('ename'))}: {_text(item.get('evalue'))}".rstrip(": ")
        frames = item.get("traceback")
        lines = [_text(frame) for frame in frames] if isinstance(frames, list) else []
        return Output("error", "\n".join([*lines, last]))
    data = item.get("data", item)  # nbformat 3 has the texts in the output itself
    if not isinstance(data, dict):
        return None
    text = _text(data.get("text/plain", data.get("text")))
    html = _text(data.get("text/html", data.get("html")))
    return Output("shown", text, html) if text or html else None


def _text(value: object) -> str:
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def name_numbers(text: str, source: str) -> str:
    """Return printed text with a name before each number that is alone on its line.

    It is that of the measure in the only `print` of a source that has no text of its own,
    `print(np.mean(total_rewards[-10:]))`. A reward of a single step is none.
    """
    prints = re.findall(r"^[ \t]*print\(([^\n'\"#]+)\)[ \t]*(?:#.*)?$", source, re.MULTILINE)
    printed = prints[0] if len(prints) == 1 else ""
    names = {name for name in re.findall(r"[A-Za-z_]\w*", printed) if column_guess.is_measure(name)}
    of_episodes = re.search(r"total|ep_|episode|mean|avg|average|sum|score|return", printed)
    number = r"^[ \t]*([-+]?\d[\d.]*(?:e[-+]?\d+)?)[ \t]*$"
    lines = re.findall(number, text, re.MULTILINE | re.IGNORECASE)
    if len(names) != 1 or not of_episodes or "loss" in printed or len(lines) < 10:
        return text
    (name,) = names
    if re.search(r"mean|average", printed):
        name = f"mean_{name}"
    elif measure := re.search(r"reward|return", name.lower()):
        name = f"episode_{measure[0]}"
    return re.sub(number, rf"{name}: \1", text, flags=re.MULTILINE | re.IGNORECASE)
