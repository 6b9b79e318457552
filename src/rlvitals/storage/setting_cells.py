"""Settings of a run as the cells of an index: a key with slashes, a text and a number.

The scheduler's job and the seed stand among them, so that `job/id=7` and `seed=1` find a run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rlvitals.storage.events import Event
from rlvitals.storage.run_folder import About
from rlvitals.storage.run_query import SettingCell, job_text

JOB_SETTING = "job"  # the key below which the scheduler's job stands


def setting_cells(info: About) -> list[SettingCell]:
    """Return the settings of a run, its scheduler's job and its seed."""
    job = info.more.get("job")
    settings = {**info.settings, **({JOB_SETTING: job} if isinstance(job, Mapping) else {})}
    cells = [
        SettingCell(
            key, value if isinstance(value, str) else json.dumps(value), _number(value, key)
        )
        for key, value in _leaves(settings)
    ]
    if info.seed is not None:
        cells.append(SettingCell("seed", str(info.seed), float(info.seed)))
    return cells


def apply_changes(info: About, history: Iterable[Event]) -> About:
    """Return a run with its settings as they are now: a tracker's arrive after the start."""
    settings = dict(_leaves(info.settings))
    for event in history:
        changes = event.facts.get("changed") if event.kind == "settings" else None
        if isinstance(changes, Mapping):
            values = {key: change["to"] for key, change in changes.items()
                      if isinstance(change, Mapping) and "to" in change}  # fmt: skip
            settings |= dict(_leaves(values))
    return replace(info, settings=settings)


def job_of_cells(cells: Iterable[tuple[str, str]]) -> str:
    """Name the scheduler's job among the keys and texts of a run's settings; "" for none."""
    prefix = f"{JOB_SETTING}/"
    job = {key.removeprefix(prefix): text for key, text in cells if key.startswith(prefix)}
    return job_text(job) if {"scheduler", "id"} <= job.keys() else ""


def _leaves(settings: Mapping[str, object], within: str = "") -> Iterator[tuple[str, object]]:
    for key, value in settings.items():
        name = f"{within}/{key}" if within else str(key)
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        else:
            yield name, value


def _number(value: object, key: str) -> float | None:
    if isinstance(value, str) and value.isdecimal() and key.startswith(f"{JOB_SETTING}/"):
        return float(value)  # a scheduler's variables are texts
    return float(value) if isinstance(value, int | float) else None
