"""Parse Python values in text: settings and literals; nothing is executed."""

import ast
import math
import re
import warnings

from rlvitals.readers.formats.columns import parse_number
from rlvitals.types import Setting

MAX_LITERAL_CHARACTERS = 2**20  # characters
BOOLEAN_NAMES = {"True": True, "true": True, "False": False, "false": False}
INTEGER_TEXT = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")


def setting(text: str) -> Setting | None:
    """Return a setting that was written as text as what it was; None for an empty one and None."""
    if text in BOOLEAN_NAMES:
        return BOOLEAN_NAMES[text]
    if INTEGER_TEXT.fullmatch(text):
        return int(text)
    try:
        return text if re.match(r"0\d", text) else parse_number(text)  # "007" is a name
    except ValueError:
        return text


def parse_literal(text: str) -> object:
    """Return the value of a Python literal; `nan` and `inf` count, unknown parts are None.

    Dicts, lists, tuples, numbers, strings, booleans. Raises ValueError for text that is no
    literal, is over 1 MiB, or nests too deep.
    """
    if len(text) > MAX_LITERAL_CHARACTERS:
        problem = f"a cell of {len(text)} characters"
        raise ValueError(problem)
    return _value(_tree(text.strip()), 0)


def _tree(text: str) -> ast.expr:
    for opaque in (False, True):
        # What objects that are no literals print as: `<class 'a.B'>`, `<function f at 0x7f>`.
        object_repr = r"<(?:class|function|bound method|module|[\w.]+ object)[^<>]*>"
        attempt = re.sub(object_repr, "None", text) if opaque else text
        try:
            with warnings.catch_warnings():  # of odd escapes in a stranger's strings
                warnings.simplefilter("ignore")
                return ast.parse(attempt, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    problem = f"not a Python literal: {text[:40]!r}"
    raise ValueError(problem)


def _value(node: ast.expr, depth: int) -> object:  # noqa: PLR0911  # one return a kind
    if depth > 32:
        return None
    match node:
        case ast.Constant(str(text)):
            return text.encode(errors="replace").decode()  # half a surrogate pair cannot be shown
        case ast.Constant(constant):
            return constant
        case ast.Name(name):
            float_names = {"nan": math.nan, "inf": math.inf, "NaN": math.nan, "Infinity": math.inf}
            return float_names.get(name)
        case ast.Dict(keys, values):
            return {
                _value(key, depth + 1): _value(value, depth + 1)
                for key, value in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant)
            }
        case ast.List(items) | ast.Tuple(items):
            return [_value(item, depth + 1) for item in items]
        case ast.UnaryOp(ast.USub(), operand):
            value = _value(operand, depth + 1)
            return -value if isinstance(value, int | float) else None
    return None
