"""The objects of a run in a bucket: their names, and the manifest that lists a node's uploads.

    <run>/attempts/<number>.json          which start of the run an attempt is
    <run>/segments/<node>/<level>-<sequence>-<sha256>   bytes of several files; never rewritten
    <run>/manifests/<node>.json           which bytes of which files lie in which segments
    <run>/beats/<node>.json               the heartbeats of the node's processes

Only what a manifest lists is part of the run. A node is one run folder on one machine: its ranks
share the folder, and one process uploads it. A store without If-Match has a manifest object
for each commit, `<node>.<sequence>-<random>.json`: the highest sequence counts, then the name.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.storage.safe_files import checksum
from rlvitals.storage.typed import Fields

BUCKET_FORMAT = 1
MANIFESTS, SEGMENTS, ATTEMPTS, BEATS = "manifests/", "segments/", "attempts/", "beats/"
MANIFEST_NAME = re.compile(rf"{MANIFESTS}(?P<node>\w+)(?:\.(?P<sequence>\d+)-\w+)?\.json")
ATTEMPT_NAME = re.compile(rf"{ATTEMPTS}(?P<number>\d+)(?:-\w+)?\.json")
SEGMENT_NAME = re.compile(rf"{SEGMENTS}\w+/(?P<level>\d)-(?P<sequence>\d+)-\w+")
# The files of a run folder that are uploaded; names from a bucket become paths of the reader.
RANK_FILE = re.compile(r"(?P<before>blocks/|life/)(?P<attempt>\d+)(?P<after>-\d+\.[a-z.]+)")
ROLLOUT_FILE = re.compile(r"(?P<before>rollouts/)(?P<attempt>\d+)(?P<after>-\d+-\d+\.jsonl\.zst)")


def upload_prefixes() -> tuple[str, ...]:
    """Return the beginnings of the names of all that an upload writes below a run's URL."""
    return MANIFESTS, SEGMENTS, ATTEMPTS, BEATS, "probes/"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file and where they lie: in a segment, from an offset on."""

    start: int  # in the file
    size: int  # bytes
    segment: str
    offset: int  # in the segment

    @property
    def end(self) -> int:
        """The offset in the file of what follows."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a node has uploaded of a run."""

    node: str
    sequence: int = 0  # of commits
    started: float = 0.0  # the first upload by the store's clock, seconds since the epoch
    attempts: Mapping[int, int] = field(default_factory=dict)  # the folder's number: the bucket's
    growing: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)  # each from byte 0 on
    rewritten: Mapping[str, Piece] = field(default_factory=dict)  # files that are rewritten
    heads: Mapping[str, str] = field(default_factory=dict)  # checksum of a growing file's beginning
    closed: bool = False  # no process writes the folder, and all of it is here
    cost: Mapping[str, int] = field(default_factory=dict)  # requests and bytes so far

    def size(self, file: str) -> int:
        """Return how many bytes of a growing file are uploaded."""
        pieces = self.growing.get(file, ())
        return pieces[-1].end if pieces else 0

    @property
    def compacted(self) -> set[str]:
        """The block files that a compacted one has replaced."""
        suffix = ".packed.rlv"
        return {
            f"{file.removesuffix(suffix)}.rlv" for file in self.rewritten if file.endswith(suffix)
        }

    def segments(self) -> dict[str, int]:
        """Return the segments in use and how many bytes of each are."""
        sizes: dict[str, int] = {}
        for piece in self.pieces():
            sizes[piece.segment] = sizes.get(piece.segment, 0) + piece.size
        return sizes

    def pieces(self) -> Iterator[Piece]:
        """Iterate over all pieces."""
        for pieces in self.growing.values():
            yield from pieces
        yield from self.rewritten.values()

    def add(self, growing: Mapping[str, Piece], rewritten: Mapping[str, Piece]) -> "Manifest":
        """Return the manifest with a segment's pieces and the next sequence."""
        longer = {name: (*self.growing.get(name, ()), piece) for name, piece in growing.items()}
        return replace(
            self,
            sequence=self.sequence + 1,
            growing={**self.growing, **longer},
            rewritten={**self.rewritten, **rewritten},
        )

    def move(self, moves: Mapping[Piece, Piece]) -> "Manifest":
        """Return the manifest with pieces that lie elsewhere now and the next sequence."""
        return replace(
            self,
            sequence=self.sequence + 1,
            growing={
                name: _join_pieces(moves.get(piece, piece) for piece in pieces)
                for name, pieces in self.growing.items()
            },
            rewritten={name: moves.get(piece, piece) for name, piece in self.rewritten.items()},
        )

    def encode(self) -> bytes:
        """Return the manifest as JSON, its checksum last."""
        numbers = {name: number for number, name in enumerate(self.segments())}
        record = {
            "format": BUCKET_FORMAT,
            "node": self.node,
            "sequence": self.sequence,
            "started": self.started,
            "attempts": {str(local): number for local, number in self.attempts.items()},
            "segments": list(numbers),
            "growing": {
                name: [_numbers(piece, numbers) for piece in pieces]
                for name, pieces in self.growing.items()
            },
            "whole": {name: _numbers(piece, numbers) for name, piece in self.rewritten.items()},
            "heads": dict(self.heads),
            "closed": self.closed,
            "cost": dict(self.cost),
        }
        body = json.dumps(record, separators=(",", ":")).encode()
        return body[:-1] + b',"checksum":"' + checksum(body) + b'"}'


