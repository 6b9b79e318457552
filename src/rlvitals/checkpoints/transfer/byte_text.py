"""What is said of bytes."""


def size(count: int) -> str:
    """Write a number of bytes in the largest unit that it fills."""
    for unit, unit_bytes in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= unit_bytes:
            return f"{count / unit_bytes:,.1f} {unit}"
    return f"{count} bytes"


def format_no_room(needed: int, free: int) -> str:
    """Say that a disk has no room."""
    return f"no room: {size(needed)} are needed, {size(free)} are free"
