"""Assign files in other folders to the run they belong to."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from rlvitals.readers import trainer_state
from rlvitals.readers.discovery import settings_files
from rlvitals.readers.discovery.run_names import (
    CHECKPOINT_FOLDER,
    TRACKED_RUN_FOLDER,
    TRACKER_FOLDERS,
    up,
)
from rlvitals.readers.reader import Reader

Groups = dict[Path, list[tuple[Path, Reader]]]  # by the run's folder


def settings_of(
    files: Iterable[Path], root: Path, homes: Collection[Path]
) -> dict[Path, list[Path]]:
    """Return the files of settings that belong to the run at each home.

    They lie in the run's folder, in one just below it (rl-zoo), or above it where it is the only
    run there (Hydra, DVC); ML-Agents' are every behaviour's. Of a trainer's checkpoints, which
    all hold the same, the first is taken.
    """
    by_home: dict[Path, dict[tuple[Path, str], Path]] = defaultdict(dict)
    models: dict[Path, list[Path]] = defaultdict(list)
    for file in filter(settings_files.is_settings, files):
        folder = up(file.parent, root)
        owners = [folder]
        if folder not in homes:
            owners = [home for home in homes if home.is_relative_to(folder)]
            if file.name.startswith(settings_files.ML_AGENTS_PREFIX):
                owners = [home for home in owners if home.parent == folder]
            elif len(owners) > 1:
                owners = []
        if not owners and folder != root and folder.parent in homes:
            owners = [folder.parent]
        location = folder if CHECKPOINT_FOLDER.fullmatch(file.parent.name) else file.parent
        for owner in owners:
            if file.suffix == ".zip":
                models[owner].append(file)
            else:
                by_home[owner].setdefault((location, file.name), file)
    settings = defaultdict(list, {home: list(files.values()) for home, files in by_home.items()})
    for home, saved in models.items():
        settings[home] += settings_files.newest_of_each(saved)
    return settings


def adopt_trainer_runs(groups: Groups) -> None:
    """Hand `<output>/runs/<start>/events*` of Hugging Face's Trainer to `<output>`'s run."""
    for home in sorted(groups):
        owner = home.parent.parent
        if (
            home.parent.name == "runs"
            and owner in groups
            and any(reader.name == trainer_state.READER.name for _, reader in groups[owner])
        ):
            groups[owner] += groups.pop(home)


def adopt_tracked_runs(groups: Groups) -> None:
    """Join a tracker's folders of one run; hand the only one under `<run>/wandb/` to `<run>`."""
    tracked: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for home in sorted(groups):
        if match := TRACKED_RUN_FOLDER.fullmatch(home.name):
            tracked[home.parent][match[1]].append(home)
    for folder, runs in tracked.items():
        for first, *resumed in runs.values():
            for home in resumed:  # the same id: another attempt of the run
                groups[first] += groups.pop(home)
        if len(runs) == 1 and folder.name in TRACKER_FOLDERS and folder.parent in groups:
            ((home, *_),) = runs.values()
            groups[folder.parent] += groups.pop(home)
