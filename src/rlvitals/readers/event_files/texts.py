"""Parse settings that a script logs as text: a table, or a printed namespace.

CleanRL and its kin write a Markdown table as "hyperparameters": `|param|value|`, `|-|-|`, then
`|learning_rate|0.0003|` and so on. Tianshou's examples write `str(args)` as "args":
`Namespace(task='CartPole-v1', lr=0.001)`; transformers and TRL write `args.to_json_string()`.
"""

import ast
import json
import re
from collections.abc import Iterator

from rlvitals.readers.formats.literals import setting
from rlvitals.types import Setting


def settings_in(text: str) -> dict[str, Setting]:
    """Return the settings that a text consists of; empty for any other text."""
    text = text.strip()
    if text.startswith("Namespace("):
        return dict(_namespace(text[:50_000]))
    if text.startswith("{") and '"output_dir"' in text:
        try:  # transformers' arguments
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        plain = bool | int | float | str
        return {key: value for key, value in arguments.items() if isinstance(value, plain)}
    head, *rows = text.splitlines()[:10_000] or [""]
    settings: dict[str, Setting] = {}
    heading = r"(?i)\s*\|\s*(?:hyper)?param(?:eter)?s?\s*\|\s*values?\s*\|\s*"
    for row in rows if re.fullmatch(heading, head) else ():
        key, bar, cell = row.strip().removeprefix("|").partition("|")
        value = setting(cell.strip().removesuffix("|").strip())
        if bar and not re.fullmatch(r"[\s|:-]*", row) and key.strip() and value is not None:
            settings[key.strip()] = value
    return settings


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
