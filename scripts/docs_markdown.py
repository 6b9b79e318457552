"""Format Markdown for generated pages: tables, and links from names in backticks."""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from types import ModuleType

from rlvitals import metrics
from rlvitals.metrics.metric import Metric
from rlvitals.rules import CATALOGUE

SETTINGS = "hyperparameters"  # the family whose members have no prefix


def family(metric: Metric) -> str:
    return SETTINGS if metric.kind == "setting" else metric.name.split("/")[0]


def anchor(metric: Metric) -> str:
    return metric.name.split("/")[-1]


def targets() -> dict[str, str]:
    """The page of each rule, metric and setting, from docs/."""
    links = {rule.name: f"rules/{rule.name}.md" for rule in CATALOGUE}
    for metric in metrics.CATALOGUE:
        page = f"metrics/{family(metric)}.md#{anchor(metric)}"
        links |= {metric.name: page} | ({f"{metric.name}/...": page} if metric.family else {})
    return links


TARGETS = targets()
NAME = re.compile(r"(?<![\[`])`([^`]+)`(?!`)")  # [`x`] is a link already, ``x`` is another's key


def link(text: str, page: str) -> str:
    """Turn names in backticks into links; not in headings and code."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        plain = fenced or line.startswith(("#", "    "))
        lines.append(line if plain else NAME.sub(_linked(page), line))
    return "\n".join(lines).rstrip() + "\n"


def _linked(page: str) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        target, _, anchor = TARGETS.get(found[1], "").partition("#")
        if not target or (target == page and not anchor):
            return found[0]
        to = posixpath.relpath(target, posixpath.dirname(page)) if target != page else ""
        return f"[{found[0]}]({to}{'#' + anchor if anchor else ''})"

    return replace


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows out as a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines)


def _cell(text: str) -> str:
    """Keep a bar from ending its cell: renderers differ about one that is escaped within code."""
    return re.sub(r"`+([^`]*\|[^`]*)`+", _code, text).replace("|", "\\|")


def _code(match: re.Match[str]) -> str:
    pattern = escape(match[1]).replace("|", "&#124;<wbr>")
    return f'<code class="pattern">{pattern}</code>'


def title(module: ModuleType) -> str:
    return family(module.METRICS[0])


def doc(text: str | None) -> str:
    return (text or "").strip()
