"""Find the lines that execute because of a line: itself, or the uses of a module-level name.

A line of a function is executed by tests. A constant, a setting or a descriptor is executed once,
as its module loads: what uses it, in whatever module, shows whether it is right.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SOURCE = Path("src/rlvitals")


def executed_with(path: str, line: int, last_line: int) -> list[tuple[str, int]]:
    """Return the places, by file and line, whose tests judge a change of a line.

    Paths are relative to the current folder, the root of the tree.
    """
    tree = _tree(path)
    if _is_in_function(tree, line):
        return [(path, number) for number in range(line, last_line + 1)]
    names = set(_assigned(tree, line))
    own_uses = [(path, number) for name in names for number in _uses(path).get(name, ())]
    if own_uses:
        return own_uses
    other_uses = [
        (module, number)
        for module in _modules()
        for name in names
        for number in _uses(module).get(name, ())
    ]
    return other_uses or [(path, number) for lines in _uses(path).values() for number in lines]


def _is_in_function(tree: ast.Module, line: int) -> bool:
    return any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS[:2])
    )


def _assigned(tree: ast.Module, line: int) -> Iterator[str]:
    """Name what the statement on a line defines: a constant, or a class of which it is a field."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id


@cache
def _uses(path: str) -> dict[str, list[int]]:
    """Return the lines of a module's functions that use a name or an attribute of that name."""
    uses: dict[str, list[int]] = {}
    for function in ast.walk(_tree(path)):
        if isinstance(function, FUNCTIONS[:2]):
            for node in ast.walk(function):
                name = getattr(node, "id", None) or getattr(node, "attr", None)
                if name and hasattr(node, "lineno"):
                    uses.setdefault(name, []).append(node.lineno)
    return uses


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text())


@cache
def _modules() -> list[str]:
    return sorted(path.as_posix() for path in SOURCE.rglob("*.py"))
