"""Find settings files, and decide which of their options may take effect.

A settings file near a run may have come with the run, from an archive or a shared folder. Such a
file sets how the run is judged. Options that write elsewhere, send data, use stored credentials,
read another file or start processes are taken only from the user's own settings: the file in the
configuration folder, the file that `--config` or `RLVITALS_CONFIG` names, the environment, flags.
"""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlvitals.errors import UsageError, harmless
from rlvitals.startup.fast_dataclass import dataclass

SETTINGS_FILE = "rlvitals.toml"
CONFIG_VARIABLE = "RLVITALS_CONFIG"
MAX_SETTINGS_BYTES = 1 << 20  # of a settings file
RESTRICTED_OPTIONS = {
    "diagnose": ("jobs",),
    "recording": ("mode", "folder", "mirror", "sinks", "alerts", "stop_on"),
}
CONFINED_OPTIONS = {"diagnose": ("baseline", "rates")}  # paths that must stay in the file's folder


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file; `distrust` is the reason to ignore its restricted options, or ""."""

    path: Path
    distrust: str = ""


def find(
    near: Path, environ: Mapping[str, str] | None = None, *, records: bool = False
) -> tuple[SettingsFile, ...]:
    """List the settings files for a run at `near`, the one that overrules the others last.

    `records`: the run is recorded, not looked at. Its own program runs then, so the project's file
    in the working folder or above it is the user's own. Raises UsageError for a file that
    `RLVITALS_CONFIG` names and that is not there.
    """
    user_folder = config_folder(environ or {})
    user_file = None if user_folder is None else user_folder / SETTINGS_FILE
    home = user_file if user_file is not None and _is_file(user_file) else None
    files = [] if home is None else [SettingsFile(home)]
    override = (environ or {}).get(CONFIG_VARIABLE, "")
    if override:
        path = Path(override).expanduser()
        if not _is_file(path):
            raise UsageError(
                "no such settings file", where=str(path), hint=f"{CONFIG_VARIABLE}, --config"
            )
        return (*files, SettingsFile(path))
    # Not `resolve`: it raises on a loop of links.
    start = near.absolute()
    folders = (start, *start.parents, Path.cwd())
    nearest = next(
        (folder / SETTINGS_FILE for folder in folders if _is_file(folder / SETTINGS_FILE)), None
    )
    if nearest is not None and nearest != home:
        files.append(SettingsFile(nearest, _distrust(nearest, start, records=records)))
    return tuple(files)


def read(file: SettingsFile) -> bytes:
    """Return the bytes of a settings file. Raises OSError; UsageError for one that is too large."""
    with file.path.open("rb") as stream:
        data = stream.read(MAX_SETTINGS_BYTES + 1)
    if len(data) > MAX_SETTINGS_BYTES:
        raise UsageError(
            f"a settings file of more than {MAX_SETTINGS_BYTES >> 20} MiB", where=str(file.path)
        )
    return data


def drop_restricted(
    file: SettingsFile, sections: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Remove the options that an untrusted file may not set, with one warning for each."""
    allowed = {name: dict(values) for name, values in sections.items()}
    if not file.distrust:
        return allowed
    for section, key in _options(RESTRICTED_OPTIONS, allowed):
        del allowed[section][key]
        _warn_once(f"{section}.{key} in {file.path} is ignored: {file.distrust}; {_alternatives()}")
    for section, key in _options(CONFINED_OPTIONS, allowed):
        if not _is_inside(file.path.parent, str(allowed[section][key])):
            del allowed[section][key]
            reason = "it names a file outside the folder of the settings file"
            _warn_once(f"{section}.{key} in {file.path} is ignored: {reason}; {_alternatives()}")
    return allowed


def _options(
    names: Mapping[str, tuple[str, ...]], sections: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    for section, keys in names.items():
        yield from ((section, key) for key in keys if key in sections.get(section, {}))


def config_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's configuration folder, whether it exists or not; None without a home."""
    try:
        base = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    except RuntimeError:  # no home folder
        return None
    return base / "rlvitals"


def _distrust(path: Path, start: Path, *, records: bool) -> str:
    """Return the reason why a file next to a run is not the user's own; "" where it is."""
    folder = path.parent
    if not records or (folder.is_relative_to(start) and folder != Path.cwd()):
        return "the file lies with the run"
    if any(_is_file(above / "run.json") for above in (folder, *folder.parents)):
        return "the file lies in a run folder"
    if not Path.cwd().is_relative_to(folder):
        return "the file is not in the working folder or above it"
    try:
        owner = path.stat().st_uid
    except OSError:
        return "its owner is not known"
    trusted_owners = {0, os.geteuid()} if hasattr(os, "geteuid") else {owner}
    return "" if owner in trusted_owners else "the file belongs to another user"


def _is_inside(folder: Path, name: str) -> bool:
    """Return whether a path leads to an ordinary file below a folder, links followed."""
    try:
        target = (folder / name).resolve(strict=True)
        return target.is_relative_to(folder.resolve()) and target.is_file()
    except (OSError, ValueError, RuntimeError):
        return not os.path.isabs(name) and ".." not in Path(name).parts  # noqa: PTH117 - a str


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no permission to look, a name that no file can have
        return False


def _alternatives() -> str:
    return f"set it by a flag, the environment, --config FILE or {CONFIG_VARIABLE}"


@lru_cache(maxsize=256)
def _warn_once(text: str) -> None:
    """Log once; a path may hold what a terminal obeys."""
    import logging  # noqa: PLC0415 - 3 ms, and few files have anything to say

    logging.getLogger(__name__).warning("%s", harmless(text))
