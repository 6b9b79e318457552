"""The part of a block file that a compacted file replaces, as a frame."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import frames, payloads, typed
from rlvitals.storage.blocks import BlockCursor
from rlvitals.storage.frames import Frame, Kind
from rlvitals.storage.typed import Fields, WrongTypeError


@dataclass(frozen=True, slots=True)
class Origin:
    """The part of a block file that a compacted file replaces."""

    covers: int  # bytes of the attempt's file from its beginning
    rows: int
    others: int
    tables: Mapping[int, tuple[str, ...]]
    head: bytes  # the first header of that file
    ended: bool  # whether its writer closed it

    def cursor(self) -> BlockCursor:
        """Return the cursor that follows this part in the block file."""
        tables = MappingProxyType(dict(self.tables))
        return BlockCursor(self.covers, self.rows, self.others, tables, self.head, self.ended)

    @classmethod
    def parse(cls, frame: Frame) -> Self:
        """Read it from its frame. Raises ValueError."""
        record = Fields(payloads.decode_json(frame.payload), "origin")
        tables = record.values.get("tables")
        if not isinstance(tables, dict):
            raise WrongTypeError("it has no key tables")
        return cls(
            covers=typed.count(record.values.get("covers")),
            rows=typed.count(record.values.get("rows")),
            others=typed.count(record.values.get("others")),
            tables={int(number): typed.texts(keys) for number, keys in tables.items()},
            head=bytes.fromhex(typed.text(record.values.get("head"))),
            ended=record.values.get("ended") is True,
        )

    def frame(self) -> bytes:
        """Encode it as a frame."""
        record = {
            "covers": self.covers,
            "rows": self.rows,
            "others": self.others,
            "tables": {str(number): keys for number, keys in self.tables.items()},
            "head": self.head.hex(),
            "ended": self.ended,
        }
        return frames.pack(Kind.ORIGIN, payloads.encode_json(record))
