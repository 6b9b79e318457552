"""Plan and do what retention removes of runs: points of old ones, surplus checkpoints and rollouts.

Whatever is on hold, written to, or damaged stays. Each step is complete or not begun after a crash:
run the same command again.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rlvitals.checkpoints import disk, inspect_run, naming, recovery
from rlvitals.checkpoints.retention import make_entry, policy_from_dict, select_surplus
from rlvitals.errors import UnreadableLog, UsageError, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import compact, events, holds, safe_files, tail_index, thin_file
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE, BlockFile, block_files, read_about
from rlvitals.tracking import other_processes

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class TierRule:
    """How far runs of an age are thinned."""

    age_s: float
    buckets: int

    def __post_init__(self) -> None:
        """Check the numbers. Raises UsageError."""
        if self.age_s < DAY_SECONDS or self.buckets < 1:  # a run that paused for a night is not old
            hint = "an age of a day or more, and a number of buckets: 90d:1024"
            raise UsageError(f"no tier: {self.age_s:g} s, {self.buckets} buckets", hint=hint)


@dataclass(frozen=True, slots=True)
class Step:
    """One file to thin, or one checkpoint or file of rollouts to delete."""

    path: Path
    action: str  # "thin" or "delete"
    size: int  # bytes
    new_size: int  # bytes; of a thinned file about so many
    reason: str
    buckets: int = 0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be done to one run, and why not more."""

    folder: Path
    steps: tuple[Step, ...]
    obstacles: tuple[str, ...]  # sentences: what stays although it is old or surplus

    @property
    def freed_bytes(self) -> int:
        """Bytes that the steps free, about."""
        return sum(step.size - step.new_size for step in self.steps)


def plan(
    folder: Path,
    tiers: Sequence[TierRule],
    keep: int | None,
    time_now: float,
    keep_rollouts: int | None = None,
) -> RunPlan:
    """Plan the retention of a run; nothing is changed. Raises OSError, UnreadableLog.

    `tiers`: of those that the run is old enough for the oldest counts. `keep`: sealed checkpoints
    beyond so many newest are surplus; None: none is touched. `keep_rollouts`: the same of a rank's
    files of rollouts, whose first stays too. `time_now`: seconds since the epoch.
    """
    if reason := find_obstacle(folder, time_now):
        return RunPlan(folder, (), (reason,))
    steps: list[Step] = []
    obstacles: list[str] = []
    age_s = time_now - newest_moment(folder)
    rule = max((t for t in tiers if age_s >= t.age_s), key=lambda t: t.age_s, default=None)
    if rule is not None:
        for file in block_files(folder):
            _plan_thinning(file, rule, age_s, steps, obstacles)
    if keep is not None:
        _plan_checkpoints(folder, keep, steps, obstacles)
    if keep_rollouts is not None:
        steps += _plan_rollouts(folder, keep_rollouts)
    return RunPlan(folder, tuple(steps), tuple(obstacles))


def find_obstacle(folder: Path, time_now: float) -> str:
    """Return why nothing of a run may be removed; "" if it may."""
    if holds.applies(folder):
        reason = holds.read_reason(folder)
        return f"on hold: {reason}" if reason else "on hold"
    if tail_index.has_writer(folder) or other_processes.recording(folder, time_now):
        return "a process records into it"
    return ""


def newest_moment(folder: Path) -> float:
    """Return when a run was last started or logged, seconds since the epoch. UnreadableLog.

    The times of imported rows may count from 0: the latest of all moments is taken.
    """
    run_info = read_about(folder / RUN_FILE)
    row = tail_index.newest_row(folder)
    moments = [run_info.created, *(attempt.started for attempt in run_info.attempts)]
    return max(*moments, 0.0 if row is None or row[1] != row[1] else row[1])


def _plan_thinning(
    file: BlockFile, rule: TierRule, age_s: float, steps: list[Step], obstacles: list[str]
) -> None:
    path = file.path.with_suffix(".packed.rlv")
    # The buckets that the file was thinned to; 0 where it has all points.
    if file.packed is None:
        buckets = 0
    else:
        with PackedFile(file.packed) as packed:
            buckets = max(map(len, packed.tiers.values()), default=0)
    if 0 < buckets <= rule.buckets:
        return
    size, new_size = thin_file.estimate(file, rule.buckets)
    if new_size < size:
        reason = f"{age_s / DAY_SECONDS:,.0f} days old: {rule.buckets:,} buckets of each metric"
        steps.append(Step(path, "thin", size, new_size, reason, rule.buckets))
    elif size:
        obstacles.append(f"{path.name}: thinning saves less than half of {size:,} bytes")


