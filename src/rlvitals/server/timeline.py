"""Collect the marks on a run's step axis: checkpoints, attempts, changes of settings."""

from collections.abc import Iterator, Mapping

import numpy as np

from rlvitals.storage.events import Event
from rlvitals.views.report.markup import Html, el
from rlvitals.views.report.page import Subject
from rlvitals.views.report.tables import cell

MAX_TIMELINE_MARKS = 200  # of each kind, the newest
# Share of the points that an average spans, and its text; none: chosen by the noise of each curve.
AVERAGES = (
    ("", "automatic"), ("0", "none"), ("0.01", "over 1 %"), ("0.05", "over 5 %"),
    ("0.2", "over 20 %"),
)  # fmt: skip


def timeline(subject: Subject) -> dict[str, object]:
    """Return the `checkpoints`, the `changes` of settings and the `seams` of a run.

    A checkpoint is [step, lamp, text], a change [step, text], a seam an attempt's first step.
    """
    trace = subject.summary.found.trace
    checkpoints = sorted(_checkpoints(subject))[-MAX_TIMELINE_MARKS:]
    changes = [change for event in subject.events for change in _change(event)]
    attempts: list[int] = []
    starts = [event.time for event in subject.events if event.kind == "start"][1:]
    longest = max(trace.series.values(), key=len, default=None)
    if longest is not None and np.isfinite(longest.times).all():
        for start in starts:
            index = int(longest.times.searchsorted(start))
            if 0 < index < len(longest):
                attempts.append(int(longest.steps[index]))
    seams = {*trace.lifecycle.seams, *attempts}
    return {
        "checkpoints": checkpoints,
        "changes": changes[-MAX_TIMELINE_MARKS:],
        "seams": sorted(seams)[-MAX_TIMELINE_MARKS:],
    }


def _checkpoints(subject: Subject) -> Iterator[list[object]]:
    """Yield sealed checkpoints with the lamp of their health, and others that the log names."""
    inspection = subject.standing.checkpoints
    steps = set()
    for item in inspection.seen if inspection is not None else ():
        steps.add(item.step)
        health = item.health if item.usable else item.state.value
        text = f"checkpoint {item.folder.name} at {item.step:,}"
        lamp = _health_lamp(health) if item.usable else "bad"
        yield [item.step, lamp, f"{text}: {health}" if health else text]
    logged = {event.step for event in subject.events if event.kind == "checkpoint"}
    logged.update(subject.summary.found.trace.lifecycle.checkpoints)
    for step in logged - steps:
        if step is not None:
            yield [step, "unknown", f"checkpoint at {step:,}"]


def _health_lamp(health: str) -> str:
    """Return the lamp of a checkpoint's health: "healthy", what is wrong, or nothing known."""
    if health in {"", "not judged"}:
        return "unknown"
    return "good" if health == "healthy" else "watch"


def _change(event: Event) -> Iterator[list[object]]:
    changed = event.facts.get("changed")
    if event.kind != "settings" or event.step is None or not isinstance(changed, Mapping):
        return
    texts = [
        f"{name} {cell(value.get('from'))} → {cell(value.get('to'))}"
        for name, value in changed.items()
        if isinstance(value, Mapping)
    ]
    if texts:
        yield [event.step, ", ".join(texts)[:120]]


def legend(marks: Mapping[str, object]) -> Html:
    """Return what the marks on the charts' axes mean; empty without marks."""
    shapes = {
        "checkpoints": ("checkpoint", "M6 2l4 4l-4 4l-4 -4z", "checkpoint"),
        "seams": ("seam", "M6 0V12", "another attempt"),
        "changes": ("change", "M6 0V12", "changed settings"),
    }
    items = [
        el("span", el("svg", el("path", d=path, class_=name), aria_hidden="true"), text)
        for kind, (name, path, text) in shapes.items()
        if marks[kind]
    ]
    return el("p", *items, class_="about legend") if items else Html("")
