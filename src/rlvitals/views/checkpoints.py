"""Render a run's checkpoints for the terminal, the one to resume from first."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.checkpoints.inspect_run import CheckpointState, Inspection
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
    answer = Group(*lines)
    blocks: list[RenderableType] = [answer]
    if inspection.seen:
        rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
        for title in ("", "step", "saved", "size", "state", "health", "kept because"):
            rows.add_column(title, justify="right" if title in {"step", "size"} else "left")
        for checkpoint in reversed(inspection.seen):
            resume_point = inspection.taken
            is_next = resume_point is not None and checkpoint.folder == resume_point.folder
            rows.add_row(
                Text("▸" if is_next else "", "bold green"),
                f"{checkpoint.step:,}",
                Text("" if checkpoint.saved is None else clock.date(checkpoint.saved), "dim"),
                size(checkpoint.size),
                Text(checkpoint.state.value, CHECKPOINT_COLOURS.get(checkpoint.state, "dim")),
                harmless(checkpoint.health, 40) if checkpoint.health else Text("-", "dim"),
                Text(", ".join(checkpoint.kept), "dim"),
            )
        blocks += [Text(), rows]
    if damaged := [checkpoint for checkpoint in inspection.seen if checkpoint.why]:
        names = [harmless(entry.folder.name) for entry in reversed(damaged)]
        reasons = grid(max(map(len, names)))
        for name, entry in zip(names, reversed(damaged), strict=True):
            reasons.add_row(Text(name, "dim"), harmless(entry.why))
        blocks += [Text(), reasons]
    return Group(*blocks)


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
