"""Render a run's checkpoints for the terminal, the one to resume from first."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.checkpoints.inspect_run import CheckpointState, CheckpointStatus, Inspection
from rlvitals.errors import harmless
from rlvitals.tracking import clock
from rlvitals.views.console import grid

CHECKPOINT_COLOURS: Mapping[CheckpointState, str] = {
    CheckpointState.WHOLE: "green",
    CheckpointState.SEALED: "green",
    CheckpointState.DAMAGED: "bold red",
    CheckpointState.UNREADABLE: "bold red",
    CheckpointState.UNSEALED: "yellow",
}


def table(inspection: Inspection, differs: Sequence[str]) -> RenderableType:
    """Render the checkpoint to resume from, then a row for each checkpoint."""
    blocks: list[RenderableType] = [_answer(inspection, differs)]
    if inspection.seen:
        blocks += [Text(), _rows(inspection)]
    if damaged := [checkpoint for checkpoint in inspection.seen if checkpoint.why]:
        blocks += [Text(), _whys(damaged)]
    return Group(*blocks)


def _answer(inspection: Inspection, differs: Sequence[str]) -> RenderableType:
    resume_point = inspection.taken
    if resume_point is None:
        head = Text.assemble(("A resume takes none", "bold"), f": {harmless(inspection.why)}")
    else:
        head = Text.assemble(
            ("A resume takes ", ""), (harmless(resume_point.folder.name), "bold"),
            f": {harmless(inspection.why)}",
        )  # fmt: skip
    lines = [head, *(Text(f"  but {harmless(difference)}", "yellow") for difference in differs)]
    if any(checkpoint.complete for checkpoint in inspection.seen):
        lines.append(Text(f"  try: rlvitals checkpoints {harmless(str(inspection.folder))} --seal"))
    return Group(*lines)


def _rows(inspection: Inspection) -> RenderableType:
    rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for head in ("", "step", "saved", "size", "state", "health", "kept because"):
        rows.add_column(head, justify="right" if head in {"step", "size"} else "left")
    for checkpoint in reversed(inspection.seen):
        rows.add_row(
            Text("▸" if _is(checkpoint, inspection.taken) else "", "bold green"),
            f"{checkpoint.step:,}",
            Text("" if checkpoint.saved is None else clock.date(checkpoint.saved), "dim"),
            size(checkpoint.size),
            Text(checkpoint.state.value, CHECKPOINT_COLOURS.get(checkpoint.state, "dim")),
            harmless(checkpoint.health, 40) if checkpoint.health else Text("-", "dim"),
            Text(", ".join(checkpoint.kept), "dim"),
        )
    return rows


def _is(checkpoint: CheckpointStatus, resume_point: CheckpointStatus | None) -> bool:
    return resume_point is not None and checkpoint.folder == resume_point.folder


def _whys(checkpoints: Sequence[CheckpointStatus]) -> RenderableType:
    names = [harmless(checkpoint.folder.name) for checkpoint in reversed(checkpoints)]
    rows = grid(max(map(len, names)))
    for name, checkpoint in zip(names, reversed(checkpoints), strict=True):
        rows.add_row(Text(name, "dim"), harmless(checkpoint.why))
    return rows


def size(count: int) -> str:
    """Format a number of bytes in the largest fitting decimal unit."""
    unit, factor = next(
        (pair for pair in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if count >= pair[1]), ("B", 1.0)
    )
    return f"{count / factor:,.3g} {unit}" if unit != "B" else f"{count:,} B"


def facts(inspection: Inspection, differs: Sequence[str]) -> dict[str, object]:
    """Return the members of the JSON document."""
    return {
        "resume": None if inspection.taken is None else inspection.taken.folder.name,
        "why": inspection.why,
        "differs": list(differs),
        "of_other_programs": list(inspection.others),
        "checkpoints": [
            {
                "name": checkpoint.folder.name,
                "step": checkpoint.step,
                "state": checkpoint.state.value,
                "why": checkpoint.why,
                "bytes": checkpoint.size,
                "saved": checkpoint.saved,
                "health": checkpoint.health,
                "kept": list(checkpoint.kept),
                "complete": checkpoint.complete,
            }
            for checkpoint in inspection.seen
        ],
    }
