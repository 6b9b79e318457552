"""Write the generated pages of the manual: `write_docs.py [--check]`.

Metrics, frameworks, rules, readers, settings, commands, glossary and environments each have one
source, and that is the code; what is written here is checked in, so that it can be read and
reviewed without building anything. `--check` writes nothing and exits 1 naming stale pages.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from docs_markdown import SETTINGS, anchor, doc, family, link, table, title
from docs_pages import single_pages

from rlvitals import metrics
from rlvitals.diagnosis.remedies import neutral
from rlvitals.metrics.frameworks import TABLES
from rlvitals.metrics.metric import Metric
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Rule
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.trainers import schema
from rlvitals.trainers.ppo.config import Config
from rlvitals.views import explain, lists
from rlvitals.views import rules as rulebook

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = "<!-- Written by scripts/write_docs.py from the code: change it there. -->\n"
FAMILIES: tuple[ModuleType, ...] = (
    metrics.outcome,
    metrics.reward,
    metrics.policy,
    metrics.exploration,
    metrics.value,
    metrics.optimiser,
    metrics.observation,
    metrics.language,
    metrics.rollout_metrics,
    metrics.preference,
    metrics.scheduler,
    metrics.throughput,
    metrics.progress,
    metrics.hyperparameters,
)


def main(argv: Sequence[str]) -> int:
    written = pages()
    stale = [path for path, text in written.items() if _content(ROOT / path) != text]
    stale += [path for path in _generated() if path not in written]
    if "--check" in argv:
        for path in stale:
            print(f"{path} is stale: run make docs")
        return 1 if stale else 0
    for path in stale:
        if path not in written:
            (ROOT / path).unlink()
            continue
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(written[path], encoding="utf-8")
        print(path)
    return 0


def pages() -> dict[str, str]:
    """Every generated file by its path from the root; mkdocs.yml for its list of rules."""
    pages_by_path = dict((*_metrics(), *_frameworks(), *_rules(), *single_pages()))
    linked = {
        f"docs/{path}": WRITTEN + "\n" + link(text, path) for path, text in pages_by_path.items()
    }
    return linked | {
        "mkdocs.yml": navigation((ROOT / "mkdocs.yml").read_text(encoding="utf-8")),
        "src/rlvitals/trainers/ppo/configs/ppo_warmstart.json": schema.text(Config()),
    }


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _generated() -> Iterator[str]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if path.read_text(encoding="utf-8").startswith(WRITTEN):
            yield path.relative_to(ROOT).as_posix()


# Metrics and frameworks.


def _metrics() -> Iterator[tuple[str, str]]:
    rows = []
    for module in FAMILIES:
        members = [m for m in metrics.CATALOGUE if family(m) == title(module)]
        yield f"metrics/{title(module)}.md", _family_page(module, members)
        rows.append(
            (f"[{title(module)}]({title(module)}.md)", doc(module.__doc__), str(len(members)))
        )
    intro = """# Metrics

A metric has one canonical name, whoever logged it. Each page says what the number means, its unit,
where it is healthy and who said so, and what each framework calls it and how it computes it: the
same name often stands for different numbers. `rlvitals explain NAME` prints an entry, by its
canonical name or by any framework's. Framework by framework: [frameworks](../frameworks/index.md).

A healthy range is a guide to the eye. Findings come from [rules](../rules/index.md), which ask
for more than a number out of its range.
"""
    yield "metrics/index.md", f"{intro}\n{table(('family', 'what it is about', 'metrics'), rows)}"


def _family_page(module: ModuleType, members: Sequence[Metric]) -> str:
    name = title(module)
    head = "Settings" if name == SETTINGS else name.capitalize()
    rows = [(f"[`{_shown(m)}`](#{anchor(m)})", m.title, m.unit, m.kind) for m in members]
    sections = [f"# {head}", doc(module.__doc__), table(("name", "title", "unit", "kind"), rows)]
    return "\n\n".join([*sections, *(_metric(m) for m in members)])


def _shown(metric: Metric) -> str:
    return f"{metric.name}/..." if metric.family else metric.name


def _metric(metric: Metric) -> str:
    """The entry that `rlvitals explain` prints, one level down and under an anchor."""
    _, _, body = explain.metric_page(metric).partition("\n")
    body, _, _ = body.partition("\n## Logged as\n")
    rows = [
        (framework.title, *_alias(alias))
        for framework in TABLES
        for alias in explain._aliases(framework, metric)
    ]
    name_section = (
        ["", table(("framework", "logged as", "how it is measured"), rows)] if rows else []
    )
    return "\n".join([f"## {_shown(metric)} {{ #{anchor(metric)} }}", body.rstrip(), *name_section])


def _alias(text: str) -> tuple[str, str]:
    """Tell the keys from how they are measured; keys are marked as not ours."""
    end = text.rindex("`") + 1 if ": " not in text else text.index("`: ") + 1
    return text[:end].replace("`", "``"), text[end:].removeprefix(": ")


def _frameworks() -> Iterator[tuple[str, str]]:
    rows = []
    for framework in TABLES:
        name = framework.framework
        key_rows = [
            *lists.keys(framework),
            *lists.families(framework),
            *((key, name, "setting") for key, name in framework.settings.items()),
        ]
        keys = [(f"`{key}`", f"`{metric}`", how) for key, metric, how in key_rows]
        source = f"\n\nAs computed in {framework.read_from}." if framework.read_from else ""
        listed = table(("key", "metric", "how it is measured"), keys)
        yield f"frameworks/{name}.md", f"# {framework.title}{source}\n\n{listed}"
        rows.append(
            (
                f"[{framework.title}]({name}.md)",
                str(len(framework.keys)),
                str(len(framework.settings)),
            )
        )
    intro = """# Frameworks

