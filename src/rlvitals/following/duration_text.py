"""Format durations."""


def format_duration(seconds: float) -> str:
    """Format a duration in the largest unit of which it has at least two."""
    duration_units = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))
    unit, size = next(
        (pair for pair in duration_units if seconds >= 2 * pair[1]), duration_units[-1]
    )
    return f"{seconds / size:.0f} {unit}"
