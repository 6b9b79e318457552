"""Count the damaged bytes and skipped records of a file."""

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class Damage:
    """Bytes skipped as damaged, and records skipped as too long."""

    bytes: int = 0
    first: int = 0  # offset of the first of them
    oversized: int = 0  # records

    def add(self, start: int, end: int) -> None:
        """Count the bytes between two offsets."""
        self.first = self.first if self.bytes else start
        self.bytes += end - start

    def notes(self, limit: int, unsure: int) -> list[str]:
        """Describe what was skipped: damage, records over `limit` bytes, `unsure` bytes at the end.

        Empty without damage.
        """
        notes = []
        if self.bytes:
            notes.append(f"{self.bytes:,} damaged bytes skipped: the first at byte {self.first:,}")
        if self.oversized:
            plural = "" if self.oversized == 1 else "s"
            notes.append(f"{self.oversized} record{plural} over {limit // 2**20} MiB passed over")
        if unsure:
            notes.append(f"the last {unsure:,} bytes are damaged or not complete yet: left")
        return notes
