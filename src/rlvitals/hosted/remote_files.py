"""Copy the logs below a URL: SSH, object stores, the Hugging Face hub; by fsspec's back-ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from rlvitals.checkpoints.transfer.fsspec_remote import FsspecFiles, access_hint, open_url
from rlvitals.errors import UnreadableLog, VitalsError, harmless
from rlvitals.hosted import trackio_dataset
from rlvitals.readers import select
from rlvitals.readers.discovery import settings_files
from rlvitals.storage import redact
from rlvitals.storage.safe_files import atomic_write, inside, open_append

MAX_FILE_BYTES = 2 << 30  # a larger file is no log
MAX_REWRITTEN_BYTES = 64 << 10  # smaller files are fetched anew: they may have been rewritten

Show = Callable[[int, int, str], None]


def fetch(url: str, folder: Path, show: Show) -> None:
    """Bring the copy of a URL's logs up to date, or of its recorded runs. Raises VitalsError."""
    if not url.startswith(("sftp:", "hf:")) and _fetch_runs(url, folder, show):
        return
    options = ssh_options(url) if url.startswith("sftp:") else {}
    files = open_url(url, options)
    with naming_errors(url):
        sizes = files.sizes()
        from rlvitals.bucket import root_copy  # noqa: PLC0415 - loads numpy
        from rlvitals.bucket.object_store import ObjectStore  # noqa: PLC0415 - the same

        if runs := root_copy.find_folders(sizes):  # that no index lists
            root_copy.copy_runs(ObjectStore(url, tries=5), folder, runs, show)
            return
        names = [
            name
            for name in sorted(sizes)
            if may_be_log(name, sizes[name]) or trackio_dataset.is_part(name, sizes)
        ]
        for number, name in enumerate(names):
            show(number, len(names), name)
            update(files, name, sizes[name], folder)
        show(len(names), len(names), "")
        trackio_dataset.write_databases(folder)
    if not names:
        problem = "nothing is there" if not sizes else f"none of {len(sizes):,} files is a log"
        raise UnreadableLog(problem, where=redact.text(url), hint="rlvitals readers")


def _fetch_runs(url: str, folder: Path, show: Show) -> bool:
    """Copy the run at a URL, or those of its index; return whether there are any."""
    from rlvitals.bucket import download, root_copy  # noqa: PLC0415 - loads numpy
    from rlvitals.bucket.object_store import ObjectStore  # noqa: PLC0415 - the same

    store = ObjectStore(url, tries=5)
    with naming_errors(url):
        return download.download(store, folder) or root_copy.copy_root(store, folder, show)


@contextmanager
def naming_errors(url: str) -> Iterator[None]:
    """Raise what a back-end raises, which has errors of its own, as a VitalsError of the URL."""
    try:
        yield
    except VitalsError:
        raise
    except Exception as error:
        text = redact.text(harmless(str(error))) or type(error).__name__
        raise VitalsError(
            f"cannot be read: {text}", where=redact.text(url), hint=access_hint(url)
        ) from error


def may_be_log(name: str, size: int) -> bool:
    """Return whether a remote file may be a log or settings and its name is safe to create."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\x00" in name:
        return False
    local = Path(name)
    return size <= MAX_FILE_BYTES and (
        select.may_be_log(local) or settings_files.is_settings(local)
    )


def update(files: FsspecFiles, name: str, size: int, folder: Path) -> None:
    """Copy a file, or append what it has grown by. Raises the back-end's errors, OSError."""
    path = inside(folder, name)
    have = path.stat().st_size if path.exists() else 0
    if have == size and size > MAX_REWRITTEN_BYTES:
        return
    if MAX_REWRITTEN_BYTES < have < size:
        overlap = min(64, have)  # compared before the rest is appended
        chunks = files.read(name, have - overlap)
        first = next(chunks, b"")
        with path.open("rb") as file:
            file.seek(have - overlap)
            is_grown = file.read(overlap) == first[:overlap]
        if is_grown:
            with open(open_append(path), "ab") as file:  # noqa: PTH123 - a descriptor
                file.write(first[overlap:])
                file.writelines(chunks)
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        count = 0  # up to the largest log, whatever the listing promised
        for data in files.read(name):
            count += len(data)
            if count > MAX_FILE_BYTES:
                break
            file.write(data)


def ssh_options(url: str) -> dict[str, object]:
    """Return what `~/.ssh/config` says of a URL's host; empty without paramiko or the file."""
    try:
        import paramiko  # noqa: PLC0415 - optional
    except ImportError:
        return {}
    address = urlsplit(url)
    with suppress(OSError, ValueError, paramiko.ssh_exception.ConfigParseError):
        entry = paramiko.SSHConfig.from_path(str(Path("~/.ssh/config").expanduser())).lookup(
            address.hostname or ""
        )
        options: dict[str, object] = {"host": entry["hostname"]}
        if "user" in entry and address.username is None:
            options["username"] = entry["user"]
        if "port" in entry and address.port is None:
            options["port"] = int(entry["port"])
        if "identityfile" in entry:
            options["key_filename"] = entry["identityfile"]
        return options
    return {}
