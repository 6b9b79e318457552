"""Write the page of the benchmark's results, `docs/how-good-is-it.md`."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals.faults import table
from rlvitals.faults.catalogue import FAULTS
from rlvitals.faults.fault import Onset
from rlvitals.faults.ground_truth import (
    HARM_PERCENTILE,
    MIN_HARM_SHARE,
    MIN_HEALTHY_SEEDS,
    MIN_LEARNED_SHARE,
    MIN_LOST_SHARE,
)
from rlvitals.faults.online_eval import Live
from rlvitals.faults.score import Score
from rlvitals.faults.tasks import FAULT_TASKS

INTRODUCTION = """# How good is the diagnosis?

The first table is the answer: runs of people, frameworks and tasks that chose no number. *Injected
faults* and what follows are our own runs, by which most rules were written: they show that the
rules do what they say and are no forecast for yours.

## Injected faults

Written by `rlvitals faults score --write`; `rlvitals faults score --check` compares with it.

Mistakes are made on purpose in real training runs of Stable-Baselines3, the logs are kept, and the
diagnosis is asked what is wrong. {runs} runs lie in `faults/tier-1`, each with its log as
Stable-Baselines3 wrote it (numbers to six digits); `rlvitals faults run` records them anew.

- **Three splits.** Numbers are chosen by the CartPole runs of seeds 0 and 1 (*tuning*). *Seen* are
  the runs of seeds 0 to 2 of five tasks, which were the test until they were looked at: on that
  first look the root cause was named in 0.656 of 375 visible cases, with 0.014 warnings per healthy
  run. Why it was missed in the rest led to changes, of rules and of the benchmark: runs that were
  over before the library's mean over 100 episodes had seen a fault were made longer. *Test* are
  runs that were recorded last and scored, none of them looked at by itself: seeds from 100 of the
  tasks that were made longer, seed 3 and healthy seeds 20 to 23 of the others.
- **Healthy** runs have no fault and learned their task: at least {healthy} seeds of each task, and
  other settings that work (annealed, slow, high KL, resumed at the top, normalised, late take-off).
  One without a fault that never came {learned:.0%} of the way, or lost {lost:.0%} of its gain,
  *failed on its own* and is counted apart.
- **Broken** runs earned less than the {percentile:g}th percentile of their task's healthy seeds,
  and {margin:.0%} of the way less than their median, by the environment's own reward over the last
  tenth of the run; or their mechanism is broken by construction (weights not a number, a policy
  that is not trained, epsilon that stays at 1, an environment that slows down). The other runs with
  a fault are *benign mutations*.
- **Visible** is a fault whose cause the log can show: a metric that it disturbs is logged, and
  where only a change shows it, it set in at half of the run; or the log states the setting that is
  wrong from the start. A critic that is not trained is
  visible only where the run did not learn: healthy PPO explains nothing either while it learns.
- **The verdict** is right where it fits what the true returns became (learned, lost, not learned,
  failed); runs whose logged reward is not the environment's own are counted apart.
- **Named** means: the first case of the diagnosis (or one of the first three), at warning or above,
  is one of the rules that the fault expects. A finding folded under another one does not count.
- Intervals draw whole tasks, as runs of one task are alike.
- The clock of these logs is the processor's, 60 times as fast.
"""
OUTCOME_SECTION = """### Without the outcome

The same runs, with every column of returns, rewards and episode lengths left out: the labels rest
on the outcome, so rules that read it could be flattered.
"""
SETTINGS_SECTION = """### Without the settings that a fault sets

A run that is wrong from its start by a setting (a discount of 0, a learning rate 300 times too
large) states it, as a tracker's log does, and the diagnosis reads it. Here the same runs do not:
the setting that is wrong is left out of the log, and only its effects are there to see.
"""
LIVE_SECTION = """### While a run goes on

Every fourth run of the seen split, judged as it stood at each 5 % of it: the log had grown just
now, and how long the run was to be was not known. What needs that (a flat start may be a slow one)
is not said before the end, and what the outcome alone shows is a warning only once it stood on the
run as it was 5 % earlier. An alarm is a rule that went from less to a warning or an error; it was
taken back if it was less at a later 5 %. A naming before the fault's onset does not count.

{counts}.
"""
BLIND_SECTION = """### What it cannot see

A log holds what the trainer measured of itself. These faults leave no trace in it that tells their
cause; where they do harm the diagnosis says that nothing is learned, not why:

{hidden}

Nor can it see a reward that is exactly what was asked for and not what was meant, a test set that
leaked, or a task that cannot be solved.
"""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores on the page."""

    test: Score
    seen: Score
    held_out: Score  # both of them
    blind: Score  # the test without outcome columns
    untold: Score  # the test without the settings that a fault sets
    everything: Score
    live: Live
    runs: int


def page(scores: Scores) -> str:
    """Return the page as Markdown."""
    head = INTRODUCTION.format(
        runs=f"{scores.runs:,}",
        healthy=MIN_HEALTHY_SEEDS,
        learned=MIN_LEARNED_SHARE,
        lost=MIN_LOST_SHARE,
        percentile=HARM_PERCENTILE,
        margin=MIN_HARM_SHARE,
    )
    test, seen, live = scores.test, scores.seen, scores.live
    by_task, by_fault = scores.held_out.by_task.items(), scores.held_out.by_fault.items()
    markdown = table.format_markdown
    lines = []
    for fault in FAULTS:
        if not fault.visible_in and not fault.changed_settings:
            lines.append(f"- `{fault.name}`: {fault.about}")
        elif fault.hidden_from_start and Onset.START in fault.onsets:
            lines.append(f"- `{fault.name}` from the start: {fault.about}")
    fault_rows: table.Lines = [("fault", "what is wrong", "expects", "visible in")]
    fault_rows += [
        (f.name, f.about, _format_names(f.expects), _format_names(f.visible_in)) for f in FAULTS
    ]
    sections = [
        head,
        f"### Test split\n\n{table.format_counts(test)}.\n\n{markdown(table.summary(test))}\n",
        f"### Seen split\n\n{table.format_counts(seen)}.\n\n{markdown(table.summary(seen))}\n",
        f"{OUTCOME_SECTION}\n{markdown(_headline(scores.blind))}\n",
        f"{SETTINGS_SECTION}\n{markdown(_headline(scores.untold))}\n",
        f"{LIVE_SECTION.format(counts=table.format_live_counts(live))}\n{markdown(table.live_summary(live))}\n",
        f"{markdown(table.live_rule_rows(live))}\n",
        f"### By task\n\nTest and seen.\n\n{markdown(table.rows(by_task, 'task'))}\n",
        f"### By fault\n\nTest and seen.\n\n{markdown(table.rows(by_fault, 'fault'))}\n",
        f"### By rule\n\nAll runs.\n\n{markdown(table.rule_rows(scores.everything))}\n",
        BLIND_SECTION.format(hidden="\n".join(lines)),
        f"### The faults\n\n{markdown(fault_rows)}\n",
        f"### The tasks\n\n{markdown(_task_rows())}\n",
    ]
    return "\n".join(sections)


def _headline(score: Score) -> table.Lines:
    return table.summary(score)[:3] + table.summary(score)[-4:-2]


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"


def _task_rows() -> table.Lines:
    lines: table.Lines = [("task", "steps", "environments", "other settings that work")]
    lines += [
        (task.name, f"{task.steps:,}", str(task.n_envs), ", ".join(task.variants))
        for task in FAULT_TASKS
    ]
    return lines