What the keys of a log mean, one table for each framework. A log of a reader that is a framework's
own speaks its table; of any other log (TensorBoard, CSV, JSON lines) the table that knows most of
its keys is taken. `rlvitals metrics PATH` shows what was made of a run's keys, and which are not
mapped; `--map my/score=outcome/return` maps one.
"""
    heads = ("framework", "keys", "settings")
    yield "frameworks/index.md", f"{intro}\n{table(heads, rows)}"


# Rules.


def _rules() -> Iterator[tuple[str, str]]:
    for rule in CATALOGUE:
        yield f"rules/{rule.name}.md", _rule(rule)
    lines = [
        "# Rules",
        "",
        f"{len(CATALOGUE)} rules. Each answers with a finding, with clear, or with undecided and",
        "why; [how it decides](../how-it-decides.md) says what becomes of that. Every rule has two",
        "traces of recorded runs, one on which it fires and one on which it does not, and its page",
        "says when it is wrong.",
    ]
    for area, rules in rulebook.by_kind(CATALOGUE).items():
        rows = []
        for rule in rules:
            name, sees, profiles, _ = lists.rule(rule)
            kinds = "any" if profiles == "all" else profiles
            rows.append((f"`{name}`", sees, kinds, _needs(rule)))
        heads = ("rule", "sees", "kinds of training", "needs")
        lines += ["", f"## {area.capitalize()}", "", table(heads, rows)]
    yield "rules/index.md", "\n".join(lines)
    yield "what-to-change.md", _remedies()


def _remedies() -> str:
    """The symptoms with what brings them about and what to change, by kind of rule."""
    lines = [
        "# What to change",
        "",
        "What each rule sees, what commonly brings it about (likeliest first), and what to change",
        "(cheapest first). `rlvitals diagnose` picks from these by the run's own numbers,",
        "and names settings as the run's framework does.",
    ]
    for area, rules in rulebook.by_kind(CATALOGUE).items():
        rows = [
            (
                lists.rule(rule)[1],
                "; ".join(rule.causes),
                "; ".join(map(neutral, rule.remedies)),
                f"[{rule.name}](rules/{rule.name}.md)",
            )
            for rule in rules
        ]
        heads = ("symptom", "likely causes", "what to change", "rule")
        lines += ["", f"## {area.capitalize()}", "", table(heads, rows)]
    return "\n".join(lines)


def _needs(rule: Rule) -> str:
    if rule.needs_any == OUTCOME_METRICS:
        return "the run's [outcome](../how-it-decides.md#outcome-first)"
    one_of = " or ".join(f"`{metric.name}`" for metric in rule.needs_any)
    return " and ".join(
        [*(f"`{metric.name}`" for metric in rule.needs), *([one_of] if one_of else [])]
    )


def _rule(rule: Rule) -> str:
    """The page that `rlvitals explain` prints, and the rule at work on its trace."""
    page = explain.rule_page(rule).replace(f"# rule {rule.name}", f"# {rule.name}", 1)
    example = (ROOT / "tests" / "traces" / rule.name / "fires.txt").read_text(encoding="utf-8")
    recipe = (ROOT / "tests" / "traces" / rule.name / "trace.toml").read_text(encoding="utf-8")
    fires, _, _ = recipe.partition("[quiet]")
    hand = "; one of its series was changed by hand" if "[fires.injected]" in fires else ""
    lines = [
        page,
        "",
        "## At work",
        f"On `tests/traces/{rule.name}/`, cut from a recorded run{hand}:",
        "",
        "```text",
        example.rstrip(),
        "```",
    ]
    if faults := gallery_faults(rule.name):
        links = ", ".join(f"[{fault}](../gallery.md#{fault})" for fault in faults)
        lines += ["", "## In the gallery", f"Faults whose report names it: {links}."]
    return "\n".join(lines)


def gallery_faults(rule: str) -> list[str]:
    """The faults of docs/gallery.md in whose report a rule stands."""
    sections = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8").split("\n## ")[1:]
    return [text.partition("\n")[0] for text in sections if f"[{rule}] " in text]


def navigation(text: str) -> str:
    """Put the rules and the frameworks into mkdocs.yml's navigation, between their marks."""
    rules = []
    for area, rules_of_kind in rulebook.by_kind(CATALOGUE).items():
        rules.append(f"- {area.capitalize()}:")
        rules += [f"    - {rule.name}: rules/{rule.name}.md" for rule in rules_of_kind]
    frameworks = [f'- "{t.title}": frameworks/{t.framework}.md' for t in TABLES]
    return _between(_between(text, "rules", rules), "frameworks", frameworks)


def _between(text: str, name: str, lines: Sequence[str]) -> str:
    start, end = f"# {name}: written by scripts/write_docs.py", f"# end of {name}"
    before, _, remainder = text.partition(start)
    _, _, after = remainder.partition(end)
    return before + f"\n{' ' * 6}".join([start, *lines, end]) + after


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
