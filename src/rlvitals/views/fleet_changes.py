"""Write messages on several runs: new, missing and muted findings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from rlvitals.diagnosis.baseline import (
    CANNOT_TELL_FINDING,
    RUN_FAILED_FINDING,
    Gone,
    Judged,
    entries,
)
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import harmless, join_first, quantity

Read = Sequence[tuple[str, Diagnosis]]  # runs by name
MAX_LISTED_CHANGES = 12  # findings in one message


def describe_baseline(file: Path, runs: Sequence[Judged]) -> str:
    """Return the number of findings and runs in a baseline as a sentence."""
    count = sum(len(entries(run.found)) for run in runs)
    run_count = sum(bool(entries(run.found)) for run in runs)
    return f"{file} holds {quantity(count, 'finding')} of {quantity(run_count, 'run')} now"


def baseline_lines(runs: Read, missing_by_file: Mapping[str, Sequence[Gone]]) -> list[str]:
    """Return messages on new findings of several runs, and on the baseline's missing findings."""
    if len(runs) > 1:
        messages, known_count = [], 0
        for name, diagnosis in runs:
            if diagnosis.new is None:
                continue
            known_count += sum(finding.rule not in diagnosis.new for finding in entries(diagnosis))
            messages += [
                f"new: {name}: {finding.severity.name.lower()}[{rule.name}] {finding.summary}"
                for rule, finding in diagnosis.findings
                if rule.name in diagnosis.new
            ]
            messages += [
                f"new: {name}: {diagnosis.verdict.why}"
                for finding in (RUN_FAILED_FINDING, CANNOT_TELL_FINDING)
                if finding in diagnosis.new
            ]
        if all(diagnosis.new is None for _, diagnosis in runs):
            messages = []
        else:
            messages = [
                *messages,
                f"{len(messages) or 'none'} new, {known_count} known by the baseline",
            ]
    else:
        messages = []
    for file, missing in missing_by_file.items():
        if missing:
            command = f"--write-baseline {file}"
            names = join_first(
                [f"{entry.known.rule} in {entry.run}" for entry in missing], MAX_LISTED_CHANGES
            )
            verb = "is" if len(missing) == 1 else "are"
            messages.append(
                f"{len(missing)} of the baseline's findings {verb} gone: rewrite it ({command}): "
                f"{names}"
            )
    return messages


def muted_lines(runs: Read) -> list[str]:
    """Return a message on the muted findings of several runs; none for a single run."""
    hits = [(name, mute) for name, diagnosis in runs for mute in diagnosis.muted]
    if len(runs) < 2 or not hits:  # several
        return []
    names = "; ".join(
        f"{mute.rule.name} in {name} ({mute.reason})" for name, mute in hits[:MAX_LISTED_CHANGES]
    )
    more = f"; and {len(hits) - MAX_LISTED_CHANGES} more" if len(hits) > MAX_LISTED_CHANGES else ""
    return [f"{len(hits)} muted: {names}{more}"]


def render_messages(messages: Sequence[str]) -> RenderableType:
    """Render the messages, highlighting new findings."""
    text = Text()
    for line in messages:
        text.append(f"\n{harmless(line)}", "" if line.startswith("new: ") else "dim")
    return text
