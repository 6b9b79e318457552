"""Whether a run would resume: checkpoints that are there, whole, and taken."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.huggingface import STATE
from rlvitals.checkpoints.inspect_run import Look, Seen, State, differences
from rlvitals.doctor.check import Check, Trouble
from rlvitals.doctor.context import Scene
from rlvitals.rules.rule import Severity

TIMINGS = ("step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second")
MOST_SHOWN = 4


def look(scene: Scene) -> Iterable[Trouble]:
    """Tell what keeps the run from going on where it was."""
    held = scene.checkpoints
    if scene.folder is None or held is None:
        return
    if held.trainers:
        yield Trouble(
            Severity.ERROR,
            "two trainings in one folder: a resume takes the newest checkpoint of both",
            held.trainers,
            ("end one of them, or give it a folder of its own",),
        )
    if not held.seen:
        if scene.traces:
            yield _none(scene)
        return
    yield from _damaged(scene, held)
    if held.taken is None:
        yield from _unsealed(scene, held)
    else:
        yield from _other(scene, held.taken)
    if restarted := list(_restarted(scene, held)):
        yield Trouble(
            Severity.ERROR,
            "the run began anew at its start although it had checkpoints",
            tuple(restarted),
            (
                "trainer.train(resume_from_checkpoint=rlvitals.resume_from(args))",
                "in a loop of your own: checkpoints.restore(...) before it",
                f"rlvitals checkpoints {scene.path}",
            ),
        )


def _none(scene: Scene) -> Trouble:
    trace = scene.traces[0]
    every = trace.number("save_steps")
    evidence = ["no checkpoint-<step> folder lies in it"]
    others = scene.checkpoints.others if scene.checkpoints is not None else ()
    if others:
        evidence.append(f"another program's lie there, without a seal: {', '.join(others[-3:])}")
    if every and trace.last_step < every:
        evidence.append(f"the first comes at step {every:,.0f}; the run is at {trace.last_step:,}")
    return Trouble(
        Severity.NOTE,
        "no checkpoint that could be verified is there to resume from",
        tuple(evidence),
        ("rlvitals.Checkpoints(folder, every=50) in the training, or save_steps=50 of a Trainer",),
    )


def _damaged(scene: Scene, held: Look) -> Iterator[Trouble]:
    if unread := held.some(State.UNREADABLE):
        yield Trouble(
            Severity.ERROR,
            f"a resume stops: {unread[-1].folder.name} cannot be read",
            _each(unread),
            (f"ls -l {unread[-1].folder}",),
        )
    aside = [one for one in held.some(State.ASIDE) if f".{naming.CORRUPT}" in one.folder.name]
    bad = [*held.some(State.DAMAGED), *aside]
    if not bad:
        return
    taken = "a resume takes none" if held.taken is None else f"{held.taken.folder.name} is taken"
    yield Trouble(
        Severity.WARNING if held.taken is not None else Severity.ERROR,
        f"{_count(bad)} damaged: {taken}",
        _each(bad),
        (f"rlvitals checkpoints {scene.path} --verify",),
    )


def _unsealed(scene: Scene, held: Look) -> Iterator[Trouble]:
    bare = held.some(State.UNSEALED)
    complete = [one for one in bare if one.complete]
    if complete:
        yield Trouble(
            Severity.WARNING,
            f"no checkpoint is sealed: nobody could tell a damaged one; "
            f"{complete[-1].folder.name} looks complete",
            _each([one for one in bare if not one.complete]),
            (f"rlvitals checkpoints {scene.path} --seal",),
        )
    elif bare:
        yield Trouble(
            Severity.ERROR,
            "no checkpoint is complete: a resume would begin parts of the training anew",
            _each(bare),
            ("save the optimizer, the scheduler and the random states too: save_only_model=False",),
        )
    elif held.some(State.FOREIGN):
        yield Trouble(
            Severity.ERROR,
            "the checkpoints here are another run's",
            _each(held.some(State.FOREIGN)),
            ("give each run a folder of its own",),
        )


def _other(scene: Scene, taken: Seen) -> Iterator[Trouble]:
    differs = differences(taken, scene.about)
    if differs:
        yield Trouble(
            Severity.WARNING,
            f"a resume from {taken.folder.name} continues, but not bit for bit",
            differs,
            ("run the very same command again, with as many processes as before",),
        )


def _restarted(scene: Scene, held: Look) -> Iterator[str]:
    """Yield what shows that an attempt began at the start, with a checkpoint at hand."""
    starts = {one.sealed.attempt for one in held.seen if one.sealed is not None}
    for one in held.seen:
        sealed = one.sealed
        if sealed is None or sealed.parent not in {None, -1} or sealed.facts.get("adopted"):
            continue
        if sealed.attempt > min(starts):
            how = "never asked for a checkpoint" if sealed.parent is None else "began at step 0"
            yield f"{one.folder.name} was saved by attempt {sealed.attempt}, which {how}"
            break
    yield from _of_two_starts([one for one in held.seen if one.sealed is None])
    yield from _went_back(scene, [one.step for one in held.seen])


def _of_two_starts(some: Sequence[Seen]) -> Iterator[str]:
    """Yield a sentence where trainers' checkpoints do not share their first logged row.

    When they were written tells nothing: copied files are as old as the copy.
    """
    rows = [(one, row) for one in some if (row := _first_row(one.folder))]
    for (one, row), (other, first) in pairwise(rows):
        if row.get("step") == first.get("step") and row != first:
            yield (
                f"{one.folder.name} and {other.folder.name} come from two starts: "
                f"what they logged at step {row.get('step')} differs"
            )
            return


def _first_row(folder: Path) -> dict[str, object]:
    try:
        said = json.loads((folder / STATE).read_bytes())
        row = said["log_history"][0]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    # What differs from one process to the next without the training being another.
    return {k: v for k, v in row.items() if k not in TIMINGS} if isinstance(row, dict) else {}


def _went_back(scene: Scene, steps: Sequence[int]) -> Iterator[str]:
    """Yield what the log and the progress file say of an attempt that began at the start."""
    for trace in scene.traces:
        first = trace.first_step
        for seam in trace.lifecycle.seams:
            if seam <= first and any(step > seam for step in steps):
                yield f"its log goes back to step {seam:,}, where it began"
                break
    said = scene.progress.said.get("attempts") if scene.progress is not None else None
    attempts = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    for before, one in pairwise(attempts):
        reached = before.get("last_step")
        if one.get("first_step") == 0 and isinstance(reached, int) and reached > 0 and steps:
            yield f"an attempt began at step 0 after one that had reached {reached:,}"
            break


def _each(some: Sequence[Seen]) -> tuple[str, ...]:
    told = [f"{one.folder.name}: {one.why}" for one in reversed(some)]
    more = [f"and {len(told) - MOST_SHOWN} more"] if len(told) > MOST_SHOWN else []
    return (*told[:MOST_SHOWN], *more)


def _count(some: Sequence[Seen]) -> str:
    return "a checkpoint is" if len(some) == 1 else f"{len(some)} checkpoints are"


CHECK = Check("resume", "Would it resume?", look)
