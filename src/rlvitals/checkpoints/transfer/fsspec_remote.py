"""File stores that fsspec supports: object stores, SSH, third-party file systems.

An object store has no rename and shows an object when its upload ends. Elsewhere a file that is
being written is visible: there it is written under another name first.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial as part
from itertools import chain
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from rlvitals.checkpoints.transfer.filesystems import COPY_CHUNK_BYTES, partial_name
from rlvitals.checkpoints.transfer.s3_session import s3_session
from rlvitals.checkpoints.transfer.timeouts import (
    STALL_SECONDS,
    CallTimeout,
    TimeLimited,
    call_within,
)
from rlvitals.errors import UsageError, VitalsError, nearest
from rlvitals.storage import redact

MAX_SINGLE_PUT_BYTES = 8 << 20  # bytes: what is smaller is sent in one request
SCHEME_PACKAGES = {"sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol", "s3": "s3fs"} | {
    "gs": "gcsfs", "gcs": "gcsfs", "s3a": "s3fs", "abfs": "adlfs", "az": "adlfs",
}  # fmt: skip
# gcsfs logs each failed request with its traceback, which Python prints where no handler is set;
# the error that it raises says the same.
logging.getLogger("gcsfs").addHandler(logging.NullHandler())


class FsspecFiles:
    """Files below a URL that fsspec supports. After an error it reconnects.

    A call that takes more than `stall` seconds raises CallTimeout.
    """

    def __init__(
        self, connect: Callable[[], tuple[Any, str]], name: str, stall: float = STALL_SECONDS
    ) -> None:
        """Connect: to a file system, and the folder in it."""
        self.name = name
        self._connect, self._stall = connect, stall
        self._files, root = call_within(stall, connect)
        self._root = root.rstrip("/")
        protocols = self._files.protocol
        # An upload appears when it is complete. Names of fsspec's back-ends.
        stores = {
            "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "hf", "r2", "oci",
        }  # fmt: skip
        self._store = bool(
            stores & set(protocols if isinstance(protocols, tuple) else (protocols,))
        )

    @contextmanager
    def _connection(self) -> Iterator[TimeLimited]:
        """Yield the file system; after an error the next call reconnects."""
        if self._files is None:
            self._files, _ = call_within(self._stall, self._connect)
        try:
            yield TimeLimited(self._files, self._stall)
        except (FileNotFoundError, NotImplementedError, VitalsError):
            raise
        except Exception:
            self._files = None
            raise

    def sizes(self) -> dict[str, int]:
        """Return the current size of every file in bytes, without a cache."""
        with self._connection() as files:
            files.invalidate_cache()
            try:
                entries: Mapping[str, Mapping[str, Any]] = files.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
        if self._root in entries:
            raise UsageError("this is a file, a folder is needed", where=self.name)
        start = len(self._root) + 1
        return {
            path[start:]: int(entry.get("size") or 0)
            for path, entry in entries.items()
            if not path.endswith("/")
        }

    def read(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Read a file from an offset."""
        with (
            self._connection() as files,
            _open(files, self._path(name), "rb", COPY_CHUNK_BYTES) as file,
        ):
            if hasattr(file.real, "readv"):
                # Over SSH: all requests of a chunk at once, not a round trip for each 32 kB.
                size = int(file.stat().st_size)
                for offset in range(start, size, COPY_CHUNK_BYTES):
                    replies = file.real.readv([(offset, min(COPY_CHUNK_BYTES, size - offset))])
                    yield call_within(file.seconds, part(b"".join, replies))
                return
            if start:
                file.seek(start)
            while data := file.read(COPY_CHUNK_BYTES):
                yield data

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a complete file: in one upload, or under another name first."""
        path = self._path(name)
        with self._connection() as files:
            if self._store:
                _put_small(files, path, chunks)
                return
            head, _, tail = path.rpartition("/")
            temporary = f"{head}/.{tail}.partial"
            files.makedirs(head, exist_ok=True)
            try:
                _upload(files, temporary, chunks)
                _rename(files, temporary, path)
            except BaseException:
                files.in_passing("rm_file", temporary)
                raise

    def append(self, name: str, chunks: Iterable[bytes]) -> None:
        """Append to a file if the back-end transfers only the new bytes."""
        if self._store:
            raise NotImplementedError
        with (
            self._connection() as files,
            _open(files, self._path(name), "ab", COPY_CHUNK_BYTES) as file,
        ):
            for data in chunks:
                file.write(data)

    def remove(self, names: Collection[str]) -> None:
        """Delete files in this order, and folders that become empty."""
        with self._connection() as files:
            for name in names:
                with suppress(FileNotFoundError):
                    files.rm_file(self._path(name))
            if self._store or not names:
                return
            files.invalidate_cache()
            parents = {
                str(parent)
                for name in names
                for parent in PurePosixPath(name).parents
                if parent.name
            }
            for folder in sorted(parents, key=lambda name: -name.count("/")):
                try:
                    if not files.ls(self._path(folder), detail=False):
                        files.rmdir(self._path(folder))
                except CallTimeout:
                    raise
                except Exception:  # noqa: BLE001, S110 - something else lies in it: each says so otherwise
                    pass

    def begin(self, folder: str, *, replaces: bool) -> str:
        """Return the final folder; a hidden one if a checkpoint exists there."""
        return partial_name(folder) if replaces else folder

    def settle(
        self, work_folder: str, folder: str, names: Sequence[str], old: Sequence[str]
    ) -> None:
        """Copy the hidden folder, its manifest last, after deleting the old one, manifest first."""
        if work_folder == folder:
            return
        with self._connection() as files:
            is_pending = files.exists(self._path(f"{work_folder}/{names[-1]}"))
        if is_pending:  # else it was done before the error
            self.remove([f"{folder}/{name}" for name in reversed(old)])
            for name in names:
                self._copy(f"{work_folder}/{name}", f"{folder}/{name}")
        self.remove([f"{work_folder}/{name}" for name in reversed(names)])

    def drop(self, folder: str, names: Sequence[str]) -> None:
        """Delete a checkpoint, its manifest first."""
        for root in (folder, partial_name(folder)):
            self.remove([f"{root}/{name}" for name in reversed(names)])

    def room(self) -> int | None:
        """Return None: the free space is unknown."""
        return None

    def tidy(self) -> None:
        """Do nothing: partial files are overwritten."""

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _copy(self, source: str, name: str) -> None:
        try:
            with self._connection() as files:
                files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
                files.cp_file(self._path(source), self._path(name))
        except NotImplementedError:
            self.write(name, self.read(source))


@contextmanager
def _open(files: TimeLimited, path: str, mode: str, block_size: int) -> Iterator[TimeLimited]:
    file = TimeLimited(files.open(path, mode, block_size=block_size), files.seconds)
    try:
        if hasattr(file.real, "set_pipelined"):  # SSH: else a round trip for each 32 kB
            file.set_pipelined(True)
        yield file
    except BaseException:
        if mode != "wb":
            file.in_passing("close")
            raise
        # Closing would finish the upload: a torn file under a good name.
        file.in_passing("discard")
        with suppress(Exception):
            file.real.closed = True
        raise
    file.close()


def _put_small(files: TimeLimited, path: str, chunks: Iterable[bytes]) -> None:
    """Send small content in one request."""
    buffer, remaining = b"", iter(chunks)
    for data in remaining:
        buffer += data
        if len(buffer) > MAX_SINGLE_PUT_BYTES:
            _upload(files, path, chain((buffer,), remaining))
            return
    files.pipe_file(path, buffer)


def _upload(files: TimeLimited, path: str, chunks: Iterable[bytes]) -> None:
    with _open(files, path, "wb", MAX_SINGLE_PUT_BYTES) as file:
        for data in chunks:
            file.write(data)


def _rename(files: TimeLimited, temporary: str, path: str) -> None:
    try:
        files.mv(temporary, path)
    except OSError:  # some do not rename over what is there
        if not files.exists(path):
            raise
        files.rm_file(path)
        files.mv(temporary, path)


def open_url(url: str, options: Mapping[str, object], stall: float = STALL_SECONDS) -> FsspecFiles:
    """Return the file store of a URL. Raises UsageError, VitalsError naming the missing package."""
    display_url = redact.text(url)
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - optional
    except ImportError:
        hint = 'pip install "rlvitals[remote]"'
        problem = "a URL needs fsspec, which is not installed"
        raise VitalsError(problem, where=display_url, hint=hint) from None

    def connect() -> tuple[Any, str]:
        settings: dict[str, object] = {"skip_instance_cache": True, **options}
        if url.startswith(("s3://", "s3a://")) and not options:  # else one by these
            settings["session"] = s3_session()
        return url_to_fs(url, **settings)  # type: ignore[no-any-return]

    try:
        return FsspecFiles(connect, display_url, stall)
    except ImportError as error:
        package = SCHEME_PACKAGES.get(url.split("://", 1)[0], "")
        hint = f"pip install {package}" if package else str(error)
        problem = "this kind of URL needs a package that is not installed"
        raise VitalsError(problem, where=display_url, hint=hint) from None
    except ValueError as error:
        import fsspec  # noqa: PLC0415 - optional

        suggestion = nearest(url.split("://", 1)[0], fsspec.available_protocols())
        hint = suggestion or "a folder, s3://bucket/folder, gs://bucket/folder, sftp://host/folder"
        raise UsageError(f"not a target: {error}", where=display_url, hint=hint) from None
    except Exception as error:  # some connect at once, and raise errors of their own kinds
        problem = f"cannot be reached: {redact.text(str(error)) or type(error).__name__}"
        raise VitalsError(problem, where=display_url, hint=access_hint(url)) from error


def access_hint(url: str) -> str:
    """Return what gives access to a URL, by its scheme: a login, variables, a connection."""
    address = urlsplit(url)
    match address.scheme:
        case "sftp" | "ssh":
            return f"ssh {address.hostname or 'HOST'}, and its entry in ~/.ssh/config"
        case "s3" | "s3a":
            keys = "aws configure, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            return f"{keys}; AWS_ENDPOINT_URL names a server of one's own"
        case "gs" | "gcs":
            return "gcloud auth application-default login; is the bucket's name right?"
        case "az" | "abfs" | "abfss":
            return "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and _KEY"
        case "hf":
            return "hf auth login, or HF_TOKEN; is it USER/REPOSITORY, and on the network?"
    return "is the address right, and on the network?"
