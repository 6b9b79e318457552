"""Format numbers of bytes."""


def format_bytes(count: int) -> str:
    """Format a number of bytes in the largest unit with at least one."""
    for unit, unit_bytes in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= unit_bytes:
            return f"{count / unit_bytes:,.1f} {unit}"
    return f"{count} bytes"


def format_no_room(needed: int, free: int) -> str:
    """Return a sentence for a disk without enough space."""
    return f"no room: {format_bytes(needed)} are needed, {format_bytes(free)} are free"
