"""Write the manual page of a metric, key, rule, term, setting or environment."""

import re
from collections.abc import Iterator

from rlvitals import metrics, settings
from rlvitals.diagnosis.remedies import neutral
from rlvitals.errors import UsageError, nearest, quantity
from rlvitals.metrics import environments, glossary
from rlvitals.metrics.frameworks import GENERIC, TABLES, lookup
from rlvitals.metrics.frameworks.key import Name, Table
from rlvitals.metrics.frameworks.own_numbers import UNJUDGED
from rlvitals.metrics.metric import Band, Metric
from rlvitals.readers import READERS
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rate import MIN_HEALTHY_RUNS, Interval
from rlvitals.rules.rates import RATES
from rlvitals.rules.rule import Rule
from rlvitals.storage import toml_files
from rlvitals.views import rate_text
from rlvitals.views.phrases import number


def explain(name: str) -> str:
    """Return the page of a name as Markdown, with a part for each meaning.

    Parameters
    ----------
    name : str
        Name of a metric, logged key, rule, term, setting or environment. It may be followed by its
        symbol or its long form in brackets, and two names may be separated by " / ".

    Raises
    ------
    UsageError
        If nothing has the name. The `hint` of the error has the nearest names, if any.
    """
    query = name.strip()
    pages = _pages(query)
    if not pages:
        if query in {table.framework for table in TABLES}:
            hint = f"rlvitals metrics --framework {query}"
        elif query in {reader.name for reader in READERS}:
            hint = "rlvitals readers"
        else:
            hint = nearest(query, known_names())
        hint = hint or "rlvitals metrics, or rlvitals rules"
        raise UsageError(f"nothing is called {query!r}", hint=hint)
    return "\n\n".join(pages)


def _pages(name: str) -> list[str]:
    """Return all pages of a name, or else those of the names it consists of."""
    kinds = (_terms, _rules, _metrics, _keys, _options, _environments)
    if pages := [page for kind in kinds for page in kind(name)]:
        return pages
    if match := re.fullmatch(r"(.+?)\s*\((.+)\)", name):  # "Policy (π)": a name, then its symbol
        return _pages(match[1]) or _pages(match[2])
    if match := re.fullmatch(r"(.+?)\s+/\s+(.+)", name):  # "Success / win rate"
        first, second = match.groups()
        pages = (_pages(first) or _pages(f"{first} {second.split()[-1]}")) + _pages(second)
        return list(dict.fromkeys(pages))
    return []


def known_names() -> set[str]:
    """Return every name that has a page."""
    names = {metric.name for metric in metrics.CATALOGUE} | {rule.name for rule in CATALOGUE}
    for table in TABLES:
        names |= {*table.keys, *table.settings}
    names |= {name for term in glossary.TERMS for name in (term.name, *term.also)}
    names |= {environment.name for environment in environments.ENVIRONMENTS}
    return names | {option.key for option in settings.options("diagnose")}


def _names_match(name: str, query: str) -> bool:
    """Compare names ignoring case, hyphens, underscores and spaces."""
    plain = str.maketrans("_ ", "--")
    return name.casefold().translate(plain) == query.casefold().translate(plain)


def _terms(name: str) -> Iterator[str]:
    for term in glossary.TERMS:
        if any(_names_match(alias, name) for alias in (term.name, *term.also)):
            lines = [f"# term {term.name}", "", term.meaning]
            facts = [f"- **also**: {', '.join(term.also)}"] if term.also else []
            if term.see_also:
                facts.append(f"- **see also**: {', '.join(f'`{n}`' for n in term.see_also)}")
            yield "\n".join([*lines, *(["", *facts] if facts else [])])


def _rules(name: str) -> Iterator[str]:
    return (rule_page(rule) for rule in CATALOGUE if _names_match(rule.name, name))


