"""What several commands do first: read and judge the runs at some paths, and name them."""

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.errors import UnreadableLog, UsageError

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run


def judged(
    paths: Sequence[Path], args: Namespace
) -> "tuple[list[tuple[int, Run, Diagnosis]], list[UnreadableLog]]":
    """Read and judge what lies at each path; a run comes with its path's number."""
    from rlvitals.diagnosis import batch, load
    from rlvitals.views.progress import progress

    places: list[int] = []
    asked: list[batch.Asked] = []
    errors: list[UnreadableLog] = []
    for at, path in enumerate(paths):
        chosen = flags.settings_for(path, args)
        load.given(chosen)
        try:
            runs = load.runs(path)
        except UnreadableLog as error:
            errors.append(error)
            continue
        places += [at] * len(runs)
        asked += [(one, chosen) for one in runs]
    found = []
    answers = progress(batch.diagnose(asked), len(asked))
    for at, (one, _), answer in zip(places, asked, answers, strict=True):
        if isinstance(answer, UnreadableLog):
            errors.append(answer)
        else:
            found.append((at, one, answer))
    return found, errors


def labels(
    found: "Sequence[tuple[int, Run, Diagnosis]]", said: Sequence[str], paths: int
) -> list[str]:
    """Name the runs: as `said`, else as they are called. Raises UsageError for a wrong count."""
    if said and len(said) not in {paths, len(found)}:
        raise UsageError(
            f"{len(said)} labels for {paths} runs: {', '.join(said)}",
            where="--labels",
            hint="one label for each run, in their order",
        )
    counts = Counter(at for at, _, _ in found)
    seen = Counter(one.name for _, one, _ in found)
    names = []
    for number, (at, one, _) in enumerate(found):
        name = one.name if seen[one.name] == 1 else f"{one.root.name} {one.name}"
        if said and len(said) == paths:
            name = said[at] if counts[at] == 1 else f"{said[at]} {one.name}"
        elif said:
            name = said[number]
        names.append(name)
    return names
