"""The checkpoints of a run, for the terminal: which one a resume takes, then all of them."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.checkpoints.inspect_run import CheckpointState, CheckpointStatus, Inspection
from rlvitals.errors import harmless
from rlvitals.tracking import clock
from rlvitals.views.console import grid

COLOUR: Mapping[CheckpointState, str] = {
    CheckpointState.WHOLE: "green",
    CheckpointState.SEALED: "green",
    CheckpointState.DAMAGED: "bold red",
    CheckpointState.UNREADABLE: "bold red",
    CheckpointState.UNSEALED: "yellow",
}
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
HEADS = ("step", "saved", "size", "state", "health", "kept because")


def table(found: Inspection, differs: Sequence[str]) -> RenderableType:
    """Lay out the answer, then a line for each checkpoint."""
    blocks: list[RenderableType] = [_answer(found, differs)]
    if found.seen:
        blocks += [Text(), _rows(found)]
    if wrong := [one for one in found.seen if one.why]:
        blocks += [Text(), _whys(wrong)]
    return Group(*blocks)


def _answer(found: Inspection, differs: Sequence[str]) -> RenderableType:
    taken = found.taken
    if taken is None:
        head = Text.assemble(("A resume takes none", "bold"), f": {harmless(found.why)}")
    else:
        head = Text.assemble(
            ("A resume takes ", ""), (harmless(taken.folder.name), "bold"),
            f": {harmless(found.why)}",
        )  # fmt: skip
    lines = [head, *(Text(f"  but {harmless(one)}", "yellow") for one in differs)]
    if any(one.complete for one in found.seen):
        lines.append(Text(f"  try: rlvitals checkpoints {harmless(str(found.folder))} --seal"))
    return Group(*lines)


def _rows(found: Inspection) -> RenderableType:
    rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for head in ("", *HEADS):
        rows.add_column(head, justify="right" if head in {"step", "size"} else "left")
    for one in reversed(found.seen):
        rows.add_row(
            Text("▸" if _is(one, found.taken) else "", "bold green"),
            f"{one.step:,}",
            Text("" if one.saved is None else clock.date(one.saved), "dim"),
            size(one.size),
            Text(one.state.value, COLOUR.get(one.state, "dim")),
            harmless(one.health, 40) if one.health else Text("-", "dim"),
            Text(", ".join(one.kept), "dim"),
        )
    return rows


def _is(one: CheckpointStatus, other: CheckpointStatus | None) -> bool:
    return other is not None and one.folder == other.folder


def _whys(wrong: Sequence[CheckpointStatus]) -> RenderableType:
    names = [harmless(one.folder.name) for one in reversed(wrong)]
    rows = grid(max(map(len, names)))
    for name, one in zip(names, reversed(wrong), strict=True):
        rows.add_row(Text(name, "dim"), harmless(one.why))
    return rows


def size(count: int) -> str:
    """Write a number of bytes."""
    unit, one = next((pair for pair in UNITS if count >= pair[1]), ("B", 1.0))
    return f"{count / one:,.3g} {unit}" if unit != "B" else f"{count:,} B"


def facts(found: Inspection, differs: Sequence[str]) -> dict[str, object]:
    """Choose what `--json` tells."""
    return {
        "resume": None if found.taken is None else found.taken.folder.name,
        "why": found.why,
        "differs": list(differs),
        "of_other_programs": list(found.others),
        "checkpoints": [
            {
                "name": one.folder.name,
                "step": one.step,
                "state": one.state.value,
                "why": one.why,
                "bytes": one.size,
                "saved": one.saved,
                "health": one.health,
                "kept": list(one.kept),
                "complete": one.complete,
            }
            for one in found.seen
        ],
    }
