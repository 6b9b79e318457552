"""Compare the files of a backup with its index.

An interrupted round leaves less than its index announces: a checkpoint without its manifest, one
version of a file or the next. Every other difference was caused by another program.
"""

from collections.abc import Collection, Iterator, Mapping

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.transfer.backup_index import Index
from rlvitals.checkpoints.transfer.file_selection import GENERATED_FILES
from rlvitals.checkpoints.transfer.filesystems import partial_name
from rlvitals.checkpoints.transfer.verify_remote import MANIFEST_PATH
from rlvitals.errors import join_first


def describe_damage(sizes: Mapping[str, int], usable: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each checkpoint that has a manifest and is not usable."""
    for name in sorted(_find_manifest_folders(sizes) - set(usable)):
        yield f"{name} is damaged in the backup, not restored: its seal does not fit its files"


def describe_missing(
    index: Index, sizes: Mapping[str, int], usable: Collection[str]
) -> Iterator[str]:
    """Yield a sentence for each newer checkpoint that the index names and that is missing."""
    sealed = _find_manifest_folders(sizes)
    newest = max((_checkpoint_step(name) for name in usable), default=-1)
    for name in sorted(set(index.checkpoints) - sealed - set(usable)):
        is_partial = any(path.startswith((f"{name}/", f"{partial_name(name)}/")) for path in sizes)
        if not is_partial and _checkpoint_step(name) > newest:
            yield (
                f"{name} is missing in the backup, although its index names it:"
                " its copy was broken off, or it was deleted"
            )


def describe_extra_files(
    index: Index, sizes: Mapping[str, int], mirror_prefixes: tuple[str, ...]
) -> Iterator[str]:
    """Yield a sentence for what is not restored because the index does not name it.

    `mirror_prefixes`: as in `claim_index`; rows that are uploaded are read where they are.
    """
    for name, versions in index.files.items():
        size = max((version.size for version in versions), default=0)
        if 0 <= size < sizes.get(name, 0):
            size = sizes[name] - size
            yield f"the last {size:,} bytes of {name} are not restored: the index ends before them"
    extra = [name for name in sorted(sizes) if name not in index.files and not is_backup_file(name)]
    if any(name.startswith(mirror_prefixes) for name in extra):
        yield "its rows are not restored: every command that reads runs reads them in the bucket"
    extra = [name for name in extra if not name.startswith(mirror_prefixes)]
    if extra:
        names = join_first(extra, 3)
        yield f"not restored, because the index does not name it: {names}"


def is_backup_file(name: str) -> bool:
    """Return whether a file belongs to the backup itself, or to a checkpoint."""
    top = name.partition("/")[0]
    return (
        name in GENERATED_FILES
        or top.startswith(".")
        or naming.CHECKPOINT_NAME.fullmatch(top) is not None
    )


def _find_manifest_folders(sizes: Mapping[str, int]) -> set[str]:
    return {match[1] for path in sizes if (match := MANIFEST_PATH.fullmatch(path))}


def _checkpoint_step(name: str) -> int:
    match = naming.CHECKPOINT_NAME.fullmatch(name)
    return -1 if match is None else int(match[1])
