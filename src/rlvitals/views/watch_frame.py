"""Write the screen of `rlvitals watch PATH` as lines of text of a given size."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import harmless
from rlvitals.metrics.catalogue import exploration, language, optimiser, policy, value
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import label
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace
from rlvitals.views import braille, phrases

MAX_VERDICT_ROWS = 2
MAX_CURVES = 4
CURVE_METRICS = (  # after the outcome: the first three that are logged
    policy.APPROX_KL.name, policy.KL_TO_REFERENCE.name, exploration.ENTROPY.name,
    value.EXPLAINED_VARIANCE.name, optimiser.GRAD_NORM.name, value.LOSS.name,
    language.LENGTH_MEAN.name, optimiser.LOSS.name, policy.LOSS.name,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """One run as the screen shows it."""

    name: str
    state: str  # "growing", "quiet" or "over"
    diagnosis: Diagnosis | None = None  # None: not judged yet, or unreadable
    console: tuple[str, ...] = ()  # last lines of its console
    problem: str = ""  # why its files cannot be read

    @property
    def absence(self) -> str:
        """Why it has no verdict."""
        return f"unreadable: {harmless(self.problem)}" if self.problem else "not judged yet"


def frame(runs: Sequence[WatchedRun], selected: int, columns: int, rows: int, head: str) -> Text:
    """Return the screen: [rows] lines of at most `columns` cells. `head`: the first line."""
    columns, rows = max(columns, 60), max(rows, 18)  # smaller screens are cut
    lines = [Text(_cut(head, columns), "bold")]
    list_rows = min(len(runs), max(3, rows // 5))
    first = min(max(0, selected - list_rows // 2), max(0, len(runs) - list_rows))
    width = min(max((len(run.name) for run in runs), default=0), 28)
    for number, run in enumerate(runs[first : first + list_rows], first):
        line = _run_line(run, width, columns)
        if number == selected:
            line.stylize("reverse")
        lines.append(line)
    # The rule below the list counts the runs that the list has no room for.
    below = len(runs) - first - list_rows
    counts = [f"{count:,} more {side}" for count, side in ((first, "above"), (below, "below"))
              if count]  # fmt: skip
    start = f"── {', '.join(counts)} " if counts else ""
    lines.append(Text(start.ljust(columns, "─"), "dim"))
    if runs:
        run = runs[min(selected, len(runs) - 1)]
        lines += _details(run, columns, rows - len(lines) - 1)
    lines += [Text()] * (rows - 1 - len(lines))
    return Text("\n").join(
        (*lines[: rows - 1], Text(_cut("up/down: run · q: quit", columns), "dim"))
    )


def _run_line(run: WatchedRun, width: int, columns: int) -> Text:
    """Return the line of a run in the list: verdict, name, state, outcome, step."""
    diagnosis = run.diagnosis
    badge = "unreadable" if run.problem else "pending"
    colour, texts = "", [harmless(run.problem) or "not judged yet"]
    if diagnosis is not None:
        verdict = diagnosis.verdict.word
        badge, colour = verdict.value, phrases.VERDICT_COLOURS[verdict]
        trace = diagnosis.trace
        step = f"step {trace.last_step:,}"
        if trace.budget is not None:
            step += f" of {trace.budget.steps:,}"
        metric = verdict_trend(trace).metric
        series = trace.numbers(metric) if metric else None
        texts = [run.state, step, phrases.counts(diagnosis)]
        if series is not None:
            texts.insert(1, f"{label(metric)} {phrases.number(float(series.values[-1]))}")
    name = set_cell_size(_middle_cut(run.name, width), width)
    line = Text.assemble((f" {badge:<9} ", f"bold {colour}".strip()), name)
    for number, text in enumerate(texts):  # what the line has no room for is left out, not cut
        if number and line.cell_len + 2 + cell_len(text) > columns:
            break
        line.append(f"  {text}")
    line.truncate(columns, overflow="ellipsis", pad=True)
    return line


def _details(run: WatchedRun, columns: int, rows: int) -> list[Text]:
    """Return the verdict, the findings, the curves and the console of one run."""
    if run.diagnosis is None:
        text = f" {_middle_cut(run.name, columns - 24)}: {run.absence}"
        return [Text(_cut(text, columns), "dim")]
    console = [Text(_cut(f" {harmless(text)}", columns), "dim") for text in run.console[-3:]]
    verdict = run.diagnosis.verdict
    badge = verdict.word.value.upper()
    room = MAX_VERDICT_ROWS * (columns - 2) - len(badge) - 1
    sentence = Text.assemble(
        (badge, f"bold {phrases.VERDICT_COLOURS[verdict.word]}"), f" {_cut(verdict.why, room)}"
    )
    verdict_lines = sentence.wrap(Console(), columns - 2)[:MAX_VERDICT_ROWS]
    cases = [case for case in run.diagnosis.cases if case.severity > Severity.NOTE]
    finding_lines: list[Text] = []
    for case in cases[:4]:
        colour = phrases.SEVERITY_COLOURS[case.finding.severity]
        is_news = case.finding.summary != run.diagnosis.verdict.why  # else it stands above
        finding = Text.assemble(
            (f"{case.finding.severity.name.lower()}[{case.rule.name}]", colour),
            (f" since {case.finding.began:,}", "dim"),
            f" {harmless(case.finding.summary)}" if is_news else "",
        )
        row_count = 1 if finding_lines else 2
        finding.truncate(row_count * (columns - 2), overflow="ellipsis")
        wrapped = finding.wrap(Console(), columns - 2)[:row_count]
        finding_lines += [Text.assemble(" ", line) for line in wrapped]
    if (hidden := len(cases) - 4) > 0:
        finding_lines[-1] = Text(f" and {hidden + 1} more: rlvitals diagnose", "dim")
    lines = [
        *[Text.assemble(" ", line) for line in verdict_lines],
        *(finding_lines or [Text(" no warning stands", "dim")]),
    ]
    lines += _curve_lines(run.diagnosis.trace, columns, rows - len(lines) - len(console))
    return [*lines, *([Text()] * (rows - len(lines) - len(console))), *console]


def _curve_lines(trace: Trace, columns: int, rows: int) -> list[Text]:
    """Return the curves: four side by side on a wide and low screen, else two by two."""
    # The outcome and the first of `CURVE_METRICS` that are logged, with their names.
    outcome = verdict_trend(trace).metric
    names = dict.fromkeys([outcome, *CURVE_METRICS] if outcome else CURVE_METRICS)
    curves = [(name, trace[name]) for name in names if name in trace and len(trace[name])][
        :MAX_CURVES
    ]
    is_flat = columns >= 120 and rows < 14  # four curves stand side by side
    across = MAX_CURVES if is_flat else 2
    groups = [curves[start : start + across] for start in range(0, len(curves), across)]
    if not groups:
        return []
    height = rows // len(groups) - 1
    if height < 1:
        return []
    width = columns // across - 1
    lines = []
    for group in groups:
        titles = [set_cell_size(_curve_title(*curve, width - 1), width + 1) for curve in group]
        lines.append(Text(f" {''.join(titles)}".rstrip()))
        drawn = [braille.draw(series, width - 1, height) for _, series in group]
        lines += [Text(" " + "  ".join(row), "cyan") for row in zip(*drawn, strict=True)]
    return lines


def _curve_title(name: str, series: Series, width: int) -> str:
    """Return the name of a curve, its range and its last value."""
    numbers = series.finite()
    if not len(numbers):
        return _cut(f"{name}: no number", width)
    low, high = float(numbers.values.min()), float(numbers.values.max())
    missing = len(series) - len(numbers)
    text = f"{label(name)} {phrases.number(float(numbers.values[-1]))}"
    text += f"  [{low:.3g}, {high:.3g}]"  # four digits of both are cut at 80 columns
    return _cut(f"{text}  {missing} not finite" if missing else text, width)


def _middle_cut(name: str, columns: int) -> str:
    """Shorten a run's name in its middle: seeds and times, which tell runs apart, end it."""
    text = harmless(name)
    half = max(columns - 1, 0) // 2
    too_long = cell_len(text) > columns
    return f"{text[: columns - 1 - half]}…{text[len(text) - half :]}" if too_long else text


def _cut(text: str, columns: int) -> str:
    cut = Text(harmless(text))
    cut.truncate(columns, overflow="ellipsis")
    return cut.plain
