"""Generate the mutants of a Python file: one changed expression or statement each."""

import ast
import difflib
import math
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.Mult,
}  # fmt: skip
SWAPS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin",
         "minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor",
         "no_grad": "enable_grad", "inference_mode": "enable_grad"}  # fmt: skip
# `x.detach()` becomes `x`, `abs(x)` becomes `x`.
METHODS_DROPPED = {"detach", "clone", "copy", "abs", "relu"}
FUNCTIONS_DROPPED = {"abs", "sorted", "round", "relu"}
# A default of a setting is a choice, and the generated page of the settings holds it.
CALLS_SKIPPED = {"option", "field", "TypeVar"}
CHANGED_AS_SUCH = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # where a condition is one
STRINGS = (ast.JoinedStr, ast.List, ast.Tuple)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. Offsets are in bytes of the UTF-8 source."""

    path: str  # relative to the root of the tree
    line: int  # 1-based, where the changed text begins
    last_line: int
    start: int
    end: int
    before: str
    after: str
    kind: str  # of the change: "comparison", "constant"

    def applied(self, source: bytes) -> bytes:
        """Return the source of the file with the change in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """Return the change as a unified diff without its heading and context."""
        old, new = source.decode().splitlines(), self.applied(source).decode().splitlines()
        lines = difflib.unified_diff(old, new, lineterm="", n=0)
        return "\n".join(line for line in lines if line[:3] not in {"---", "+++"})


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file in the order of its text."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    mutant_list = []
    for node, new, kind in _changes(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before, after = source[start:end].decode(), _text(node, new)
        if before == after:
            continue
        last = node.end_lineno or node.lineno
        mutant = Mutant(path, node.lineno, last, start, end, before, after, kind)
        if _compiles(mutant.applied(source)):
            mutant_list.append(mutant)
    return sorted(mutant_list, key=lambda item: (item.start, item.end, item.after))


def _text(old: ast.AST, new: ast.AST) -> str:
    text = ast.unparse(new)
    return text if isinstance(old, ast.stmt | ast.Constant | ast.Name) else f"({text})"


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST, str]]:
    for node in _mutable(tree):
        yield from _of_statement(node)
        match node:
            case ast.Compare(ops=[first, *rest]):
                for replacement in COMPARISONS[type(first)]:
                    yield (
                        node,
                        ast.Compare(node.left, [replacement(), *rest], node.comparators),
                        "compare",
                    )
            case ast.BinOp(op=op) if not _is_text(node):
                new = ast.BinOp(node.left, OPERATORS.get(type(op), type(op))(), node.right)
                yield node, new, "arithmetic"
            case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
                yield node, node.operand, "sign"
            case ast.BoolOp(op=op, values=values):
                replacement = ast.Or() if isinstance(op, ast.And) else ast.And()
                yield node, ast.BoolOp(replacement, values), "and/or"
            case ast.IfExp():
                yield node, ast.IfExp(_negated(node.test), node.body, node.orelse), "condition"
            case ast.Constant():
                yield from ((node, new, "constant") for new in _constants(node))
            case ast.Call():
                yield from _of_call(node)


def _of_statement(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST, str]]:
    match node:
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield node, ast.Return(ast.Constant(None)), "return"
        case ast.AugAssign(op=op, target=target, value=value) if not isinstance(value, STRINGS):
            replacement = OPERATORS.get(type(op), type(op))
            yield node, ast.AugAssign(target, replacement(), value), "arithmetic"
        case ast.Expr(value=ast.Call()):
            yield node, ast.Pass(), "dropped call"
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, CHANGED_AS_SUCH):
            yield test, ast.UnaryOp(ast.Not(), test), "condition"
        case ast.Break():
            yield node, ast.Continue(), "jump"
        case ast.Continue():
            yield node, ast.Break(), "jump"


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, ast.AST, str]]:
    match node.func:
        case ast.Name(id=name) if name in SWAPS:
            yield node.func, ast.Name(SWAPS[name]), "swap"
        case ast.Name(id=name) if name in FUNCTIONS_DROPPED and node.args:
            yield node, node.args[0], "dropped call"
        case ast.Attribute(value=value, attr=name) if name in SWAPS:
            yield node.func, ast.Attribute(value, SWAPS[name]), "swap"
        case ast.Attribute(value=value, attr=name) if name in METHODS_DROPPED:
            module = isinstance(value, ast.Name) and value.id in {"np", "torch"}
            yield node, node.args[0] if module and node.args else value, "dropped call"


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without annotations, decorators, docstrings, imports and messages of errors."""
    for name, child in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params", "bases"}:
            continue
        for subnode in child if isinstance(child, list) else [child]:
            if not isinstance(subnode, ast.AST) or _is_skipped(subnode):
                continue
            yield subnode
            yield from _mutable(subnode)


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Raise() | ast.Assert():
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in CALLS_SKIPPED:
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Import() | ast.ImportFrom():
            return True
    return False


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operator joins or formats texts or lists, not numbers."""
    operands = (node.left, node.right)
    return (
        any(
            isinstance(operand, STRINGS)
            or (isinstance(operand, ast.Constant) and isinstance(operand.value, str))
            for operand in operands
        )
        or type(node.op) not in OPERATORS
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _negated(test: ast.expr) -> ast.expr:
    return (
        test.operand
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        else (ast.UnaryOp(ast.Not(), test))
    )


def _constants(node: ast.Constant) -> Iterator[ast.Constant]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, float) and math.isfinite(value):
        yield ast.Constant(value * 2 or 1.0)
        yield ast.Constant(value / 2 or -1.0)