def rule_page(rule: Rule) -> str:
    """Return a rule's page: its docstring, metrics, remedies, thresholds and rates."""
    needs = [f"`{m.name}`" for m in rule.needs]
    if rule.needs_any:
        needs.append(f"one of {', '.join(f'`{m.name}`' for m in rule.needs_any)}")
    count = quantity(rule.at_least, "number")
    facts = [
        f"- **applies to**: {', '.join(rule.profiles) or 'every kind of training'}",
        f"- **needs**: {', '.join(needs) or 'nothing'}; {count} of each",
    ]
    if rule.explained_by:
        causes = ", ".join(f"`{cause}`" for cause in rule.explained_by)
        facts.append(f"- **shown as a symptom of**: {causes}")
    summary, _, sections = rule.doc.strip().partition("\n## ")
    numbers = [f"- `{t.name}` ({number(t.default)} by default): {t.doc}" for t in rule.thresholds]
    likely = [f"- {cause}" for cause in rule.causes]
    tries = [f"- {neutral(remedy)}" for remedy in rule.remedies]
    return "\n".join(
        [f"# rule {rule.name}", "", summary.strip(), "", *facts, "", f"## {sections.strip()}"]
        + (["", "## Likely causes", *likely] if likely else [])
        + (["", "## Try", *tries] if tries else [])
        + (["", "## Numbers it judges by", *numbers] if numbers else [])
        + ["", "## Measured", *_rate_lines(rule)]
    )


def _rate_lines(rule: Rule) -> Iterator[str]:
    """Yield a rule's measured false-alarm and detection rates."""
    rates = RATES.get(rule.name, ())
    for rate in rates:
        interval = _format_interval(rate.false_alarms)
        counted = rate_text.origin(rate)
        of_which = f" of {counted}" if counted else ""
        share = f"fires on {rate.rang} of {rate.healthy} healthy runs{of_which}{interval}"
        errors = f", {rate.errors} of them as an error" if rate.errors else ""
        caught = ""
        if rate.faulted:
            caught = f"; catches {rate.caught} of {rate.faulted} of its faults"
            caught += f"{_format_interval(rate.recall)}, {rate.first} as the first root cause"
        yield f"- {rate.family}: {share}{errors}{caught}"
    if rule.no_threshold:
        yield "- an identity or an invariant: it needs no measuring"
    elif max((rate.healthy for rate in rates), default=0) < MIN_HEALTHY_RUNS:
        runs = f"{MIN_HEALTHY_RUNS} healthy runs of one family"
        yield f"- held at a note until {runs} have shown how it rings"


def _format_interval(interval: Interval) -> str:
    return f" (95 %: {interval.low:.0%} to {interval.high:.0%})"


def _metrics(name: str) -> Iterator[str]:
    for metric in metrics.CATALOGUE:
        member = metric.family and name.startswith(f"{metric.name}/")
        if member or _names_match(metric.name, name) or _names_match(metric.title, name):
            yield metric_page(metric)


def metric_page(metric: Metric) -> str:
    """Return a metric's page: meaning, formula, range, keys in frameworks, rules."""
    kind = "setting" if metric.kind == "setting" else "metric"
    title = f"{metric.name}/..." if metric.family else metric.name
    unit = f" ({metric.unit})" if metric.unit else ""
    lines = [f"# {kind} {title}", "", f"**{metric.title}**{unit}. {metric.meaning}"]
    if metric.formula:
        lines += ["", f"    {metric.formula}"]
    facts = [f"- **healthy range**: {text}" for text in _ranges(metric)]
    if text := _band(metric.possible):
        facts.append(f"- **possible**: {text}")
    if metric.better in ("up", "down", "steady"):
        facts.append(f"- **better**: {metric.better}")
    if metric.see_also:
        facts.append(f"- **see also**: {', '.join(f'`{n}`' for n in metric.see_also)}")
    readers = [rule.name for rule in CATALOGUE if metric in (*rule.needs, *rule.needs_any)]
    if readers:
        facts.append(f"- **rules that need it**: {', '.join(f'`{n}`' for n in readers)}")
    names = [f"- {table.title}: {alias}" for table in TABLES for alias in _aliases(table, metric)]
    return "\n".join(
        [*lines, *(["", *facts] if facts else []), *(["", "## Logged as", *names] if names else [])]
    )


def _ranges(metric: Metric) -> Iterator[str]:
    if text := _band(metric.healthy):
        yield text
    for profile, band in metric.healthy_in.items():
        yield f"{_band(band) or 'none'} ({profile})"


