"""Choose the checkpoint that a run continues from, or refuse to start at step 0."""

from collections.abc import Sequence

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import ranks
from rlvitals.checkpoints.catalog import Catalog, Checkpoint, Refusal
from rlvitals.checkpoints.commit import check_complete
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume
from rlvitals.checkpoints.ranks import Group
from rlvitals.errors import UsageError

MAX_NAMED_CHECKPOINTS = 3  # checkpoints that an error names
Choice = tuple[Checkpoint | None, tuple[str, ...]]


def choose_checkpoint(
    group: Group, catalog: Catalog, holds: Sequence[str], *, fresh: bool, require_resume: bool
) -> Choice:
    """Return the newest intact checkpoint, and why newer ones are refused; or None.

    Damaged ones are set aside only after an intact one is found: a process that is started again
    after an error finds the same checkpoints. None: there is no sealed checkpoint, or `fresh` has
    set all of them aside. Raises UsageError, CannotResume, UnreadableCheckpoint.
    """
    if fresh and require_resume:
        problem = "a run cannot start at step 0 and be required to resume"
        raise UsageError(problem, where=str(catalog.folder), hint="fresh, or require_resume")
    if catalog.mirror:
        # Count on from what the run's bucket has from another machine.
        sequence, attempt = ranks.run_on_all(
            group, lambda: (0, 0) if group.rank else catalog.fetch_newer(fresh=fresh)
        )[0]
        if sequence > catalog.sequence:
            catalog.sequence = sequence
            catalog.attempt = max(catalog.attempt, attempt + 1)
    if fresh:
        ranks.run_on_all(group, lambda: None if group.rank else catalog.set_all_aside())
        return None, ()
    refused: list[Refusal] = []
    ranks.run_on_all(group, lambda: None if group.rank else refused.extend(catalog.find_damaged()))
    tried_names: set[str] = set()
    while (checkpoint := _find_next(group, catalog, tried_names)) is not None:
        tried_names.add(checkpoint.folder.name)
        problem = _find_problem(group, checkpoint, holds)
        if not problem:
            return checkpoint, tuple(catalog.set_aside(refusal) for refusal in refused)
        if group.rank == 0:
            refused.append(Refusal(checkpoint.folder, checkpoint.step, problem))
    reason = ranks.run_on_all(
        group, lambda: "" if group.rank else _explain_refusals(catalog, refused)
    )[0]
    if reason or require_resume:
        raise _resume_error(catalog, str(reason))
    return None, ()


def _find_next(group: Group, catalog: Catalog, tried: set[str]) -> Checkpoint | None:
    """Return the newest untried checkpoint, as rank 0 sees it."""

    def newest() -> str:
        names = () if group.rank else (name.folder.name for name in catalog.list_usable())
        return next((name for name in names if name not in tried), "")

    name = str(ranks.run_on_all(group, newest)[0])
    checkpoints: list[Checkpoint] = []

    def read() -> None:
        if name:
            folder = catalog.folder / name
            checkpoints.append(Checkpoint(folder, manifests.read(folder)))

    ranks.run_on_all(group, read)
    return checkpoints[0] if checkpoints else None


def _find_problem(group: Group, checkpoint: Checkpoint, holds: Sequence[str]) -> str:
    """Verify a checkpoint, each process its share of the files; return the problem, or ""."""

    def verify() -> str:
        try:
            check_complete(checkpoint.folder, list(checkpoint.manifest.files), holds)
            manifests.verify(checkpoint.folder, checkpoint.manifest, (group.rank, group.size))
        except BadCheckpoint as error:
            return error.problem
        return ""

    return next((str(text) for text in ranks.run_on_all(group, verify) if text), "")


def _explain_refusals(catalog: Catalog, refused: Sequence[Refusal]) -> str:
    """Return why no sealed checkpoint is resumed from; "" if there is none."""
    reasons = {refusal.folder.name: refusal.reason for refusal in refused}
    sealed = {
        path.name: catalog.explain_refusal(path) for path in catalog.sealed_folders()
    } | reasons
    sentences = [f"{name}: {reason}" for name, reason in sorted(sealed.items())]
    more = (
        [f"and {len(sentences) - MAX_NAMED_CHECKPOINTS} more"]
        if len(sentences) > MAX_NAMED_CHECKPOINTS
        else []
    )
    return "; ".join((*sentences[-MAX_NAMED_CHECKPOINTS:], *more))


def _resume_error(catalog: Catalog, reason: str) -> CannotResume:
    if not reason:
        return CannotResume(
            "there is no checkpoint to resume from, and a resume is required",
            where=str(catalog.folder),
            hint=f"is it the right folder? rlvitals doctor {catalog.folder}",
        )
    return CannotResume(
        f"no checkpoint can be resumed from, and the run is not started at step 0 over them: "
        f"{reason}",
        where=str(catalog.folder),
        hint=f"rlvitals checkpoints {catalog.folder} --verify; to start at step 0 all the same: "
        "--fresh (fresh=True), which sets them aside and deletes nothing",
    )
