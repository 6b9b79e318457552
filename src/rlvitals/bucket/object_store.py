"""Read and write the objects below a URL, by conditions where the store has them.

    store = ObjectStore("s3://bucket/runs/x")
    version = store.create("manifests/a.json", data)        # Conflict where it exists
    version = store.replace("manifests/a.json", data, version)  # Conflict where it changed

S3, Google's and Azure's stores have both conditions. Others have the first at most; `probe` tells
which. Each request is counted with its bytes.
"""

import copy
import os
import secrets
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self, TypeVar

from rlvitals.bucket.store_dialects import Conflict, dialect_of, store_time
from rlvitals.checkpoints.transfer.copy_files import RetryPolicy
from rlvitals.checkpoints.transfer.fsspec_remote import SCHEME_PACKAGES
from rlvitals.checkpoints.transfer.s3_session import s3_session
from rlvitals.checkpoints.transfer.timeouts import call_within
from rlvitals.errors import UsageError, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import redact

ResultT = TypeVar("ResultT")
PARALLEL_READS = 16  # requests under way at once, of S3's connection pool of 50
S3_SCHEMES = ("s3", "s3a")


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of a listing."""

    name: str
    version: str  # differs where the content does
    size: int  # bytes
    modified: float | None  # by the store's clock, seconds since the epoch


@dataclass(slots=True)
class Cost:
    """The requests of a process, and their bytes."""

    puts: int = 0  # PUT and LIST, which stores charge alike
    gets: int = 0
    sent: int = 0  # bytes
    received: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditional writes that a store honours."""

    create: bool
    replace: bool


