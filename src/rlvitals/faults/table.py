"""Format scores as tables: plain text for a terminal, Markdown for a page."""

from collections.abc import Iterable, Sequence

from rlvitals.faults.online_eval import Live
from rlvitals.faults.score import Row, Score, Share

Lines = list[tuple[str, ...]]


def format_counts(score: Score) -> str:
    """Format the numbers of scored runs."""
    return (
        f"{score.healthy} healthy runs, {score.broken} broken ones ({score.visible} of them visible"
        f" in the log), {score.benign} benign mutations, {score.own_failures} that failed on their"
        " own"
    )


def summary(score: Score) -> Lines:
    """Return the main table: score, value, 95 % interval, target, runs."""
    lines: Lines = [("", "reached", "95 % interval", "target", "runs")]
    # The targets of the test split.
    for title, key, sign, target in (
        ("root cause named by the first case", "recall_1", ">=", 0.80),
        ("root cause among the first three", "recall_3", ">=", 0.92),
        ("errors per healthy run", "errors", "<=", 0.03),
        ("warnings per healthy run", "warnings", "<=", 0.08),
        ("delay, median share of the run", "delay", "<=", 0.15),
        ("verdict right", "verdicts", ">=", 0.85),
    ):
        lines.append((title, *_cells(getattr(score, key)), f"{sign} {target:g}", _runs(score, key)))
    for title, key in (
        ("root cause named, all broken runs", "recall_1_all"),
        ("any alarm on a broken run", "any_alarm"),
        ("precision of an alarm", "precision"),
        ("verdict right, rewards tampered with too", "verdicts_all"),
    ):
        lines.append((title, *_cells(getattr(score, key)), "", _runs(score, key)))
    return lines


def _cells(value: Share | float) -> tuple[str, str]:
    if isinstance(value, Share):
        return f"{value.value:.3f}", f"{value.low:.3f} to {value.high:.3f}"
    return f"{value:.3f}", ""


def _runs(score: Score, key: str) -> str:
    value = getattr(score, key)
    return str(value.count) if isinstance(value, Share) else ""


def rows(rows_by_name: Iterable[tuple[str, Row]], title: str) -> Lines:
    """Return a row for each fault or task."""
    lines: Lines = [
        (title, "broken", "visible", "first", "first 3", "alarm", "benign", "healthy", "rung",
         "verdict")
    ]  # fmt: skip
    lines += [
        (
            name,
            *(_or_dash(n) for n in (row.broken, row.visible)),
            _format_ratio(row.first, row.visible),
            _format_ratio(row.third, row.visible),
            _format_ratio(row.alarmed, row.broken),
            *(_or_dash(n) for n in (row.benign, row.healthy, row.rung)),
            f"{row.verdicts:.2f}",
        )
        for name, row in rows_by_name
    ]
    return lines


def rule_rows(score: Score) -> Lines:
    """Return a row for each rule with an alarm or an expected one."""
    lines: Lines = [("rule", "healthy", "warned", "errors", "expected", "caught", "as first")]
    lines += [
        (rule, *(_or_dash(n) for n in (r.healthy, r.warned, r.errors, r.broken, r.caught, r.first)))
        for rule, r in score.by_rule.items()
    ]
    return lines


def _format_ratio(count: int, total: int) -> str:
    return f"{count / total:.2f}" if total else "-"


def live_summary(live: Live) -> Lines:
    """Return the main table of growing runs."""
    lines: Lines = [("", "reached", "95 % interval", "runs")]
    rows = (
        ("root cause named by the first case at some prefix", "named"),
        ("the same, at the end", "at_the_end"),
        ("delay from onset, median share of the run", "delay"),
        ("runs on which something was taken back", "taken_back"),
        ("times taken back, per run", "flips"),
        ("healthy runs with an alarm at some prefix", "rung"),
        ("alarms per healthy run", "alarms"),
        ("alarms per 1,000 updates of a healthy run", "per_thousand"),
    )
    for title, key in rows:
        value = getattr(live, key)
        runs = str(value.count) if isinstance(value, Share) else ""
        lines.append((title, *_cells(value), runs))
    return lines


def live_rule_rows(live: Live) -> Lines:
    """Return a row for each rule with an alarm on growing runs, those on healthy runs first."""
    lines: Lines = [("rule", "raised", "taken back", "on healthy runs", "taken back there")]
    loudest = sorted(live.by_rule.items(), key=lambda item: (-item[1].healthy, -item[1].taken_back))
    lines += [
        (rule, *(_or_dash(n) for n in (b.raised, b.taken_back, b.healthy, b.healthy_back)))
        for rule, b in loudest
    ]
    return lines


def format_live_counts(live: Live) -> str:
    """Format the numbers of growing runs."""
    return (
        f"{live.runs} runs: {live.healthy} healthy ones with {live.updates:,} logged updates, "
        f"{live.visible} broken ones whose log can show it"
    )


def _or_dash(count: int) -> str:
    return str(count) if count else "-"


def format_plain(lines: Sequence[tuple[str, ...]]) -> str:
    """Format rows as aligned columns, the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def format_markdown(lines: Sequence[tuple[str, ...]]) -> str:
    """Format rows as a Markdown table."""
    head, *body = lines
    rule = ("---", *("--:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
