"""Format durations."""

DURATION_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def format_duration(seconds: float) -> str:
    """Format a duration in the largest unit of which it has at least two."""
    unit, size = next(
        (pair for pair in DURATION_UNITS if seconds >= 2 * pair[1]), DURATION_UNITS[-1]
    )
    return f"{seconds / size:.0f} {unit}"
