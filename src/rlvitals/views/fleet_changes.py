"""What is said of all runs together, below them: what is new, gone, muted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from rlvitals.diagnosis.baseline import FAILED, UNTOLD, Gone, Judged, entries
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import harmless

Read = Sequence[tuple[str, Diagnosis]]  # runs by name
MOST = 12  # muted findings that are named one by one


def wrote(file: Path, runs: Sequence[Judged]) -> str:
    """Say how much a baseline holds."""
    count = sum(len(entries(run.found)) for run in runs)
    held = sum(bool(entries(run.found)) for run in runs)
    return f"{file} holds {_findings(count)} of {held} run{'' if held == 1 else 's'} now"


def lines(runs: Read, gone: Mapping[str, Sequence[Gone]]) -> list[str]:
    """Say what a baseline lacks, run by run, and what of it is gone. One run has said the first."""
    said = _new(runs) if len(runs) > 1 else []
    for file, lost in gone.items():
        if lost:
            where = f"--write-baseline {file}"
            what = ", ".join(f"{one.known.rule} in {one.run}" for one in lost[:MOST])
            more = f" and {len(lost) - MOST} more" if len(lost) > MOST else ""
            are = "is" if len(lost) == 1 else "are"
            said.append(
                f"{len(lost)} of the baseline's findings {are} gone: rewrite it ({where}): "
                f"{what}{more}"
            )
    return said


def _new(runs: Read) -> list[str]:
    said, known = [], 0
    for name, found in runs:
        if found.new is None:
            continue
        known += sum(one.rule not in found.new for one in entries(found))
        said += [
            f"new: {name}: {one.severity.name.lower()}[{rule.name}] {one.summary}"
            for rule, one in found.findings
            if rule.name in found.new
        ]
        said += [
            f"new: {name}: {found.verdict.why}" for one in (FAILED, UNTOLD) if one in found.new
        ]
    if all(found.new is None for _, found in runs):
        return []
    return [*said, f"{len(said) or 'none'} new, {known} known by the baseline"]


def muted(runs: Read) -> list[str]:
    """Count what is muted, over several runs: one run has said so itself."""
    hits = [(name, one) for name, found in runs for one in found.muted]
    if len(runs) < 2 or not hits:  # noqa: PLR2004 - several
        return []
    named = "; ".join(f"{one.rule.name} in {name} ({one.reason})" for name, one in hits[:MOST])
    more = f"; and {len(hits) - MOST} more" if len(hits) > MOST else ""
    return [f"{len(hits)} muted: {named}{more}"]


def block(said: Sequence[str]) -> RenderableType:
    """Lay the lines out below the runs: what is new stands out."""
    text = Text()
    for line in said:
        text.append(f"\n{harmless(line)}", "" if line.startswith("new: ") else "dim")
    return text


def _findings(count: int) -> str:
    return f"{count:,} finding{'' if count == 1 else 's'}"
