"""Write the gallery of faults: `draw_gallery.py`, into docs/gallery.md and docs/gallery/.

Of each fault of the benchmark one recorded run is shown, beside a healthy run of the same task:
the first by task and name that was harmed and whose log can show the fault, whatever is said of
it. `make docs` draws it anew.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context

from rlvitals import api
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.faults import folder, ground_truth, run_diagnosis
from rlvitals.faults.catalogue import FAULTS
from rlvitals.faults.fault import FAILED_VERDICT, Fault
from rlvitals.faults.folder import Recorded
from rlvitals.faults.ground_truth import Label, Level
from rlvitals.metrics import find
from rlvitals.metrics.catalogue import outcome
from rlvitals.views import brief
from rlvitals.views.drawing import files
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, picture

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "faults" / "tier-1"
PAGE, PICTURES = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"
FIRST_TASK = "ppo-CartPole-v1"
DPI = 72
INTRO = """# Gallery of faults

What a run looks like that is broken in one way, and what `rlvitals diagnose --brief` says of it.
Each fault was injected into a training with Stable-Baselines3; its picture has the return and the
metric that is judged, beside a healthy run of the same task. Of each fault the first run is shown,
by task and name, that was harmed and whose log can show the fault: a report that misses it is
shown too. How often each is named: [how good is it](how-good-is-it.md). What to change:
[by symptom](what-to-change.md).
"""


def main() -> None:
    runs = folder.read(RUNS)
    levels = ground_truth.levels(runs)
    PICTURES.mkdir(exist_ok=True)
    sections, size = [INTRO], 0
    for fault in FAULTS:
        run = choose(fault, runs, levels)
        diagnosis = api.diagnose(run_diagnosis.load(RUNS, run))
        path = PICTURES / f"{fault.name}.svg"
        draw(path, fault, Subject(fault.name, diagnosis), Subject("healthy", sibling(run, runs)))
        size += path.stat().st_size
        sections.append(section(fault, run, diagnosis))
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    print(f"{len(FAULTS)} faults, {size / 1e6:.2f} MB of pictures")


def choose(fault: Fault, runs: Sequence[Recorded], levels: dict[str, Level]) -> Recorded:
    """Return the run that is shown of a fault; one that its log cannot show where there is none."""
    candidates = [run for run in runs if run.fault == fault.name and run.task in levels]
    candidates.sort(key=lambda run: (run.task != FIRST_TASK, run.task, run.name))
    harmed = [
        run for run in candidates if ground_truth.label(run, levels[run.task]) is Label.BROKEN
    ]
    shown = (
        run
        for run in harmed
        if run_diagnosis.is_visible(run, run_diagnosis.load(RUNS, run))
        and not ground_truth.looks_healthy(run, levels[run.task])
    )
    return next(shown, (harmed or candidates)[0])


def sibling(run: Recorded, runs: Sequence[Recorded]) -> Diagnosis:
    """Diagnose the first healthy run of the same task and the same number of steps."""
    healthy = (
        each
        for each in runs
        if each.task == run.task and not each.fault and not each.variant and each.steps == run.steps
    )
    return api.diagnose(run_diagnosis.load(RUNS, next(healthy)))


def draw(path: Path, fault: Fault, faulty: Subject, healthy: Subject) -> None:
    """Draw the returns of both runs, and the metric that was judged or else shows the fault."""
    names = [*(case.finding.metric for case in faulty.found.cases), *fault.visible_in]
    logged = (find(name) for name in names if name in faulty.trace.series)
    metric = next((metric for metric in logged if metric and metric is not outcome.RETURN), None)

    def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
        judged = [first_of(subjects, metric)] if metric else []
        return [first_of(subjects, outcome.RETURN), *judged]

    figure = Figure(path.stem, path.stem, needs=(outcome.RETURN,), panels=panels, columns=2)
    drawn = picture(figure, [faulty, healthy])
    assert drawn is not None
    with rc_context({"svg.fonttype": "none"}):  # letters as letters: a tenth of the bytes
        files.write(drawn, path, "light", DPI)
    lines = (line.rstrip() for line in path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def section(fault: Fault, run: Recorded, diagnosis: Diagnosis) -> str:
    """Return the part of a fault: what was done, the picture, the symptom, the report."""
    since = f"from step {run.onset:,} on" if run.onset else "from the start"
    names = [f"[{name}](rules/{name}.md)" for name in fault.expects if name != FAILED_VERDICT]
    roots = {case.rule.name for case in diagnosis.cases} | {diagnosis.verdict.word.value}
    is_named = bool(roots & set(fault.expects))
    expected = f"Rules that name the cause: {', '.join(names)}." if names else ""
    text = brief.text(brief.document(run.name, diagnosis))
    lines = [
        f"## {fault.name}",
        "",
        f"{fault.about[:1].upper()}{fault.about[1:]}, {since} ({run.task}).",
        "",
        f"![{fault.name}, beside a healthy run](gallery/{fault.name}.svg)",
        "",
        f"The symptom: {diagnosis.verdict.word.value}, {diagnosis.verdict.why}. "
        + ("The report names the cause." if is_named else "The report does not name the cause."),
        "",
        "```text",
        text,
        "```",
        "",
        *([expected, ""] if expected else []),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
