"""Score the worlds benchmark from the command line, and write its section of the page."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.faults import table
from rlvitals.faults.ground_truth import Label
from rlvitals.faults.world_runs import LabelledRun, label_runs, read
from rlvitals.faults.world_score import Column, ScoredRun, WorldScore, diagnose_runs, score

SECTION = """## Worlds

Runs of other trainers and environments than the tasks above, recorded by `scripts/record_worlds.py`
and kept in `faults/tier-2`: Stable-Baselines3 (PPO, A2C, DQN, SAC; CSV, TensorBoard, console), a
student's DQN that prints and writes a table, tabular Q-learning that prints, REINFORCE that writes
JSON lines, a PPO of one file in the shape of CleanRL's under its names (written anew), skrl's PPO,
and our own. A *world* is a trainer, an environment and settings. {counts}

- **Labels.** Whether a run is healthy, broken or a benign mutation rests on about twelve
  evaluations on the environment's own reward, which are not in the log. Broken is an outcome worse
  than the world's worst healthy one by 15 % of the way from random (or by the scatter of the
  last evaluations, where that is more), a run that crashed or was killed, or one broken by
  construction. A run that learned, and whose last training episodes earned as much as those of
  healthy runs, is harmless: eight episodes of an evaluation may be unlucky. Worlds whose healthy
  runs do not learn are left out.
- **Called learning or converged** counts broken runs that *learned less* than healthy ones as well,
  of which a log without a healthy run beside it may show nothing; *did not learn* are those that
  ended flat, lost, below their start, crashed or cut. Without its settings a log that was cut
  may be called what it was until then.
- **Decidable** is a cause that the columns of the trainer can show; *with settings* also one that
  the settings state. Where nothing else can show it, it is not counted.
- **Columns.** *log alone* is the log and nothing else; *with env_id* adds the environment's name;
  *with settings* adds the settings that a tracker records; *2-10 columns* keeps the return and a
  random choice of the log's other columns.
- **Baselines.** *last third against first* says learning, stalled or collapsed by 0.5 standard
  deviations; *always learning* says that.
- **Dev, test and unseen.** The first byte of the SHA-256 of the world's name, even: *dev*, odd:
  *test*. Rules were first written by *dev* alone; then the runs of *test* were looked at as well.
  *Unseen* are worlds recorded later: no run of them was looked at, and no rule was written by
  them. Of the last set every other world was opened and is *dev* or *test*.
- A verdict of `unknown` and a log that is not read are not answered, and never right. Intervals
  draw whole worlds.
