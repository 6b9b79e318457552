"""Read, judge and label the runs of several paths."""

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


def judge_runs(
    paths: Sequence[Path], args: Namespace
) -> "tuple[list[tuple[int, Run, Diagnosis]], list[UnreadableLog]]":
    """Read and judge the runs at each path.

    Returns (path index, run, diagnosis) tuples and the errors of unreadable logs.
    """
    from rlvitals.diagnosis import batch, load
    from rlvitals.views.progress import progress

    path_indices: list[int] = []
    requests: list[batch.Asked] = []
    errors: list[UnreadableLog] = []
    for index, path in enumerate(paths):
        settings = flags.settings_for(path, args)
        load.run_overrides(settings)
        try:
            runs = load.runs(path)
        except UnreadableLog as error:
            errors.append(error)
            continue
        path_indices += [index] * len(runs)
        requests += [(run, settings) for run in runs]
    results = []
    answers = progress(batch.diagnose(requests), len(requests))
    for index, (run, _), answer in zip(path_indices, requests, answers, strict=True):
        if isinstance(answer, UnreadableLog):
            errors.append(answer)
        else:
            results.append((index, run, answer))
    return results, errors


def labels(
    results: "Sequence[tuple[int, Run, Diagnosis]]", user_labels: Sequence[str], paths: int
) -> list[str]:
    """Return the user's label of each run, else its name. Raises UsageError for a wrong count."""
    if user_labels and len(user_labels) not in {paths, len(results)}:
        raise UsageError(
            f"{len(user_labels)} labels for {paths} runs: {', '.join(user_labels)}",
            where="--labels",
            hint="one label for each run, in their order",
        )
    path_counts = Counter(index for index, _, _ in results)
    name_counts = Counter(run.name for _, run, _ in results)
    names = []
    for number, (index, run, _) in enumerate(results):
        name = run.name if name_counts[run.name] == 1 else f"{run.root.name} {run.name}"
        if user_labels and len(user_labels) == paths:
            name = (
                user_labels[index]
                if path_counts[index] == 1
                else f"{user_labels[index]} {run.name}"
            )
        elif user_labels:
            name = user_labels[number]
        names.append(name)
    return names
