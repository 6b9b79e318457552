"""List the files under a folder in a reproducible order."""

import os
import re
from collections import Counter
from pathlib import Path

from rlvitals.errors import quantity

MAX_WALK_DEPTH = 12  # folders below the one that is walked
MAX_WALK_ENTRIES = 50_000  # files and folders looked at


class Walk:
    """Every file under a folder, once: `files` sorted by path, `notes` on what was left out.

    Hidden folders but Hydra's, packages, virtual environments and checkpoints that were set aside
    are left out; so is what a link shows a second time. Folders that cannot be opened, and limits
    that were reached, become notes.
    """

    def __init__(self, root: Path) -> None:
        """Walk `root`. Real files come before links: "latest" must not take a run's name."""
        self.files: list[Path] = []
        self.folders: list[Path] = []  # those that were looked into
        self.notes: list[str] = []
        self._root = root
        self._seen: set[tuple[int, int]] = set()
        self._entries = 0
        self._deep = 0
        links: list[tuple[Path, int]] = []
        folders = [(root, 0)]
        while (folders or links) and self._entries <= MAX_WALK_ENTRIES:
            self._visit(*(folders or links).pop(0), folders, links)
        self.files.sort(key=lambda path: path.parts)
        if self._entries > MAX_WALK_ENTRIES:
            self.notes.append(f"more than {MAX_WALK_ENTRIES:,} files: the rest was not looked at")
        if self._deep:
            self.notes.append(f"folders more than {MAX_WALK_DEPTH} deep were not looked at")

    def _visit(
        self,
        path: Path,
        depth: int,
        folders: list[tuple[Path, int]],
        links: list[tuple[Path, int]],
    ) -> None:
        """Take a file, or a folder's entries: folders and links are put off."""
        try:
            status = path.stat()
            key = (status.st_dev, status.st_ino)
            is_new = key not in self._seen
            self._seen.add(key)
            if not is_new or self._leads_up(path):
                return
            if not path.is_dir():
                self.files.append(path)
                return
            if depth > MAX_WALK_DEPTH:
                self._deep += 1
                return
            with os.scandir(path) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            name = path if path == self._root else path.relative_to(self._root)
            self.notes.append(f"cannot look into {name}: {error.strerror or error}")
            return
        if depth and any(entry.name == "pyvenv.cfg" for entry in children):
            return
        self.folders.append(path)
        for entry in children:
            self._entries += 1
            child = path / entry.name
            if entry.is_symlink():
                links.append((child, depth + 1))
            elif not entry.is_dir(follow_symlinks=False):
                self._visit(child, depth + 1, folders, links)
            elif _is_walked(entry.name):
                folders.append((child, depth + 1))

    def _leads_up(self, path: Path) -> bool:
        """Return True if a link shows a folder that holds the one that is walked: "up -> ..".

        What lies beside the walked folder, or on the whole machine, was not asked for. The walked
        folder itself may be a link.
        """
        if path == self._root or not path.is_symlink():
            return False
        root = Path(os.path.realpath(self._root))
        return root.is_relative_to(os.path.realpath(path))

    def kinds(self, max_kinds: int = 6) -> str:
        """Count the files by what their names end with: "12 .png, 2 .pt and 3 others"."""
        counts = Counter(path.suffix or "without an ending" for path in self.files)
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        text = ", ".join(f"{count:,} {suffix}" for suffix, count in ranked[:max_kinds])
        other_count = sum(count for _, count in ranked[max_kinds:])
        return f"{text} and {quantity(other_count, 'other')}" if other_count else text


def _is_walked(name: str) -> bool:
    is_skipped = (
        name.startswith(".")
        # Programs' folders hold no runs; a virtual environment also has a pyvenv.cfg.
        or name in {"node_modules", "__pycache__", "site-packages", "venv", "lost+found"}
        # Checkpoints set aside.
        or re.fullmatch(r"checkpoint-\d+\.(?:corrupt|other|before-fresh)(?:-\d+)?", name)
        is not None
    )
    return name == ".hydra" or not is_skipped  # hidden, but a run's: its settings
