"""What fsspec reaches: object stores, SSH, other people's file systems.

An object store has no rename and shows an object when its upload ends. Elsewhere a file that is
being written can be seen: there it is written under another name first.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rlvitals.errors import UsageError, VitalsError, nearest
from rlvitals.recording import redact
from rlvitals.resume.moving.places import CHUNK, SCHEME, partial

# Their uploads appear whole, at the end: by the names of fsspec's back-ends.
STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "hf", "r2", "oci"}
)
ONE_PUT = 8 << 20  # bytes: what is smaller is sent in one request
PACKAGES = {"sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol", "s3": "s3fs"} | {
    "gs": "gcsfs", "gcs": "gcsfs", "s3a": "s3fs", "abfs": "adlfs", "az": "adlfs",
}  # fmt: skip


class Remote:
    """A place that fsspec reaches."""

    def __init__(self, files: Any, root: str, name: str) -> None:  # noqa: ANN401 - fsspec's own
        """Name the file system and the folder in it."""
        self.name = name
        self._files, self._root = files, root.rstrip("/")
        protocols = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
        self._store = bool(STORES & set(protocols))

    def sizes(self) -> dict[str, int]:
        """List every file with its bytes, as it is now: nothing is taken from a cache."""
        self._files.invalidate_cache()
        try:
            found: Mapping[str, Mapping[str, Any]] = self._files.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        if self._root in found:
            raise UsageError("this is a file, a folder is needed", where=self.name)
        start = len(self._root) + 1
        return {
            path[start:]: int(said.get("size") or 0)
            for path, said in found.items()
            if not path.endswith("/")
        }

    def read(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Read a file from an offset."""
        with self._files.open(self._at(name), "rb", block_size=CHUNK) as file:
            if start:
                file.seek(start)
            while data := file.read(CHUNK):
                yield data

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file whole: in one upload, or under another name first."""
        path = self._at(name)
        if self._store:
            self._upload(path, chunks)
            return
        head, _, tail = path.rpartition("/")
        made = f"{head}/.{tail}.partial"
        self._files.makedirs(head, exist_ok=True)
        try:
            self._upload(made, chunks)
            self._rename(made, path)
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(made)
            raise

    def append(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write behind a file's end, where that costs no more than what is new."""
        if self._store:
            raise NotImplementedError
        with self._files.open(self._at(name), "ab") as file:
            for data in chunks:
                file.write(data)

    def remove(self, names: Collection[str]) -> None:
        """Delete files in this order; empty folders are left to the place."""
        for name in names:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._at(name))
        self._files.invalidate_cache()
        if self._store:
            return
        above = {name.rsplit("/", count)[0] for name in names for count in range(1, 9)}
        above = {one for one in above if any(name.startswith(f"{one}/") for name in names)}
        for folder in sorted(above, key=lambda one: -one.count("/")):
            with suppress(Exception):  # something else lies in it: each back-end says so otherwise
                if not self._files.ls(self._at(folder), detail=False):
                    self._files.rmdir(self._at(folder))

    def begin(self, folder: str, *, replaces: bool) -> str:
        """Name the final folder, whose seal comes last; a hidden one where another is there."""
        return partial(folder) if replaces else folder

    def settle(self, made: str, folder: str, names: Sequence[str], old: Sequence[str]) -> None:
        """Copy what was written beside, its seal last; what was there before goes, seal first."""
        if made == folder:
            return
        if self._files.exists(self._at(f"{made}/{names[-1]}")):
            self.remove([f"{folder}/{name}" for name in reversed(old)])
            for name in names:
                self._copy(f"{made}/{name}", f"{folder}/{name}")
        self.remove([f"{made}/{name}" for name in reversed(names)])

    def drop(self, folder: str, names: Sequence[str]) -> None:
        """Delete the seal first."""
        for one in (folder, partial(folder)):
            self.remove([f"{one}/{name}" for name in reversed(names)])

    def room(self) -> int | None:
        """Nobody can tell."""
        return None

    def tidy(self) -> None:
        """Nothing: what was half-written has a name that is written over."""

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _upload(self, path: str, chunks: Iterable[bytes]) -> None:
        held, rest = b"", iter(chunks)
        for data in rest:
            held += data
            if len(held) > ONE_PUT:
                break
        else:
            self._files.pipe_file(path, held)
            return
        file = self._files.open(path, "wb", block_size=max(ONE_PUT, CHUNK))
        try:
            file.write(held)
            for data in rest:
                file.write(data)
        except BaseException:
            # Closing would finish the upload: a torn file under a good name.
            with suppress(Exception):
                file.discard()
            file.closed = True
            raise
        file.close()

    def _rename(self, made: str, path: str) -> None:
        try:
            self._files.mv(made, path)
        except OSError:  # some do not rename over what is there
            if not self._files.exists(path):
                raise
            self._files.rm_file(path)
            self._files.mv(made, path)

    def _copy(self, made: str, name: str) -> None:
        try:
            self._files.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
            self._files.cp_file(self._at(made), self._at(name))
        except NotImplementedError:
            self.write(name, self.read(made))


def remote(url: str, options: Mapping[str, object]) -> Remote:
    """Return the place of a URL. Raises UsageError, VitalsError naming what to install."""
    scheme = url.split(SCHEME, 1)[0]
    shown = redact.text(url)
    try:
        import fsspec  # noqa: PLC0415 - optional
        from fsspec.core import url_to_fs  # noqa: PLC0415 - optional
    except ImportError:
        raise VitalsError(
            "a URL needs fsspec, which is not installed",
            where=shown,
            hint='pip install "rlvitals[remote]"',
        ) from None
    try:
        files, root = url_to_fs(
            url, **{"use_listings_cache": False, "skip_instance_cache": True, **options}
        )
    except ImportError as error:
        package = PACKAGES.get(scheme, "")
        hint = f"pip install {package}" if package else str(error)
        problem = f"{scheme}:// needs a package that is not installed"
        raise VitalsError(problem, where=shown, hint=hint) from None
    except ValueError as error:
        known = fsspec.available_protocols()
        hint = nearest(scheme, known) if scheme not in known else str(error)
        problem = f"nothing knows how to reach {scheme}://"
        hint = hint or "a folder, s3://, gs://, sftp://host/folder, ..."
        raise UsageError(problem, where=shown, hint=hint) from None
    return Remote(files, str(root), shown)