def _plan_checkpoints(folder: Path, keep: int, steps: list[Step], obstacles: list[str]) -> None:
    usable = {
        entry.sealed.sequence: entry
        for entry in inspect_run.inspect(folder).seen
        if entry.usable and entry.sealed is not None
    }
    if not usable:
        return
    newest = usable[max(usable)].sealed
    own_policy = policy_from_dict(newest.facts.get("kept") if newest else None)
    entries = [
        make_entry(entry.sealed, has_hold=holds.applies(entry.folder))
        for entry in usable.values()
        if entry.sealed is not None
    ]
    obstacles += [
        f"{naming.CHECKPOINT_PREFIX}{entry.step}: on hold" for entry in entries if entry.has_hold
    ]
    for surplus in select_surplus(entries, replace(own_policy, keep=keep)):
        path = usable[surplus.sequence].folder
        reason = f"not of the newest {keep:,}, nor the best, pinned or last healthy one"
        steps.append(Step(path, "delete", disk.count_bytes(path), 0, reason))


def _plan_rollouts(folder: Path, keep: int) -> Iterator[Step]:
    """Plan the deletion of files of rollouts, the oldest of each rank first."""
    by_rank: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((folder / "rollouts").glob("*.jsonl.zst")):
        by_rank[path.name.split("-")[1]].append(path)
    for files in by_rank.values():
        for path in files[1 : max(len(files) - keep, 1)]:
            reason = f"neither the first nor of the newest {keep:,}"
            yield Step(path, "delete", path.stat().st_size, 0, reason)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one step."""

    step: Step
    new_size: int  # bytes
    problem: str = ""  # why it was not done


def prune(
    folder: Path,
    tiers: Sequence[TierRule],
    keep: int | None,
    time_now: float,
    keep_rollouts: int | None = None,
) -> tuple[RunPlan, tuple[Outcome, ...]]:
    """Plan the retention of a run and do it; return both. Raises OSError, UnreadableLog."""
    if keep is not None and not find_obstacle(folder, time_now):
        for _ in recovery.recover(folder):  # what an earlier, killed call has left
            pass
    run_plan = plan(folder, tiers, keep, time_now, keep_rollouts)
    rollout_steps = [step for step in run_plan.steps if step.path.parent.name == "rollouts"]
    outcomes = [_do(folder, step, time_now) for step in run_plan.steps if step not in rollout_steps]
    outcomes += _delete_rollouts(folder, rollout_steps, time_now)
    return run_plan, tuple(outcomes)


def _delete_rollouts(folder: Path, steps: Sequence[Step], time_now: float) -> Iterator[Outcome]:
    """Delete files of rollouts; a note, which is written first, says so to readers."""
    if not steps:
        return
    with safe_files.lock(folder):  # no attempt begins meanwhile
        if reason := find_obstacle(folder, time_now):
            yield from (Outcome(step, step.size, reason) for step in steps)
            return
        size = sum(step.size for step in steps)
        text = f"rollouts were pruned: {quantity(len(steps), 'file')} of {size:,} bytes"
        events.append(folder / EVENTS_FILE, "note", text=text)
        for step in steps:
            try:
                step.path.unlink(missing_ok=True)
            except OSError as error:
                yield Outcome(step, step.size, str(error))
            else:
                yield Outcome(step, 0)


def _do(folder: Path, step: Step, time_now: float) -> Outcome:
    try:
        if step.action == "thin":
            reason = find_obstacle(folder, time_now)
            return Outcome(step, step.size, reason) if reason else _thin(folder, step)
        with safe_files.lock(folder):  # no attempt begins between the check and the rename
            if reason := find_obstacle(folder, time_now):
                return Outcome(step, step.size, reason)
            hidden = recovery.hide_checkpoint(folder, step.path)
        recovery.delete_folder(hidden)
        return Outcome(step, 0)
    except (OSError, UnreadableLog, thin_file.NotThinnedError) as error:
        return Outcome(step, step.size, str(error))


def _thin(folder: Path, step: Step) -> Outcome:
    """Pack a file without loss where it is not, then thin it: two renames."""
    name = step.path.name.replace(".packed.rlv", ".rlv")
    for report in compact.compact(folder):
        if report.name == name and report.why:
            return Outcome(step, step.size, report.why)
    thin_file.thin(step.path, step.buckets)
    return Outcome(step, step.path.stat().st_size)
