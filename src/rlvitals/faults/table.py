"""The score as one reads it: plain lines for a terminal, the same as Markdown for a page."""

from collections.abc import Iterable, Sequence

from rlvitals.faults.online_eval import Live
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
WATCHED = (
    ("root cause named by the first case at some prefix", "named"),
    ("the same, at the end", "at_the_end"),
    ("delay from onset, median share of the run", "delay"),
    ("runs on which something was taken back", "taken_back"),
    ("times taken back, per run", "flips"),
    ("healthy runs with an alarm at some prefix", "rung"),
    ("alarms per healthy run", "alarms"),
    ("alarms per 1,000 updates of a healthy run", "per_thousand"),
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


def watched(found: Live) -> Lines:
    """Return the headline of runs judged as they grew."""
    lines: Lines = [("", "reached", "95 % interval", "runs")]
    for title, key in WATCHED:
        value = getattr(found, key)
        runs = str(value.count) if isinstance(value, Share) else ""
        lines.append((title, *_cells(value), runs))
    return lines


def bells(found: Live) -> Lines:
    """Return one line for each rule that was raised, those on healthy runs first."""
    lines: Lines = [("rule", "raised", "taken back", "on healthy runs", "taken back there")]
    loudest = sorted(found.by_rule.items(), key=lambda one: (-one[1].healthy, -one[1].taken_back))
    lines += [
        (rule, *(_or_dash(n) for n in (b.raised, b.taken_back, b.healthy, b.healthy_back)))
        for rule, b in loudest
    ]
    return lines


def watched_counts(found: Live) -> str:
    """Say what was judged as it grew."""
    return (
        f"{found.runs} runs: {found.healthy} healthy ones with {found.updates:,} logged updates, "
        f"{found.visible} broken ones whose log can show it"
    )


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