def _numbers(piece: Piece, segments: Mapping[str, int]) -> list[int]:
    return [piece.start, piece.size, segments[piece.segment], piece.offset]


def _join_pieces(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Join neighbours in a file that are neighbours in a segment too."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if (
            last is not None
            and last.segment == piece.segment
            and last.end == piece.start
            and last.offset + last.size == piece.offset
        ):
            result[-1] = replace(last, size=last.size + piece.size)
        else:
            result.append(piece)
    return tuple(result)


def decode(data: bytes, name: str) -> Manifest:
    """Parse a manifest; `name` is what errors call it. Raises UnreadableLog."""
    body, _, end = data.rpartition(b',"checksum":"')
    try:
        if end != checksum(body + b"}") + b'"}':
            problem = "a manifest is not as it was written: its checksum differs"
            raise UnreadableLog(problem, where=name)
        record: dict[str, Any] = dict(Fields(typed.load(body + b"}"), name).values)
        if record["format"] != BUCKET_FORMAT:
            hint = "pip install --upgrade rlvitals"
            raise UnreadableLog("a bucket of a newer rlvitals", where=name, hint=hint)
        names = record["segments"]
        growing = {
            file: tuple(_piece(item, names) for item in items)
            for file, items in record["growing"].items()
        }
        rewritten = {file: _piece(item, names) for file, item in record["whole"].items()}
        attempts = {int(local): int(number) for local, number in record["attempts"].items()}
        return Manifest(
            str(record["node"]), int(record["sequence"]), float(record["started"]), attempts,
            growing, rewritten, dict(record["heads"]), bool(record["closed"]), dict(record["cost"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnreadableLog(f"no manifest of rlvitals: {error!r}", where=name) from None


def _piece(item: list[int], names: list[str]) -> Piece:
    start, size, number, offset = map(int, item)
    if min(start, size, number, offset) < 0 or not SEGMENT_NAME.fullmatch(names[number]):
        raise ValueError(f"invalid piece: {item}")
    return Piece(start, size, names[number], offset)


def newest(names: Iterable[str]) -> dict[str, str]:
    """Return the object of each node's newest manifest, of a listing."""
    best: dict[str, tuple[int, str]] = {}
    for name in names:
        if match := MANIFEST_NAME.fullmatch(name):
            order = int(match["sequence"] or 0), name
            best[match["node"]] = max(order, best.get(match["node"], (-1, "")))
    return {node: name for node, (_, name) in best.items()}


def local_attempt(file: str) -> int | None:
    """Return the folder's attempt that a file belongs to; None for a file of all attempts."""
    match = RANK_FILE.fullmatch(file) or ROLLOUT_FILE.fullmatch(file)
    return None if match is None else int(match["attempt"])


def reader_name(file: str, attempts: Mapping[int, int]) -> str:
    """Return a file's name where attempts are numbered as in the bucket; "" for no file of a run.

    A name that is not of the known forms is refused: it would become a path on this machine.
    """
    match = RANK_FILE.fullmatch(file) or ROLLOUT_FILE.fullmatch(file)
    if match is None:
        return ""
    number = attempts.get(int(match["attempt"]))
    if number is None:
        return ""
    width = 4 if match["before"] == "rollouts/" else 0
    return f"{match['before']}{number:0{width}d}{match['after']}"


def distinct(nodes: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Return manifests that have no file of the same name in common.

    A file that two nodes uploaded is taken from where it is longer. Two files of one rank of an
    attempt, by different beginnings, are two starts of one launch that its variables do not tell
    apart: the later one, by the store's clock, gets a number of its own.
    """
    owners: dict[str, tuple[str, str]] = {}  # a reader's name: node and checksum of the beginning
    moved: dict[tuple[int, int], int] = {}  # number and how many starts before: new number
    last = max((number for node in nodes.values() for number in node.attempts.values()), default=0)
    result: dict[str, Manifest] = {}
    for name in sorted(nodes, key=lambda name: (nodes[name].started, name)):
        node = nodes[name]
        attempts = dict(node.attempts)
        for local, number in sorted(node.attempts.items()):
            depth = 0
            while _has_other(node, local, attempts[local], owners):
                depth += 1
                attempts[local] = moved.setdefault((number, depth), last + len(moved) + 1)
        node = replace(node, attempts=attempts)
        growing = {}
        for file, pieces in node.growing.items():
            file_name = reader_name(file, attempts) or f"{file} {node.heads.get(file, name)}"
            owner = owners.get(file_name, (name, ""))[0]
            if owner != name and result[owner].size(file) >= node.size(file):
                continue
            if owner != name:
                remaining = {
                    key: item for key, item in result[owner].growing.items() if key != file
                }
                result[owner] = replace(result[owner], growing=remaining)
            owners[file_name] = name, node.heads.get(file, "")
            growing[file] = pieces
        result[name] = replace(node, growing=growing)
    return result


def _has_other(
    node: Manifest, local: int, number: int, owners: Mapping[str, tuple[str, str]]
) -> bool:
    """Return whether another file has the place of one of an attempt's."""
    for file in node.growing:
        if local_attempt(file) == local and file.startswith("blocks/"):
            head = owners.get(reader_name(file, {local: number}), ("", ""))[1]
            if head and head != node.heads.get(file, head):
                return True
    return False