class ObjectStore:
    """The objects below a URL. After an error it reconnects, with credentials read anew.

    Errors are those of the back-end; FileNotFoundError is its word for a missing object.
    """

    def __init__(self, url: str, seconds: float = 60.0, tries: int = 1) -> None:
        """Connect. Raises UsageError for no URL, VitalsError without the store's package.

        `tries`: of a request that reads, which a store may refuse for its load. An upload has
        pauses of its own.
        """
        self.url, self.name = url.rstrip("/"), redact.text(url)
        self.cost = Cost()
        self._seconds = seconds
        self._patience = RetryPolicy(tries=tries, first=0.25)
        self._files: Any = None
        self._root = ""
        self._scheme = url.partition(":")[0]
        self._dialect = dialect_of(self._scheme)
        self._connect()

    def _connect(self) -> None:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - optional

            options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
            if self._scheme in S3_SCHEMES:
                # Retries are the caller's: botocore's own take minutes of a store that is down.
                limits = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 0}}
                options |= {"config_kwargs": limits, "session": s3_session()}
                if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
                    options["endpoint_url"] = endpoint
            files, root = call_within(self._seconds, partial(url_to_fs, self.url, **options))
        except ImportError as error:
            package = SCHEME_PACKAGES.get(self._scheme, "")
            hint = 'pip install "rlvitals[remote]"'
            if not (error.name or "").startswith("fsspec"):
                is_s3 = self._scheme in S3_SCHEMES
                hint = 'pip install "rlvitals[s3]"' if is_s3 else f"pip install {package}"
            problem = f"a package for this kind of URL is not installed: {error.name or error}"
            raise VitalsError(problem, where=self.name, hint=hint) from None
        except ValueError as error:
            hint = "s3://bucket/runs/my_run, gs://..., az://..."
            raise UsageError(f"not a bucket: {error}", where=self.name, hint=hint) from None
        self._files, self._root = files, root.rstrip("/")
        if self._scheme in S3_SCHEMES:
            files.retries = 1

    def open_below(self, name: str) -> Self:
        """Return the objects below a name, on the same connection, with a cost of their own."""
        inner = copy.copy(self)
        inner.url, inner.name = f"{self.url}/{name}", f"{self.name}/{name}"
        inner.cost, inner._root = Cost(), self._path(name)  # noqa: SLF001 - of this class
        return inner

    @property
    def has_replace(self) -> bool:
        """Whether this kind of store replaces by version; `probe` tells whether this one does."""
        return self._dialect is not None

    def probe(self) -> Conditions:
        """Return which conditional writes the store honours, by trying them on an object."""
        name = f"probes/{secrets.token_hex(8)}"
        version = self.create(name, b"1")
        try:
            can_create = self._refuses(self.create, name, b"2")
            if not can_create or not self.has_replace:
                return Conditions(can_create, replace=False)
            self.replace(name, b"3", version)
            return Conditions(can_create, self._refuses(self.replace, name, b"4", version))
        finally:
            with suppress(Exception):
                self.delete([name])

    def _refuses(self, write: Callable[..., str], *arguments: object) -> bool:
        try:
            write(*arguments)
        except Conflict:
            return True
        return False

    def create(self, name: str, data: bytes) -> str:
        """Write an object that does not exist yet; return its version. Raises Conflict."""
        if self._dialect is not None:
            return self._put(name, data, None)
        try:
            self._pipe(name, data, mode="create")
        except FileExistsError:
            raise Conflict(name) from None
        return ""

    def replace(self, name: str, data: bytes, version: str) -> str:
        """Write an object where its version is still this one; return its new version.

        Raises Conflict.
        """
        return self._put(name, data, version)

    def write(self, name: str, data: bytes) -> None:
        """Write an object, whatever is there."""
        self._pipe(name, data)

    def _pipe(self, name: str, data: bytes, **options: str) -> None:
        self.cost.puts += 1
        self.cost.sent += len(data)
        self._call(lambda files: files.pipe_file(self._path(name), data, **options))

    def _put(self, name: str, data: bytes, version: str | None) -> str:
        dialect = self._dialect
        if dialect is None:
            raise NotImplementedError("this store has no If-Match")
        self.cost.puts += 1
        self.cost.sent += len(data)
        return self._call(lambda files: dialect.put(files, self._path(name), data, version))

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Return an object, or `size` bytes of it from `start`. Raises FileNotFoundError."""
        end = None if size is None else start + size
        # Without a start s3fs asks for the size first.
        data = bytes(
            self._call_patiently(
                lambda files: files.cat_file(self._path(name), start=start, end=end)
            )
        )
        self.cost.gets += 1
        self.cost.received += len(data)
        return data

    def read_many(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return objects by name, several at once; those that are gone are left out."""
        result: dict[str, bytes] = {}
        for first in range(0, len(names), PARALLEL_READS):
            batch = names[first : first + PARALLEL_READS]
            pairs = zip(batch, self._cat(batch), strict=True)
            result.update((name, data) for name, data in pairs if isinstance(data, bytes))
        return result

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> "list[bytes]":
        """Return parts of objects, given as (name, start, end), several at once.

        Raises FileNotFoundError where one of the objects is gone.
        """
        result = []
        for first in range(0, len(ranges), PARALLEL_READS):
            batch = ranges[first : first + PARALLEL_READS]
            names = [name for name, _, _ in batch]
            for data in self._cat(names, [low for _, low, _ in batch], [top for *_, top in batch]):
                if not isinstance(data, bytes):
                    raise data
                result.append(data)
        return result

    def _cat(
        self,
        names: Sequence[str],
        starts: "Sequence[int] | None" = None,
        ends: "Sequence[int] | None" = None,
    ) -> "list[bytes | FileNotFoundError]":
        """Return parts of objects, of each the error where it is gone."""
        paths = [self._path(name) for name in names]
        answers: dict[int, bytes | FileNotFoundError] = {}

        def ask() -> None:
            """Ask for what was not answered yet."""
            numbers = [number for number in range(len(paths)) if number not in answers]
            # Not `cat`, which looks for wildcards in a listing that it has kept.
            results = self._call(
                lambda files: files.cat_ranges(
                    [paths[number] for number in numbers],
                    [starts[number] if starts else 0 for number in numbers],
                    [ends[number] if ends else None for number in numbers],
                    on_error="return",
                )
            )
            pairs = list(zip(numbers, results, strict=True))
            answers.update(pair for pair in pairs if isinstance(pair[1], bytes | FileNotFoundError))
            for number, result in pairs:
                if number not in answers:
                    raise result

        self._patience.call(ask)
        self.cost.gets += len(paths)
        self.cost.received += sum(len(data) for data in answers.values() if isinstance(data, bytes))
        return [answers[number] for number in range(len(paths))]

    def clock(self) -> float:
        """Return the time by the store's clock; by this machine's where the store tells none."""
        dialect = self._dialect
        if dialect is None:
            return clock.time()
        self.cost.gets += 1
        answer = self._call_patiently(lambda files: store_time(dialect, files, self._path("")))
        return clock.time() if answer is None else answer

    def list_folders(self) -> "list[str]":
        """List the names that have objects below them, by name: one request for 1,000 names."""
        self.cost.puts += 1
        try:
            details = self._call_patiently(lambda files: files.ls(self._path(""), detail=True))
        except FileNotFoundError:
            return []
        self.cost.puts += len(details) // 1000
        paths = [each["name"].rstrip("/") for each in details if each["type"] == "directory"]
        return sorted(path.rpartition("/")[2] for path in paths)

    def list(self, prefix: str) -> "list[Entry]":
        """List the objects below a prefix that ends at a "/", by name."""
        self.cost.puts += 1
        path, options = self._path(prefix.rstrip("/")), {}
        if self._scheme in S3_SCHEMES:
            # Without a prefix s3fs asks twice more whether an empty folder is a file.
            path, _, name = path.rpartition("/")
            options = {"prefix": f"{name}/"}
        try:
            details_by_path = self._call_patiently(partial(_find, path=path, **options))
        except FileNotFoundError:
            return []
        start = len(self._root) + 1
        entries = [_entry(path[start:], details) for path, details in details_by_path.items()]
        self.cost.puts += len(entries) // 1000  # a page of a listing has 1,000
        return sorted(entries, key=lambda entry: entry.name)

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; one that is gone already is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                self._remove(self._path(name))

    def _remove(self, path: str) -> None:
        self._call(lambda files: files.rm_file(path))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _call_patiently(self, call: Callable[[Any], ResultT]) -> ResultT:
        return self._patience.call(lambda: self._call(call))

    def _call(self, call: Callable[[Any], ResultT]) -> ResultT:
        if self._files is None:
            self._connect()
        files = self._files
        try:
            return call_within(self._seconds, lambda: call(files))
        except (FileNotFoundError, FileExistsError, Conflict):
            raise
        except Exception:
            self._files = None
            raise


def _find(
    files: Any,  # noqa: ANN401 - the same
    path: str,
    **options: str,
) -> dict[str, Mapping[str, Any]]:
    files.invalidate_cache()
    return dict(files.find(path, detail=True, **options))


def _entry(name: str, details: Mapping[str, Any]) -> Entry:
    moments = (details.get(key) for key in ("LastModified", "last_modified", "updated", "created"))
    moment = next((moment for moment in moments if moment is not None), None)
    if isinstance(moment, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(moment)
    modified: float | None
    if isinstance(moment, datetime):
        modified = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    else:
        modified = float(moment) if isinstance(moment, int | float) else None
    keys = ("generation", "ETag", "etag", "md5Hash")
    version = next((str(details[key]) for key in keys if details.get(key)), "")
    size = int(details.get("size") or 0)
    return Entry(name.lstrip("/"), version or f"{size}-{modified}", size, modified)
