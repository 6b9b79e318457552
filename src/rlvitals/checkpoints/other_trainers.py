"""Find other processes that save checkpoints into the same folder, by their manifests.

A manifest names the process that wrote it. The sequence of a run's checkpoints ascends, and a
process continues from the highest one it finds. If the sequences of two processes overlap, neither
began after the other had ended. No clock is compared, and nothing but checkpoints is written.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import combinations
from uuid import uuid4

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.manifest import Manifest

_identities: list[tuple[int, str]] = []  # process number, its name


def this_process() -> str:
    """Return a unique name of this process: machine, number, random part."""
    if not _identities or _identities[0][0] != os.getpid():  # a fork is another process
        _identities[:] = [(os.getpid(), f"{naming.host_id()}-{os.getpid()}-{uuid4().hex[:8]}")]
    return _identities[0][1]


def label(process: str) -> str:
    """Return the name of a process for a sentence."""
    host, _, number = process.partition("-")
    machine = "" if host == naming.host_id() else f" of machine {host}"
    return f"process {number.partition('-')[0]}{machine}"


def newer_than(
    sequence: int, manifests: Iterable[Manifest], process: str = ""
) -> tuple[Manifest, ...]:
    """Return what other processes than `process` saved after it found `sequence` as the highest.

    `process`: this process if empty.
    """
    return tuple(
        manifest
        for manifest in manifests
        if manifest.sequence > sequence
        and manifest.process not in {"", process or this_process()}
        and not manifest.facts.get("adopted")
    )


def overlapping(manifests: Iterable[Manifest]) -> Sequence[str]:
    """Return the names of processes that saved into one folder at the same time, sorted."""
    by_process: dict[str, list[int]] = {}
    for manifest in manifests:
        if manifest.process and not manifest.facts.get("adopted"):
            by_process.setdefault(manifest.process, []).append(manifest.sequence)
    names = set()
    for first, second in combinations(by_process, 2):
        if _overlap(by_process[first], by_process[second]):
            names |= {first, second}
    return sorted(names)


def _overlap(first: list[int], second: list[int]) -> bool:
    """Return whether two processes saved at the same time.

    One common sequence is not enough: the first one's checkpoint may have been damaged when the
    second began.
    """
    if max(min(first), min(second)) < min(max(first), max(second)):
        return True
    pairs = ((first, second), (second, first))
    return any(min(a) < sequence < max(a) for a, b in pairs for sequence in b)
