"""The score as one reads it: plain lines for a terminal, the same as Markdown for a page."""

from collections.abc import Iterable, Sequence

from rlvitals.faults.score import Row, Score, Share

# What the diagnosis is held to on the test split.
REACH = (
    ("root cause named by the first case", "recall_1", ">=", 0.80),
    ("root cause among the first three", "recall_3", ">=", 0.92),
    ("errors per healthy run", "errors", "<=", 0.03),
    ("warnings per healthy run", "warnings", "<=", 0.08),
    ("delay, median share of the run", "delay", "<=", 0.15),
    ("verdict right", "verdicts", ">=", 0.85),
)
ALSO = (
    ("root cause named, all broken runs", "recall_1_all"),
    ("any alarm on a broken run", "any_alarm"),
    ("precision of an alarm", "precision"),
    ("verdict right, rewards tampered with too", "verdicts_all"),
)
Lines = list[tuple[str, ...]]


def counts(found: Score) -> str:
    """Say what was scored."""
    return (
        f"{found.healthy} healthy runs, {found.broken} broken ones ({found.visible} of them visible"
        f" in the log), {found.benign} benign mutations, {found.own_failures} that failed on their"
        " own"
    )


def summary(found: Score) -> Lines:
    """Return the headline: what, reached, 95 % interval, target."""
    lines: Lines = [("", "reached", "95 % interval", "target", "runs")]
    for title, key, sign, target in REACH:
        lines.append((title, *_cells(getattr(found, key)), f"{sign} {target:g}", _runs(found, key)))
    for title, key in ALSO:
        lines.append((title, *_cells(getattr(found, key)), "", _runs(found, key)))
    return lines


def _cells(value: Share | float) -> tuple[str, str]:
    if isinstance(value, Share):
        return f"{value.value:.3f}", f"{value.low:.3f} to {value.high:.3f}"
    return f"{value:.3f}", ""


def _runs(found: Score, key: str) -> str:
    value = getattr(found, key)
    return str(value.count) if isinstance(value, Share) else ""


def rows(named: Iterable[tuple[str, Row]], title: str) -> Lines:
    """Return one line for each fault or task."""
    lines: Lines = [
        (title, "broken", "visible", "first", "first 3", "alarm", "benign", "healthy", "rung",
         "verdict")
    ]  # fmt: skip
    lines += [
        (
            name,
            *(_or_dash(n) for n in (row.broken, row.visible)),
            _of(row.first, row.visible),
            _of(row.third, row.visible),
            _of(row.alarmed, row.broken),
            *(_or_dash(n) for n in (row.benign, row.healthy, row.rung)),
            f"{row.verdicts:.2f}",
        )
        for name, row in named
    ]
    return lines


def rings(found: Score) -> Lines:
    """Return one line for each rule that rang or should have."""
    lines: Lines = [("rule", "healthy", "warned", "errors", "expected", "caught", "as first")]
    lines += [
        (rule, *(_or_dash(n) for n in (r.healthy, r.warned, r.errors, r.broken, r.caught, r.first)))
        for rule, r in found.by_rule.items()
    ]
    return lines


def _of(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def _or_dash(count: int) -> str:
    return str(count) if count else "-"


def plain(lines: Sequence[tuple[str, ...]]) -> str:
    """Set lines in columns: words to the left, numbers to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(lines: Sequence[tuple[str, ...]]) -> str:
    """Set lines as a Markdown table."""
    head, *body = lines
    rule = ("---", *("--:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
