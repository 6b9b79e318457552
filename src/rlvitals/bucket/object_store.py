"""Read and write the objects below a URL, by conditions where the store has them.

    store = ObjectStore("s3://bucket/runs/x")
    version = store.create("manifests/a.json", data)        # Conflict where it exists
    version = store.replace("manifests/a.json", data, version)  # Conflict where it changed

S3 has both conditions (`If-None-Match: *`, `If-Match`). Through fsspec the other stores have the
first at most; `probe` finds out. Each request is counted with its bytes.
"""

import os
import secrets
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, TypeVar

from rlvitals.checkpoints.transfer.fsspec_remote import SCHEME_PACKAGES
from rlvitals.checkpoints.transfer.timeouts import call_within
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage import redact

ResultT = TypeVar("ResultT")
CALL_SECONDS = 60.0  # seconds that one request may take
PARALLEL_READS = 16  # requests under way at once, of S3's connection pool of 50
S3_SCHEMES = ("s3", "s3a")
PRECONDITION_CODES = ("PreconditionFailed", "412")


class Conflict(Exception):  # noqa: N818 - it is an answer of the store
    """A conditional write that the store refused: the object exists, or has changed."""


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

    def __init__(self, url: str, seconds: float = CALL_SECONDS) -> None:
        """Connect. Raises UsageError for no URL, VitalsError without the store's package."""
        self.url, self.name = url.rstrip("/"), redact.text(url)
        self.cost = Cost()
        self._seconds = seconds
        self._files: Any = None
        self._root = ""
        self.is_s3 = url.partition(":")[0] in S3_SCHEMES
        self._connect()

    def _connect(self) -> None:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - optional

            options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
            if self.is_s3:
                # Retries are the caller's: botocore's own take minutes of a store that is down.
                limits = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 0}}
                options |= {"config_kwargs": limits, "session": _session()}
                if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
                    options["endpoint_url"] = endpoint
            files, root = call_within(self._seconds, partial(url_to_fs, self.url, **options))
        except ImportError as error:
            package = SCHEME_PACKAGES.get(self.url.partition(":")[0], "")
            hint = 'pip install "rlvitals[remote]"'
            if not (error.name or "").startswith("fsspec"):
                hint = 'pip install "rlvitals[s3]"' if self.is_s3 else f"pip install {package}"
            problem = f"a package for this kind of URL is not installed: {error.name or error}"
            raise VitalsError(problem, where=self.name, hint=hint) from None
        except ValueError as error:
            hint = "s3://bucket/runs/my_run, gs://..., az://..."
            raise UsageError(f"not a bucket: {error}", where=self.name, hint=hint) from None
        self._files, self._root = files, root.rstrip("/")
        if self.is_s3:
            files.retries = 1

    def probe(self) -> Conditions:
        """Return which conditional writes the store honours, by trying them on an object."""
        name = f"probes/{secrets.token_hex(8)}"
        self.create(name, b"1")
        try:
            return Conditions(self._refuses(name), self.is_s3 and self._refuses(name, '"0"'))
        finally:
            with suppress(Exception):
                self.delete([name])

    def _refuses(self, name: str, version: str | None = None) -> bool:
        try:
            if version is None:
                self.create(name, b"2")
            else:
                self.replace(name, b"2", version)
        except Conflict:
            return True
        return False

    def create(self, name: str, data: bytes) -> str:
        """Write an object that does not exist yet; return its version. Raises Conflict."""
        if self.is_s3:
            return self._put(name, data, IfNoneMatch="*")
        try:
            self._pipe(name, data, mode="create")
        except FileExistsError:
            raise Conflict(name) from None
        return ""

    def replace(self, name: str, data: bytes, version: str) -> str:
        """Write an object where its version is still this one. Raises Conflict."""
        if not self.is_s3:
            raise NotImplementedError("this store has no If-Match")
        return self._put(name, data, IfMatch=version)

    def write(self, name: str, data: bytes) -> None:
        """Write an object, whatever is there."""
        if self.is_s3:
            self._put(name, data)
        else:
            self._pipe(name, data)

    def _pipe(self, name: str, data: bytes, **options: str) -> None:
        self.cost.puts += 1
        self.cost.sent += len(data)
        self._call(lambda files: files.pipe_file(self._path(name), data, **options))

    def _put(self, name: str, data: bytes, **condition: str) -> str:
        bucket, _, key = self._path(name).partition("/")
        self.cost.puts += 1
        self.cost.sent += len(data)
        try:
            answer = self._call(
                lambda files: files.call_s3(
                    "put_object", Bucket=bucket, Key=key, Body=data, **condition
                )
            )
        except OSError as error:
            is_missing = "IfMatch" in condition and _code(error) == "NoSuchKey"
            if condition and (is_missing or _code(error) in PRECONDITION_CODES):
                raise Conflict(name) from None
            raise
        return str(answer["ETag"])

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Return an object, or `size` bytes of it from `start`. Raises FileNotFoundError."""
        end = None if size is None else start + size
        # Without a start s3fs asks for the size first.
        data = bytes(
            self._call(lambda files: files.cat_file(self._path(name), start=start, end=end))
        )
        self.cost.gets += 1
        self.cost.received += len(data)
        return data

    def read_many(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return objects by name, several at once; those that are gone are left out."""
        result: dict[str, bytes] = {}
        for first in range(0, len(names), PARALLEL_READS):
            batch = names[first : first + PARALLEL_READS]
            for name, data in zip(batch, self._cat(batch), strict=True):
                if isinstance(data, bytes):
                    result[name] = data
                elif not isinstance(data, FileNotFoundError):
                    raise data
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
        self, names: Sequence[str], starts: "int | list[int]" = 0, ends: "list[int] | None" = None
    ) -> "list[bytes | Exception]":
        # Not `cat`, which looks for wildcards in a listing that it has kept.
        paths = [self._path(name) for name in names]
        answers: list[bytes | Exception] = self._call(
            lambda files: files.cat_ranges(paths, starts, ends, on_error="return")
        )
        self.cost.gets += len(paths)
        self.cost.received += sum(len(data) for data in answers if isinstance(data, bytes))
        return answers

    def clock(self) -> float:
        """Return the time by the store's clock; by this machine's where the store tells none."""
        if self.is_s3:
            bucket = self._path("").partition("/")[0]
            self.cost.gets += 1
            answer = self._call(lambda files: files.call_s3("head_bucket", Bucket=bucket))
            if date := answer["ResponseMetadata"]["HTTPHeaders"].get("date"):
                return parsedate_to_datetime(date).timestamp()
        return clock.time()

    def list_folders(self) -> "list[str]":
        """List the names that have objects below them, by name: one request for 1,000 names."""
        self.cost.puts += 1
        try:
            details = self._call(lambda files: files.ls(self._path(""), detail=True))
        except FileNotFoundError:
            return []
        self.cost.puts += len(details) // 1000
        paths = [each["name"].rstrip("/") for each in details if each["type"] == "directory"]
        return sorted(path.rpartition("/")[2] for path in paths)

    def list(self, prefix: str) -> "list[Entry]":
        """List the objects below a prefix that ends at a "/", by name."""
        self.cost.puts += 1
        path, options = self._path(prefix.rstrip("/")), {}
        if self.is_s3:  # without a prefix s3fs asks twice more whether an empty folder is a file
            path, _, name = path.rpartition("/")
            options = {"prefix": f"{name}/"}
        try:
            details_by_path = self._call(partial(_find, path=path, **options))
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

    def _call(self, call: Callable[[Any], ResultT]) -> ResultT:
        if self._files is None:
            self._connect()
        files = self._files
        try:
            return call_within(self._seconds, lambda: call(files))
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            if _code(error) not in PRECONDITION_CODES:
                self._files = None
            raise


