"""The training code of this process: its files, and digests that ignore comments.

Training code is what is loaded from outside the standard library and the folders of installed
packages: `__main__`, the modules of a project, editable installs, and the trainers of this
package. Installed packages are compared by their versions (`provenance`).

Each file has two digests, of its text and of its syntax tree. The tree excludes positions,
comments and docstrings. It is built on a thread, soon after the import, because a file can be
edited while the training runs. A module that is loaded later is read at the next save.
"""

import ast
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from rlvitals.startup.fast_dataclass import dataclass

MAX_TREE_BYTES = 4 << 20  # of source in all: a tree costs about 0.8 s of CPU time per MB
MAX_TREE_FILE_BYTES = 128 << 10  # the parser keeps the GIL for a complete file
MAX_NAMED_FILES = 5  # of files in one sentence
NO_FILE_DIGEST = "?"  # the digest of code that has no file
MAIN_MODULE = "__main__"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between the training code and the code that saved a checkpoint, as sentences."""

    differs: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()  # what cannot be compared


@dataclass(slots=True)
class _File:
    path: Path | None
    spec: ModuleSpec | None  # another one after a reload
    text: str
    tree: str = ""  # empty: not built yet, or not possible
    source: bytes | None = None  # until the tree is built

    @property
    def digest(self) -> str:
        return f"{self.text} {self.tree}".strip()


class TrainingCode:
    """The training code that this process has loaded."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._files: dict[str, _File] = {}
        self._seen: dict[str, ModuleSpec | None] = {}  # every module
        self._tree_bytes = 0
        self._recorded: list[dict[str, str]] = []
        self.forget_threads()

    def forget_threads(self) -> None:
        """Make new locks: a forked process has none of its parent's threads."""
        self._thread: threading.Thread | None = None
        self._reading, self._building = threading.Lock(), threading.Lock()

    def begin(self) -> None:
        """Read the loaded modules on a thread; only the first call does so."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.record, name="rlvitals-code", daemon=True)
            self._thread.start()

    def record(self) -> dict[str, str]:
        """Return the digests of the modules loaded so far, by file name."""
        files = self._read()
        for file in files.values():
            self._build_tree(file)
        result = {name: file.digest for name, file in sorted(files.items())}
        if result not in self._recorded:
            self._recorded.append(result)
        return result

    def compare(self, sealed: Mapping[str, str]) -> Comparison:
        """Compare with the digests that a checkpoint recorded."""
        if not sealed:
            return Comparison((), ("the checkpoint does not record the training code",))
        files = self._read()
        changed: list[str] = []
        missing: list[str] = []
        hidden: list[str] = []
        for name, then in sealed.items():
            file = files.get(name) or _find_file(name, files)
            if NO_FILE_DIGEST in {then, file.text if file is not None else ""}:
                hidden.append(
                    "code without a file (a notebook, -c)" if name == MAIN_MODULE else name
                )
            elif file is None:
                # Where its folder is there, the file was deleted.
                has_folder = any((root / name).parent.is_dir() for root in _import_roots(files))
                (missing if has_folder else hidden).append(name)
            elif not self._is_same(file, then):
                changed.append(name)
        # What this process itself saved it saved before it loaded more of the same program.
        is_saved_here = dict(sealed) in self._recorded
        new = [name for name in files if name not in sealed and not is_saved_here]
        groups = ((changed, "changed"), (new, "{} new"), (missing, "{} gone"))
        differs = tuple(
            f"{_join(names)} {verb.format('is' if len(names) == 1 else 'are')}"
            for names, verb in groups
            if names
        )
        return Comparison(differs, (f"{_join(hidden)} cannot be compared",) if hidden else ())

    def _is_same(self, file: _File, then: str) -> bool:
        text, _, tree = then.partition(" ")
        if file.text == text:
            return True
        self._build_tree(file)
        return bool(tree) and file.tree == tree

    def _build_tree(self, file: _File) -> None:
        with self._building:
            source, file.source = file.source, None
            if source is not None and self._tree_bytes + len(source) <= MAX_TREE_BYTES:
                self._tree_bytes += len(source)
                file.tree = tree_digest(source)

    def _read(self) -> dict[str, _File]:
        """Read the files of modules that were loaded since the last call."""
        with self._reading:
            loaded = sys.modules.copy()  # a garbage collection within a loop over it may import
            new = [(name, module) for name, module in loaded.items() if self._is_new(name, module)]
            for name, path, spec in _modules(new):
                previous = self._files.get(name)
                if previous is None or (spec is not None and previous.spec is not spec):
                    self._files[name] = _make_file(path, spec)
            return dict(self._files)

    def _is_new(self, name: str, module: ModuleType | None) -> bool:
        """Return whether a module was loaded, or reloaded, since the last call."""
        spec = getattr(module, "__spec__", None)
        if module is None or (name in self._seen and self._seen[name] is spec):
            return False
        self._seen[name] = spec
        return True


def tree_digest(source: bytes) -> str:
    """Return a digest of a program without its layout; "" if Python cannot parse it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    tokens: list[str] = []
    try:
        _write_tokens(tree, tokens)
    except RecursionError:
        return ""
    return _digest("\n".join(tokens).encode(errors="surrogatepass"))


