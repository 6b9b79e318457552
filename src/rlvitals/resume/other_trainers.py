"""Other processes that save checkpoints into the same folder, by what their manifests say.

A manifest names the process that wrote it. The sequence of a run's checkpoints ascends, and a
process continues from the highest one it finds. Of two processes whose sequences overlap, neither
began after the other had ended. No clock is compared, and nothing but checkpoints is written.
"""

import os
from collections.abc import Iterable, Sequence
from uuid import uuid4

from rlvitals.resume import naming
from rlvitals.resume.manifest import Manifest

_identity: list[tuple[int, str]] = []  # process number, its name


def this_process() -> str:
    """Return a name of this process that no other one has: machine, number, random part."""
    if not _identity or _identity[0][0] != os.getpid():  # a fork is another process
        _identity[:] = [(os.getpid(), f"{naming.host()}-{os.getpid()}-{uuid4().hex[:8]}")]
    return _identity[0][1]


def shown(process: str) -> str:
    """Return how a process is called in a sentence."""
    host, _, rest = process.partition("-")
    where = "" if host == naming.host() else f" of machine {host}"
    return f"process {rest.partition('-')[0]}{where}"


def since(manifests: Iterable[Manifest], sequence: int) -> tuple[Manifest, ...]:
    """Return what other processes saved after this one had found `sequence` as the highest."""
    return tuple(
        one
        for one in manifests
        if one.sequence > sequence
        and one.process not in {"", this_process()}
        and not one.facts.get("adopted")
    )


def overlapping(manifests: Iterable[Manifest]) -> Sequence[str]:
    """Name the processes that saved into one folder at the same time, in the order of names."""
    by_process: dict[str, list[int]] = {}
    for one in manifests:
        if one.process and not one.facts.get("adopted"):
            by_process.setdefault(one.process, []).append(one.sequence)
    pairs = [(first, other) for first in by_process for other in by_process if first < other]
    found = {
        one for pair in pairs if _overlap(by_process[pair[0]], by_process[pair[1]]) for one in pair
    }
    return sorted(found)


def _overlap(own: list[int], theirs: list[int]) -> bool:
    """Tell whether two processes saved at the same time.

    One sequence that both have is not enough: the first one's checkpoint may have been damaged
    when the second began.
    """
    if max(min(own), min(theirs)) < min(max(own), max(theirs)):
        return True
    return any(min(a) < one < max(a) for a, b in ((own, theirs), (theirs, own)) for one in b)
