"""Check names of files from untrusted sources: valid on every system, and below their folder."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath


def find_problem(name: str) -> str:
    """Return why a name is refused; "" if it is valid."""
    path = PurePosixPath(name)
    sizes = [len(segment.encode(errors="surrogatepass")) for segment in path.parts]
    # Linux's limits, in bytes.
    is_short = sum(sizes) + len(sizes) <= 4096 and max(sizes, default=0) <= 255
    checks = (
        ("it is an absolute path", path.is_absolute() or re.match(r"[A-Za-z]:", name) is not None),
        ("it leads out of the folder", ".." in path.parts),
        ("it has a backslash", "\\" in name),
        ("it is not a plain path", str(path) != name or not path.parts),
        ("it has characters that cannot be shown", not name.isprintable()),
        ("it is too long", not is_short),
    )
    return next((reason for reason, applies in checks if applies), "")


def find_clashes(names: Iterable[str]) -> dict[str, str]:
    """Return the names that conflict with an earlier one on some system, and why."""
    names_by_key: dict[str, str] = {}
    folders: dict[str, str] = {}
    reasons = {}
    for name in names:
        key = _comparison_key(name)
        parents = [
            _comparison_key(str(parent)) for parent in PurePosixPath(name).parents if parent.parts
        ]
        if name in names_by_key.values():
            reasons[name] = "it is there twice"
        elif key in names_by_key:
            reasons[name] = f"it differs from {names_by_key[key]} in case alone"
        elif key in folders or any(parent in names_by_key for parent in parents):
            reasons[name] = "it is a file and a folder"
        else:
            names_by_key[key] = name
            folders |= dict.fromkeys(parents, name)
    return reasons


def _comparison_key(name: str) -> str:
    """Return a key that is equal for names that some file system treats as equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())
