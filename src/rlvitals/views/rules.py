"""The rules by kind, and which of them a run lets judge."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis.coverage import Unlock, unlocks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import harmless
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Rule
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.types import Profile
from rlvitals.views import lists, phrases

LABEL = 12  # columns: "cannot judge"
FEW = 3  # kinds of training that are named as those to which a rule does not apply


def by_kind(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Group rules by what they judge: the folder that each lies in."""
    kinds: dict[str, list[Rule]] = {}
    for rule in rules:
        kinds.setdefault(kind(rule), []).append(rule)
    return kinds


def kind(rule: Rule) -> str:
    """Return what a rule judges: outcome, policy, language, ..."""
    return rule.check.__module__.split(".")[2]


def rules(profile: Profile | None = None) -> RenderableType:
    """Every rule under its kind: what it sees, what it needs, where it applies.

    With a profile, the rules that apply to it alone.
    """
    shown = [rule for rule in CATALOGUE if profile is None or rule.applies(profile)]
    width = max(len(rule.name) for rule in shown)
    parts: list[RenderableType] = []
    for name, found in by_kind(shown).items():
        rows = [[Text(rule.name.ljust(width), "bold"), _about(rule)] for rule in found]
        parts += [lists.Columns((name, "sees"), rows, 1), Text()]
    return Group(*parts, Text(f"{len(shown)} rules", "dim"))


def _about(rule: Rule) -> Text:
    text = Text(lists.rule(rule)[1])
    for fact in (f"needs {needs(rule)}" if needs(rule) else "", where(rule)):
        if fact:
            text.append(f"\n{fact}", "dim")
    return text


def needs(rule: Rule) -> str:
    """Say what must be logged before a rule can judge."""
    if rule.needs_any == OUTCOME_METRICS:
        return "the run's outcome"
    one_of = " or ".join(metric.name for metric in rule.needs_any)
    return " and ".join([*(metric.name for metric in rule.needs), *([one_of] if one_of else [])])


def where(rule: Rule) -> str:
    """Say to what kinds of training a rule applies; empty where to all."""
    other = [profile for profile in Profile if not rule.applies(profile)]
    if not other:
        return ""
    if len(other) <= FEW:
        return f"for every kind of training but {', '.join(other)}"
    return f"for {', '.join(p for p in rule.profiles if p is not Profile.UNKNOWN)}"


def apart(found: Diagnosis) -> tuple[str, ...]:
    """Name the rules that do not apply to this kind of training, sorted."""
    profile = found.trace.profile
    return tuple(sorted(rule.name for rule in CATALOGUE if not rule.applies(profile)))


def judged(found: Diagnosis) -> tuple[str, ...]:
    """Name the rules that could judge a run, sorted."""
    hits = [*(rule for rule, _ in found.findings), *(one.rule for one in found.muted)]
    return tuple(sorted(rule.name for rule in (*hits, *found.clear)))


def coverage(found: Diagnosis) -> RenderableType:
    """Tell which rules could judge a run, what to log for more, and which do not apply."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=LABEL)
    table.add_column(overflow="fold")
    asked = found.coverage.asked
    able = judged(found)
    table.add_row(
        Text("could judge", "green"), Text(f"{len(able)} of {asked}: {', '.join(able) or 'none'}")
    )
    more, rest = unlocks(found.trace, found.undecided)
    for label, cells in (("log", _wanted(found, more)), ("cannot judge", _stuck(found, rest))):
        for i, cell in enumerate(cells):
            table.add_row(Text("" if i else label, "yellow"), cell)
    if other := apart(found):
        said = f"{len(other)} are for other kinds of training: {', '.join(other)}"
        table.add_row(Text("do not apply", "dim"), Text(said, "dim"))
    return Group(Text(harmless(phrases.headline(found)), "bold"), table)


def _wanted(found: Diagnosis, more: Sequence[Unlock]) -> Iterator[Text]:
    for one in more:
        names = " and ".join(phrases.to_know(found.trace, name) for name in one.names)
        yield Text.assemble((harmless(names), "bold"), f": {', '.join(one.rules)}")


def _stuck(found: Diagnosis, rest: Sequence[tuple[Rule, object]]) -> Iterator[Text]:
    names = {rule.name for rule, _ in rest}
    for why, rules_ in phrases.undecided(found).items():
        if left := [name for name in rules_ if name in names]:
            yield Text.assemble(harmless(why), (f": {', '.join(left)}", "dim"))