def _session() -> Any:  # noqa: ANN401 - aiobotocore's own
    """Return a session of aiobotocore, whose credentials are read anew."""
    from aiobotocore.session import AioSession  # noqa: PLC0415 - optional

    session = AioSession()
    session.register_component("data_loader", _description_loader())
    return session


@cache
def _description_loader() -> Any:  # noqa: ANN401 - botocore's own
    """Return what loads botocore's description of S3: to parse it is most of a connection's CPU."""
    from aiobotocore.session import AioSession  # noqa: PLC0415 - the same

    return AioSession().get_component("data_loader")


def _code(error: BaseException) -> str:
    """Return the code of an S3 error below the error that s3fs makes of it; "" without one."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _find(
    files: Any,  # noqa: ANN401 - the same
    path: str,
    **options: str,
) -> dict[str, Mapping[str, Any]]:
    files.invalidate_cache()
    return dict(files.find(path, detail=True, **options))


def _entry(name: str, details: Mapping[str, Any]) -> Entry:
    moments = (details.get(key) for key in ("LastModified", "last_modified", "updated", "created"))
    modified = _seconds(next((moment for moment in moments if moment is not None), None))
    keys = ("ETag", "etag", "generation", "md5Hash")
    version = next((str(details[key]) for key in keys if details.get(key)), "")
    size = int(details.get("size") or 0)
    return Entry(name.lstrip("/"), version or f"{size}-{modified}", size, modified)


def _seconds(moment: object) -> float | None:
    """Return a time of a listing in seconds since the epoch."""
    if isinstance(moment, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(moment)
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(moment) if isinstance(moment, int | float) else None
