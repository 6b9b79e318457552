"""Check every byte of a run and report the damaged blocks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import compacted, events, frames, payloads, run_folder, typed
from rlvitals.storage.blocks import try_lock
from rlvitals.storage.frames import Damage, Frame, Kind, Tail
from rlvitals.storage.origin import Origin
from rlvitals.storage.run_folder import BLOCKS_FOLDER, EVENTS_FILE, RUN_FILE
from rlvitals.storage.tiers import Tier


@dataclass(frozen=True, slots=True)
class Report:
    """The result of checking one file."""

    name: str  # within the run's folder
    size: int  # bytes
    blocks: int = 0  # readable blocks
    rows: int = 0  # that can be read
    damage: tuple[Damage, ...] = ()
    torn: int = 0  # bytes of an incomplete block at the end, left by a killed process
    growing: bool = False  # it is being written to
    problem: str = ""  # nothing of it can be read

    @property
    def is_intact(self) -> bool:
        """Whether the file is undamaged; a torn end is what a killed process leaves."""
        return not self.damage and not self.problem


def verify(folder: Path) -> tuple[Report, ...]:
    """Check a run folder's files. Raises UnreadableLog for a newer format."""
    return (
        *_verify_run_file(folder / RUN_FILE),
        *(_verify_blocks(path) for file in run_folder.block_files(folder) for path in file.paths),
        *_verify_events(folder / EVENTS_FILE),
    )


def _verify_run_file(path: Path) -> Iterator[Report]:
    size = path.stat().st_size if path.exists() else 0
    try:
        stored = run_folder.read_both(path)
    except run_folder.NewerFormat:
        raise
    except UnreadableLog as error:
        yield Report(RUN_FILE, size, problem=error.problem)
    else:
        damage = (Damage(0, size, stored.damage),) if stored.damage else ()
        yield Report(RUN_FILE, size, damage=(*damage, *_fields(stored.about.wrong)))


def _verify_events(path: Path) -> Iterator[Report]:
    if not path.exists():
        return
    size = path.stat().st_size
    try:
        scan = events.read(path)
    except OSError as error:
        yield Report(EVENTS_FILE, size, problem=error.strerror or str(error))
        return
    skipped = [f"{quantity(scan.skipped, 'line')} not read as events"] if scan.skipped else []
    torn = size - scan.cursor.offset
    damage = _fields([*skipped, *typed.summary(scan.wrong)])
    yield Report(EVENTS_FILE, size, len(scan.events), 0, damage, torn)


def _fields(wrong: Sequence[str]) -> tuple[Damage, ...]:
    return tuple(Damage(0, 0, text) for text in wrong)


def _verify_blocks(path: Path) -> Report:
    name, size = f"{BLOCKS_FOLDER}/{path.name}", path.stat().st_size
    try:
        with path.open("rb", buffering=0) as file:
            growing = not try_lock(file.fileno(), exclusive=True)
            check = _Check()
            for item in frames.stream(file):
                check.take(item)
    except OSError as error:
        return Report(name, size, problem=error.strerror or str(error))
    if check.torn and path.name.endswith(".packed.rlv"):  # it was whole when it got its name
        offset = size - check.torn
        check.damage.append(Damage(offset, check.torn, "the end of the file is torn"))
        check.torn = 0
    damage = (
        *check.damage,
        *check.find_lost_rows(),
    )  # this takes the lost rows from those that are read
    return Report(name, size, check.blocks, check.rows, damage, check.torn, growing)


class _Check:
    """Counters of readable blocks and rows, and the positions of damaged ones."""

    def __init__(self) -> None:
        self.blocks = self.rows = self.torn = 0
        self.damage: list[Damage] = []
        self._tables: dict[int, int] = {}  # columns of each key table
        self._waiting: list[tuple[Damage, int, int, int]] = []  # its table, columns, rows

    def take(self, item: frames.Part) -> None:
        if isinstance(item, Tail):
            self.torn = item.size
        elif isinstance(item, Damage):
            self.damage.append(item)
        else:
            self.blocks += 1
            header, extent = item.header, Damage(item.offset, item.end - item.offset, "")
            if header.kind in {Kind.SCALARS, Kind.PACKED}:
                self.rows += header.rows
                self._waiting.append((extent, header.table, header.columns, header.rows))
            try:
                self._parse(item)
            except ValueError as error:
                self._add_damage(item, f"a block that makes no sense: {error}")
            except compacted.Damaged:
                self._add_damage(item, "its index does not match its columns")

    def _parse(self, frame: Frame) -> None:
        """Read a frame's content as a reader does. Raises ValueError, packed.Damaged."""
        header, kind = frame.header, frame.header.kind
        if kind == Kind.KEYS:
            self._tables[header.table] = len(payloads.decode_keys(frame.payload))
        elif kind == Kind.ORIGIN:
            Origin.parse(frame)
        elif kind == Kind.TIER:
            Tier.parse(frame)
        elif kind == Kind.PACKED:
            compacted.check(frame, ("",) * header.columns)
        elif kind in payloads.PARSERS:
            content = payloads.PARSERS[kind](frame.payload)
            for wrong in content.wrong if isinstance(content, payloads.Changed) else ():
                self._add_damage(frame, wrong)
        elif kind == Kind.SCALARS and header.size != 8 * header.rows * (header.columns + 2):
            raise ValueError("its length is not that of its rows")
        elif kind not in set(Kind):
            self._add_damage(frame, f"a block of kind {kind}")

    def _add_damage(self, frame: Frame, problem: str) -> None:
        self.damage.append(Damage(frame.offset, frame.end - frame.offset, problem))

    def find_lost_rows(self) -> Iterator[Damage]:
        """Yield the rows whose key table is lost. The table may follow its rows."""
        for extent, table, columns, rows in self._waiting:
            if self._tables.get(table) != columns:
                self.rows -= rows
                yield Damage(
                    extent.offset, extent.size, f"{quantity(rows, 'row')} whose key table is lost"
                )