def _write_tokens(node: ast.AST, tokens: list[str]) -> None:
    """Write a tree as words. Empty fields are omitted: versions of Python differ in them."""
    tokens.append(type(node).__name__)
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None and not (isinstance(node, ast.Constant) and name == "value"):
            continue
        if value == [] or name in {"ctx", "kind", "type_comment"}:
            continue
        tokens.append(name)
        if isinstance(value, list):
            values = _without_docstring(node, value) if name == "body" else value
            tokens.append(str(len(values)))
        else:
            values = [value]
        for entry in values:
            if isinstance(entry, ast.AST):
                _write_tokens(entry, tokens)
            else:
                tokens.append(repr(entry))


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    documented = isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    )
    if documented and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[1:] if isinstance(body[0].value.value, str) else body
    return body


def _modules(
    loaded: Iterable[tuple[str, ModuleType]],
) -> Iterator[tuple[str, Path | None, ModuleSpec | None]]:
    """Yield the training code of loaded modules: `__main__` first, each file once."""
    # The folders of the standard library, and of the commands of installed packages.
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "scripts")]
    if site.USER_BASE:
        folders.append(f"{site.USER_BASE}/bin")
    places, paths = tuple(_normalise_path(entry) for entry in folders if entry), set()
    for name, module in sorted(loaded, key=lambda pair: (pair[0] != MAIN_MODULE, pair[0])):
        spec = getattr(module, "__spec__", None)
        dotted = spec.name if spec is not None and name == MAIN_MODULE else name
        path = _module_path(module)
        if path is None:
            if name == MAIN_MODULE:
                yield MAIN_MODULE, None, spec
            continue
        if path in paths or not _is_training_code(dotted, path, places):
            continue
        paths.add(path)
        # From the import root on: the same on another machine.
        segments = dotted.split(".")
        if dotted in {MAIN_MODULE, "__mp_main__"}:
            segments = [path.name]
        elif path.stem == "__init__" or (len(segments) > 1 and path.parent.name == segments[-1]):
            segments = [*segments, path.name]
        else:
            segments = [*segments[:-1], path.name]
        file_name = "/".join(segments)
        yield file_name, path, spec


def _module_path(module: ModuleType) -> Path | None:
    try:
        file = module.__file__
    except Exception:  # noqa: BLE001 - some modules run code of their own for each attribute
        return None
    if not isinstance(file, str) or file.startswith("<"):  # "<stdin>"
        return None
    return _normalise_path(file)


def _is_training_code(dotted: str, path: Path, places: tuple[Path, ...]) -> bool:
    top = dotted.partition(".")[0]
    if top == "rlvitals":
        return f"{dotted}.".startswith("rlvitals.trainers.")
    if top.startswith(("pydev", "_pydev", "debugpy")) or _in_package_folder(path, places):
        return False
    # A package may write modules of its own elsewhere, as torch does with compiled graphs.
    package = _module_path(sys.modules[top]) if top in sys.modules and top != dotted else None
    return package is None or not _in_package_folder(package, places)


def _in_package_folder(path: Path, places: tuple[Path, ...]) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or any(
        entry in path.parents for entry in places
    )


def _normalise_path(path: str) -> Path:
    """Make a path absolute. Links stay: some installers link packages to a cache."""
    return Path(os.path.normpath(Path(path).absolute()))


def _make_file(path: Path | None, spec: ModuleSpec | None) -> _File:
    source = None if path is None else _read_source(path, spec)
    if source is None:
        return _File(path, spec, NO_FILE_DIGEST)
    small = path is not None and path.suffix not in {".so", ".pyd", ".pyc"}
    small = small and len(source) <= MAX_TREE_FILE_BYTES
    return _File(path, spec, _digest(source), source=source if small else None)


def _read_source(path: Path, spec: ModuleSpec | None) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        read = getattr(getattr(spec, "loader", None), "get_data", None)  # of an archive, say
    try:
        data = read(str(path)) if read is not None else None
    except Exception:  # noqa: BLE001 - a loader of others
        return None
    return data if isinstance(data, bytes) else None


def _find_file(name: str, files: Mapping[str, _File]) -> _File | None:
    """Read a file that is not loaded (yet) from where it would be imported."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        return None
    paths = (root / name for root in _import_roots(files))
    return next((_make_file(path, None) for path in paths if path.is_file()), None)


def _import_roots(files: Mapping[str, _File]) -> list[Path]:
    """Return the folders that training code is imported from."""
    result = [Path(entry or ".") for entry in sys.path]
    for name, file in files.items():
        if file.path is not None:
            result.append(file.path.parents[name.count("/")])
    return list(dict.fromkeys(result))


def _join(names: Iterable[str]) -> str:
    every = sorted(names)
    if len(every) > MAX_NAMED_FILES:
        return f"{', '.join(every[:MAX_NAMED_FILES])} and {len(every) - MAX_NAMED_FILES} more"
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1])))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


code = TrainingCode()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=code.forget_threads)
