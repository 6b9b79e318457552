"""Render the rules by kind, and the coverage of a run."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis.coverage import unlocks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import harmless, quantity
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Rule
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.types import Profile
from rlvitals.views import lists, phrases


def by_kind(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Group rules by their kind, the folder of their module."""
    kinds: dict[str, list[Rule]] = {}
    for rule in rules:
        kinds.setdefault(kind(rule), []).append(rule)
    return kinds


def kind(rule: Rule) -> str:
    """Return the kind of a rule: outcome, policy, language, ...; empty for a user's own rule."""
    package, _, path = rule.check.__module__.partition(".rules.")
    return path.partition(".")[0] if package == "rlvitals" else ""


def rules(profile: Profile | None = None) -> RenderableType:
    """Render the rules by kind, with summary, needed metrics and profiles.

    With a profile, only the rules that apply to it.
    """
    applicable = [rule for rule in CATALOGUE if profile is None or rule.applies(profile)]
    width = max(len(rule.name) for rule in applicable)
    blocks: list[RenderableType] = []
    for name, group in by_kind(applicable).items():
        rows = [[Text(rule.name.ljust(width), "bold"), _describe(rule)] for rule in group]
        blocks += [lists.Columns((name, "sees"), rows, 1), Text()]
    return Group(*blocks, Text(quantity(len(applicable), "rule"), "dim"))


def _describe(rule: Rule) -> Text:
    text = Text(lists.rule(rule)[1])
    for fact in (f"needs {needs(rule)}" if needs(rule) else "", profiles_text(rule)):
        if fact:
            text.append(f"\n{fact}", "dim")
    return text


def needs(rule: Rule) -> str:
    """Return the metrics that a rule needs as text."""
    if rule.needs_any == OUTCOME_METRICS:
        return "the run's outcome"
    one_of = " or ".join(metric.name for metric in rule.needs_any)
    return " and ".join([*(metric.name for metric in rule.needs), *([one_of] if one_of else [])])


def profiles_text(rule: Rule) -> str:
    """Return the profiles a rule applies to as text; empty for all."""
    excluded = [profile for profile in Profile if not rule.applies(profile)]
    if not excluded:
        return ""
    if len(excluded) <= 3:  # of more, those that it applies to are named
        return f"for every kind of training but {', '.join(excluded)}"
    return f"for {', '.join(p for p in rule.profiles if p is not Profile.UNKNOWN)}"


def inapplicable_rules(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the sorted names of rules that do not apply to the run's profile or its one rank."""
    trace = diagnosis.trace
    return tuple(sorted(rule.name for rule in CATALOGUE if not rule.suits(trace)))


def judging_rules(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the sorted names of rules that could judge the run."""
    hits = [*(rule for rule, _ in diagnosis.findings), *(mute.rule for mute in diagnosis.muted)]
    return tuple(sorted(rule.name for rule in (*hits, *diagnosis.clear)))


def coverage(diagnosis: Diagnosis) -> RenderableType:
    """Render the rules that could judge a run, the metrics to log for more, and the rest."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=len("cannot judge"))
    table.add_column(overflow="fold")
    asked_count = diagnosis.coverage.asked
    able = judging_rules(diagnosis)
    table.add_row(
        Text("could judge", "green"),
        Text(f"{len(able)} of {asked_count}: {', '.join(able) or 'none'}"),
    )
    more, blocked = unlocks(diagnosis.trace, diagnosis.undecided)
    missing_metrics: list[Text] = []
    for unlock in more:
        names = " and ".join(phrases.to_know(diagnosis.trace, name) for name in unlock.names)
        missing_metrics.append(
            Text.assemble((harmless(names), "bold"), f": {', '.join(unlock.rules)}")
        )
    blocked_reasons: list[Text] = []
    rule_names = {rule.name for rule, _ in blocked}
    for reason, rules_ in phrases.undecided_rules(diagnosis).items():
        if stuck := [name for name in rules_ if name in rule_names]:
            blocked_reasons.append(
                Text.assemble(harmless(reason), (f": {', '.join(stuck)}", "dim"))
            )
    for label, cells in (
        ("log", missing_metrics),
        ("cannot judge", blocked_reasons),
    ):
        for i, cell in enumerate(cells):
            table.add_row(Text("" if i else label, "yellow"), cell)
    if excluded := inapplicable_rules(diagnosis):
        text = f"{len(excluded)} are for other kinds of training: {', '.join(excluded)}"
        table.add_row(Text("do not apply", "dim"), Text(text, "dim"))
    return Group(Text(harmless(phrases.headline(diagnosis)), "bold"), table)
