"""Check that a run would resume: checkpoints exist, are intact, and would be used."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.huggingface import TRAINER_STATE_FILE
from rlvitals.checkpoints.inspect_run import (
    CheckpointState,
    CheckpointStatus,
    Inspection,
    differences,
)
from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import Context
from rlvitals.rules.rule import Severity

MAX_CHECKPOINTS = 4


def check_resume(context: Context) -> Iterable[Problem]:
    """Yield what keeps the run from continuing at its last step."""
    checkpoints = context.checkpoints
    if context.folder is None or checkpoints is None:
        return
    if checkpoints.trainers:
        yield Problem(
            Severity.ERROR,
            "two trainings in one folder: a resume takes the newest checkpoint of both",
            checkpoints.trainers,
            ("end one of them, or give it a folder of its own",),
        )
    if not checkpoints.seen:
        if context.traces:
            yield _describe_absence(context)
        return
    yield from _check_damage(context, checkpoints)
    if checkpoints.taken is None:
        yield from _check_seals(context, checkpoints)
    else:
        differs = differences(checkpoints.taken, context.about)
        if differs:
            yield Problem(
                Severity.WARNING,
                f"a resume from {checkpoints.taken.folder.name} continues, but not bit for bit",
                differs,
                ("run the very same command again, with as many processes as before",),
            )
    if restarted := list(_find_restarts(context, checkpoints)):
        yield Problem(
            Severity.ERROR,
            "the run began anew at its start although it had checkpoints",
            tuple(restarted),
            (
                "trainer.train(resume_from_checkpoint=rlvitals.resume_from(args))",
                "in a loop of your own: checkpoints.restore(...) before it",
                f"rlvitals checkpoints {context.path}",
            ),
        )


def _describe_absence(context: Context) -> Problem:
    trace = context.traces[0]
    save_steps = trace.number("save_steps")
    evidence = ["no checkpoint-<step> folder lies in it"]
    other_files = context.checkpoints.others if context.checkpoints is not None else ()
    if other_files:
        evidence.append(
            f"another program's lie there, without a seal: {', '.join(other_files[-3:])}"
        )
    if save_steps and trace.last_step < save_steps:
        evidence.append(
            f"the first comes at step {save_steps:,.0f}; the run is at {trace.last_step:,}"
        )
    return Problem(
        Severity.NOTE,
        "no checkpoint that could be verified is there to resume from",
        tuple(evidence),
        ("rlvitals.Checkpoints(folder, every=50) in the training, or save_steps=50 of a Trainer",),
    )


def _check_damage(context: Context, checkpoints: Inspection) -> Iterator[Problem]:
    if unread := checkpoints.some(CheckpointState.UNREADABLE):
        yield Problem(
            Severity.ERROR,
            f"a resume stops: {unread[-1].folder.name} cannot be read",
            _format_statuses(unread),
            (f"ls -l {unread[-1].folder}",),
        )
    aside = [
        checkpoint
        for checkpoint in checkpoints.some(CheckpointState.ASIDE)
        if f".{naming.CORRUPT_SUFFIX}" in checkpoint.folder.name
    ]
    damaged = [*checkpoints.some(CheckpointState.DAMAGED), *aside]
    if not damaged:
        return
    consequence = (
        "a resume takes none"
        if checkpoints.taken is None
        else f"{checkpoints.taken.folder.name} is taken"
    )
    count = "a checkpoint is" if len(damaged) == 1 else f"{len(damaged)} checkpoints are"
    yield Problem(
        Severity.WARNING if checkpoints.taken is not None else Severity.ERROR,
        f"{count} damaged: {consequence}",
        _format_statuses(damaged),
        (f"rlvitals checkpoints {context.path} --verify",),
    )


def _check_seals(context: Context, checkpoints: Inspection) -> Iterator[Problem]:
    unsealed = checkpoints.some(CheckpointState.UNSEALED)
    complete = [checkpoint for checkpoint in unsealed if checkpoint.complete]
    if complete:
        yield Problem(
            Severity.WARNING,
            f"no checkpoint is sealed: nobody could tell a damaged one; "
            f"{complete[-1].folder.name} looks complete",
            _format_statuses([checkpoint for checkpoint in unsealed if not checkpoint.complete]),
            (f"rlvitals checkpoints {context.path} --seal",),
        )
    elif unsealed:
        yield Problem(
            Severity.ERROR,
            "no checkpoint is complete: a resume would begin parts of the training anew",
            _format_statuses(unsealed),
            ("save the optimizer, the scheduler and the random states too: save_only_model=False",),
        )
    elif checkpoints.some(CheckpointState.FOREIGN):
        yield Problem(
            Severity.ERROR,
            "the checkpoints here are another run's",
            _format_statuses(checkpoints.some(CheckpointState.FOREIGN)),
            ("give each run a folder of its own",),
        )


def _find_restarts(context: Context, checkpoints: Inspection) -> Iterator[str]:
    """Yield evidence that an attempt began at step 0 despite a checkpoint."""
    starts = {
        checkpoint.sealed.attempt
        for checkpoint in checkpoints.seen
        if checkpoint.sealed is not None
    }
    for checkpoint in checkpoints.seen:
        sealed = checkpoint.sealed
        if sealed is None or sealed.parent not in {None, -1} or sealed.facts.get("adopted"):
            continue
        if sealed.attempt > min(starts):
            reason = "never asked for a checkpoint" if sealed.parent is None else "began at step 0"
            yield f"{checkpoint.folder.name} was saved by attempt {sealed.attempt}, which {reason}"
            break
    yield from _find_two_starts(
        [checkpoint for checkpoint in checkpoints.seen if checkpoint.sealed is None]
    )
    steps = [checkpoint.step for checkpoint in checkpoints.seen]
    for trace in context.traces:
        first = trace.first_step
        for seam in trace.lifecycle.seams:
            if seam <= first and any(step > seam for step in steps):
                yield f"its log goes back to step {seam:,}, where it began"
                break
    rows = context.progress.said.get("attempts") if context.progress is not None else None
    attempts = (
        [attempt for attempt in rows if isinstance(attempt, dict)] if isinstance(rows, list) else []
    )
    for previous, attempt in pairwise(attempts):
        last_step = previous.get("last_step")
        if (
            attempt.get("first_step") == 0
            and isinstance(last_step, int)
            and last_step > 0
            and steps
        ):
            yield f"an attempt began at step 0 after one that had reached {last_step:,}"
            break


def _find_two_starts(checkpoints: Sequence[CheckpointStatus]) -> Iterator[str]:
    """Yield a sentence if trainers' checkpoints do not share their first logged row.

    File times prove nothing: copied files are as old as the copy.
    """
    rows = [
        (checkpoint, row)
        for checkpoint in checkpoints
        if (row := _read_first_row(checkpoint.folder))
    ]
    for (checkpoint, row), (next_checkpoint, first) in pairwise(rows):
        if row.get("step") == first.get("step") and row != first:
            yield (
                f"{checkpoint.folder.name} and {next_checkpoint.folder.name} come from two starts: "
                f"what they logged at step {row.get('step')} differs"
            )
            return


def _read_first_row(folder: Path) -> dict[str, object]:
    try:
        state = json.loads((folder / TRAINER_STATE_FILE).read_bytes())
        row = state["log_history"][0]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    # What differs from one process to the next without the training being another.
    return (
        {
            k: v
            for k, v in row.items()
            if k
            not in (
                "step_time",
                "train_runtime",
                "train_samples_per_second",
                "train_steps_per_second",
            )
        }
        if isinstance(row, dict)
        else {}
    )


def _format_statuses(checkpoints: Sequence[CheckpointStatus]) -> tuple[str, ...]:
    sentences = [
        f"{checkpoint.folder.name}: {checkpoint.why}" for checkpoint in reversed(checkpoints)
    ]
    more = (
        [f"and {len(sentences) - MAX_CHECKPOINTS} more"] if len(sentences) > MAX_CHECKPOINTS else []
    )
    return (*sentences[:MAX_CHECKPOINTS], *more)


RESUME_CHECK = Check("resume", "Would it resume?", check_resume)
