"""Keep the findings that were muted on the page, in the user's cache folder.

A mute holds for one rule of one run, on this server's pages. The served folder is not written;
`[[muted]]` in a settings file mutes for all commands.
"""

import json
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rlvitals.options import Mute
from rlvitals.settings import Settings
from rlvitals.storage import safe_files


class Mutes:
    """The muted rules by run, with their reasons. Any thread may call any method."""

    def __init__(self, path: Path | None) -> None:
        """Read the mutes of a file; a missing or damaged file has none. None: keep no file."""
        self._path = path
        self._lock = threading.Lock()
        self._reasons: dict[str, dict[str, str]] = {}  # by run and rule
        if path is None:
            return
        with suppress(OSError, ValueError, AttributeError):
            stored = json.loads(safe_files.read_regular(path))
            self._reasons = {
                str(key): {str(rule): str(reason) for rule, reason in rules.items()}
                for key, rules in stored.items()
            }

    def add(self, key: str, rule: str, reason: str) -> None:
        """Mute a rule of a run. Raises OSError where it cannot be kept."""
        with self._lock:
            self._reasons.setdefault(key, {})[rule] = reason
            self._write()

    def remove(self, key: str, rule: str) -> None:
        """Let a rule of a run count again. Raises OSError."""
        with self._lock:
            self._reasons.get(key, {}).pop(rule, None)
            self._write()

    def rules(self, key: str) -> frozenset[str]:
        """Return the rules that were muted here for a run."""
        with self._lock:
            return frozenset(self._reasons.get(key, {}))

    def apply(self, key: str, settings: Settings) -> Settings:
        """Return the settings by which a run is judged."""
        with self._lock:
            added = tuple(
                Mute(rule=rule, reason=reason, where="the live page")
                for rule, reason in sorted(self._reasons.get(key, {}).items())
            )
        return replace(settings, muted=(*settings.muted, *added)) if added else settings

    def _write(self) -> None:
        if self._path is None:
            return
        text = json.dumps({key: rules for key, rules in self._reasons.items() if rules})
        with safe_files.atomic_write(self._path) as file:
            file.write(text.encode())
