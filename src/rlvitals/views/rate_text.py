"""Write the rates of a lab's own runs as text."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rlvitals.diagnosis.marks import Mark
from rlvitals.diagnosis.own_thresholds import Fit
from rlvitals.errors import quantity
from rlvitals.rules.rate import MIN_HEALTHY_RUNS, Rate


def sentence(rate: Rate) -> str:
    """Return how often a rule fires on a lab's own healthy runs."""
    runs = "run" if rate.healthy == 1 else "runs"
    few = f"; fewer than {MIN_HEALTHY_RUNS} say little" if rate.healthy < MIN_HEALTHY_RUNS else ""
    return f"fires on {rate.rang} of {rate.healthy} of your healthy {runs} ({rate.family}){few}"


def origin(rate: Rate) -> str:
    """Return on how many frameworks and tasks a rate was counted; empty where not known."""
    if not rate.frameworks:
        return ""
    frameworks = "framework" if rate.frameworks == 1 else "frameworks"
    tasks = "task" if rate.tasks == 1 else "tasks"
    return f"{rate.frameworks} {frameworks}, {rate.tasks} {tasks}"


def table(marks: Sequence[Mark], rates: Mapping[str, Sequence[Rate]]) -> list[str]:
    """Return the number of marked runs, and a line for each rule that rang or should have."""
    if not marks:
        return ["No run here is marked: rlvitals mark RUN --healthy"]
    counts = Counter(mark.label for mark in marks)
    labels = f"{quantity(counts['healthy'], 'run')} marked healthy, {counts['broken']} broken"
    lines = [f"{labels}, {counts['wrong']} wrongly judged."]
    rang = [(name, rate) for name in sorted(rates) for rate in rates[name]]
    lines += [f"{name} {sentence(rate)}" for name, rate in rang if rate.rang]
    lines += [
        f"{name} names {rate.caught} of {rate.faulted} runs marked as its fault, "
        f"{rate.first} of them first"
        for name, rate in rang
        if rate.faulted
    ]
    silent = sum(1 for _, rate in rang if rate.healthy and not rate.rang)
    if counts["healthy"] or counts["wrong"]:
        lines.append(
            f"{quantity(silent, 'rule')} without an alarm on the healthy runs that could be judged."
        )
    return lines


def thresholds(fits: Sequence[Fit]) -> list[str]:
    """Return the fitted thresholds as a section of rlvitals.toml; nothing without a fit."""
    lines = []
    for fit in fits:
        if fit.threshold is None:
            lines.append(f"# {fit.rule}: no threshold of it silences all {fit.rang} healthy runs")
            continue
        lines.append(
            f"# fires on 0 of {fit.healthy} healthy runs instead of {fit.rang}; on {fit.held_out} "
            f"of these {fit.rang} at the value fitted without the run"
        )
        if fit.faulted:
            lines.append(f"# fires on {fit.caught} of {fit.faulted} runs marked {fit.rule}")
        default = f"default {fit.threshold.default:g}: {fit.threshold.doc}"
        lines.append(f"{fit.threshold.name} = {fit.value:.6g}  # {default}")
    head = "Thresholds that silence these rules on your healthy runs, for rlvitals.toml:"
    return ["", head, "", "[thresholds]", *lines, ""] if lines else []