def _band(band: Band) -> str:
    low = _end("from", band.low, band.low_from)
    high = _end("up to", band.high, band.high_from)
    return " ".join(end for end in (low, high) if end)


def _end(preposition: str, value: float | None, setting: str | None) -> str:
    """Return the text of one end of a range: its number, and the overriding setting."""
    texts = [number(value)] if value is not None else []
    texts += [f"the run's `{setting}`"] if setting else []
    return f"{preposition} {', or '.join(texts)}" if texts else ""


def _aliases(table: Table, metric: Metric) -> Iterator[str]:
    """Yield a line for the keys that one framework measures in the same way."""
    alike: dict[str, list[str]] = {}
    for key, name in table.keys.items():
        if name.metric.name == metric.name:
            alike.setdefault(_how(name), []).append(f"`{key}`")
    for family in table.families:
        if family.name.metric.name == metric.name:
            alike.setdefault(_how(family.name), []).append(f"`{family.pattern}`")
    for key, canonical in table.settings.items():
        if canonical == metric.name:
            alike.setdefault("", []).append(f"`{key}`")
    for how, keys in alike.items():
        yield ", ".join(keys) + (f": {how}" if how else "")


def _how(name: Name) -> str:
    scale = "" if name.scale == 1.0 else f"logged x {number(1 / name.scale)}"
    window = f"mean over the last {name.window}" if name.window > 1 else ""
    how = [name.how, scale, "" if "last" in name.how else window]
    return "; ".join(text for text in how if text)


def _keys(name: str) -> Iterator[str]:
    """Yield the pages of a framework's key, unless it is the canonical name."""
    lines_by_metric: dict[str, list[str]] = {}
    for table in TABLES:
        if table is GENERIC and lines_by_metric:
            continue  # a framework's own key takes precedence
        if match := lookup.find(table, name):
            canonical, key = match
            how = _how(key)
            alias = f"`{name}`" + (f": {how}" if how else "")
            lines_by_metric.setdefault(canonical, []).append(f"- {table.title}: {alias}")
        elif name in table.settings:
            lines_by_metric.setdefault(table.settings[name], []).append(
                f"- {table.title}: `{name}`"
            )
    # What a table only keeps under its own name explains a key that has no other meaning.
    specific = {c: lines for c, lines in lines_by_metric.items() if not c.startswith(UNJUDGED)}
    for canonical, lines in (specific or lines_by_metric).items():
        metric = metrics.find(canonical)
        if metric is None or _names_match(canonical, name) or _names_match(metric.title, name):
            continue
        yield "\n".join([f"# key {name}", "", f"is `{canonical}` in", "", *lines])
        yield metric_page(metric)
    if lines_by_metric and not specific and (hint := nearest(name, known_names() - {name})):
        yield f"No table has the key `{name}` itself: {hint}"


def _environments(name: str) -> Iterator[str]:
    env = environments.lookup(name)
    if env is None:
        return
    facts = {
        "return of random actions": env.random_return,
        "return where it counts as solved": env.solved_return,
        "lowest possible return": env.min_return,
        "highest possible return": env.max_return,
        "steps at most": env.horizon,
        "discrete actions": env.actions,
        "dimensions of a continuous action": env.action_dim,
        "mean return of the best agent published": env.best_return,
    }
    lines = [f"- **{label}**: {number(v)}" for label, v in facts.items() if v is not None]
    source = [f"- **source**: {env.source}"] if env.source else []
    yield "\n".join([f"# environment {env.name}", "", *lines, *source])


def _options(name: str) -> Iterator[str]:
    for option in settings.options("diagnose"):
        if name.removeprefix("diagnose.").removeprefix("--").replace("-", "_") != option.key:
            continue
        choices = f"- **one of**: {', '.join(option.choices)}" if option.choices else ""
        default = option.default or "none"
        lines = [
            f"# option {option.section}.{option.key}",
            "",
            f"{option.doc[0].upper()}{option.doc[1:]}.",
            "",
            f"- **default**: {default}",
            *([choices] if choices else []),
            f"- **command line**: `{option.flag}`",
            f"- **environment**: `{option.variable}`",
            f"- **{toml_files.SETTINGS_FILE}**: `{option.key}` under `[{option.section}]`",
        ]
        yield "\n".join(lines)