"""


def show(
    root: Path, jobs: int | str, split_name: str, by: Sequence[str], report: Callable[[str], None]
) -> None:
    """Score the worlds of a split and report the tables named in `by`."""
    scored = diagnose_split(root, jobs, split_name)
    report(f"{split_name} split: {_count([run.labelled for run in scored[Column.LOG]])}\n")
    report(table.format_plain(_summary({column: score(scored[column]) for column in Column})))
    for name in by:
        if name == "rule":
            report("\n" + table.format_plain(_rule_rows(scored[Column.LOG])))
        else:
            report("\n" + table.format_plain(_rows(scored[Column.LOG], name)))


def as_json(root: Path, jobs: int | str, split_name: str) -> str:
    """Return the scores of each column as JSON."""
    scored = diagnose_split(root, jobs, split_name)
    return json.dumps({column: asdict(score(scored[column])) for column in Column}, indent=1)


def write(root: Path, jobs: int | str, page: Path, report: Callable[[str], None]) -> None:
    """Score all worlds, and rewrite the section of the page and the file it is made of."""
    scored = diagnose_split(root, jobs, "all")
    readers = root / "readers.md"
    sections = [SECTION.format(counts=_count([run.labelled for run in scored[Column.LOG]]))]
    for split_name, title in (
        ("all", "All worlds"),
        ("dev", "Dev"),
        ("test", "Test"),
        ("unseen", "Unseen"),
    ):
        runs = {
            column: [r for r in scored[column] if split_name in {"all", r.labelled.run.split}]
            for column in Column
        }
        rows = _summary({column: score(runs[column]) for column in Column})
        count = _count([run.labelled for run in runs[Column.LOG]])
        sections.append(f"### {title}\n\n{count}\n\n{table.format_markdown(rows)}\n")
    for name in ("trainer", "world", "fault"):
        rows = _rows(scored[Column.LOG], name)
        sections.append(f"### By {name}, log alone\n\n{table.format_markdown(rows)}\n")
    text = "\n".join(sections) + (f"\n{readers.read_text()}" if readers.exists() else "")
    (root / "section.md").write_text(text)
    page.write_text(replace_section(page.read_text(), text))
    report(f"{page}: {_count([run.labelled for run in scored[Column.LOG]])}")


def read_section(root: Path) -> str:
    """Return the section as it was written last; empty without one."""
    path = root / "section.md"
    return path.read_text() if path.exists() else ""


def replace_section(page: str, section: str, next_title: str = "") -> str:
    """Replace the section of the same title in a page, or add it before another one.

    Without a section of `next_title` it is added at the end. An empty section changes nothing.
    Raises ValueError for one without a title.
    """
    if not section:
        return page
    title, _, _ = section.partition("\n")
    if not title.startswith("## "):
        raise ValueError(f"a section begins with its title, not with {title!r}")
    pattern = re.compile(rf"^{re.escape(title)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if pattern.search(page):
        text = pattern.sub(lambda _: f"{section.rstrip()}\n\n", page)
        return f"{text.rstrip()}\n"
    if next_title and f"\n{next_title}\n" in page:
        return page.replace(f"\n{next_title}\n", f"\n{section.rstrip()}\n\n{next_title}\n", 1)
    return f"{page.rstrip()}\n\n{section}"


def diagnose_split(root: Path, jobs: int | str, split_name: str) -> dict[Column, list[ScoredRun]]:
    """Diagnose the labelled runs of a split, or of `all`. Raises UsageError without any."""
    if not (root / "runs.jsonl").exists():
        raise rlvitals.UsageError(
            "no worlds are here", where=str(root), hint="scripts/record_worlds.py, or --folder"
        )
    labelled = [run for run in label_runs(read(root)) if split_name in {"all", run.run.split}]
    return diagnose_runs(root, labelled, jobs)


def _count(runs: Sequence[LabelledRun]) -> str:
    counts = Counter(run.label for run in runs)
    faults = {run.run.fault for run in runs if run.run.fault}
    return (
        f"{len(runs)} runs of {len({run.run.world for run in runs})} worlds, "
        f"{len({run.run.trainer for run in runs})} trainers and "
        f"{len({run.run.settings['env_id'] for run in runs})} environments: "
        f"{counts[Label.HEALTHY]} healthy, {counts[Label.BROKEN]} broken, with "
        f"{len(faults)} faults tried, {counts[Label.BENIGN]} benign mutations, "
        f"{counts[Label.OWN_FAILURE]} that failed on their own."
    )


def _summary(scores: Mapping[Column, WorldScore]) -> table.Lines:
    lines: table.Lines = [("", *scores, "runs")]
    rows = (
        ("any alarm on a broken run", "alarm"),
        ("cause named first, of decidable", "first"),
        ("cause among the first three, of decidable", "third"),
        ("cause first, faults written from the rules' names alone", "first_blind"),
        ("verdict right", "right"),
        ("verdict right, of answered", "right_answered"),
        ("share answered", "answered"),
        ("verdict right, bad runs", "right_bad"),
        ("broken runs called learning or converged", "good_of_broken"),
        ("the same, of those that did not learn", "good_of_poor"),
        ("alarms per healthy run", "warnings"),
        ("healthy runs with an alarm", "warned"),
        ("healthy runs called bad", "bad_of_healthy"),
        ("logs read", "read"),
    )
    for title, key in rows:
        shares = [getattr(column_score, key) for column_score in scores.values()]
        cells = [f"{s.value:.2f} [{s.low:.2f}, {s.high:.2f}]" if s.count else "-" for s in shares]
        lines.append((title, *cells, str(shares[0].count)))
    return lines


def _rows(runs: Sequence[ScoredRun], by: str) -> table.Lines:
    """Return a row for each world, trainer or fault."""
    lines: table.Lines = [
        (by, "runs", "read", "verdict", "broken", "alarm", "decidable", "first", "first 3",
         "healthy", "rung")
    ]  # fmt: skip
    for name in sorted({_key(run, by) for run in runs}):
        group = [run for run in runs if _key(run, by) == name]
        result = score(group)
        healthy = result.warned.count
        lines.append(
            (
                name,
                str(len(group)),
                *(_cell(s.value, s.count) for s in (result.read, result.right)),
                str(result.alarm.count),
                _cell(result.alarm.value, result.alarm.count),
                str(result.first.count),
                *(_cell(s.value, s.count) for s in (result.first, result.third)),
                str(healthy),
                str(round(result.warned.value * healthy)) if healthy else "-",
            )
        )
    return lines


def _key(run: ScoredRun, by: str) -> str:
    group = run.labelled.run
    return {"fault": group.fault or "(none)", "world": group.world, "trainer": group.trainer}[by]


def _cell(value: float, count: int) -> str:
    return f"{value:.2f}" if count else "-"


def _rule_rows(runs: Sequence[ScoredRun]) -> table.Lines:
    """Return a row for each rule with an alarm: on how many runs of each label."""
    labels = (Label.HEALTHY, Label.BROKEN, Label.BENIGN, Label.OWN_FAILURE)
    counts: dict[str, Counter[Any]] = {}
    for run in runs:
        for rule in set(run.answer.alarms):
            counts.setdefault(rule, Counter())[run.labelled.label] += 1
    lines: table.Lines = [("rule", *(str(label) for label in labels))]
    lines += [(rule, *(str(counts[rule][label]) for label in labels)) for rule in sorted(counts)]
    return lines
