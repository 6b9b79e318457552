"""Assemble the script, style and colours of pages with charts."""

from importlib.resources import files

from rlvitals.views.charts import CHART_SCRIPTS, CHART_STYLE
from rlvitals.views.drawing.themes import DARK, LIGHT, Theme


def script(*more: str) -> str:
    """Return the charts' script and a page's additions, wrapped in one function scope."""
    sources = [*(_read(name) for name in CHART_SCRIPTS), *more]
    return "(() => {\n" + "\n".join(['"use strict";', *sources]) + "})();\n"


def style(*more: str) -> str:
    """Return the colours, the charts' style and a page's additions."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{colours(DARK)}}}\n"
    return "\n".join([colours(LIGHT), dark, _read(CHART_STYLE), *more])


def switchable_style(*more: str) -> str:
    """Return `style` for a page whose root element chooses a theme by `data-theme`."""
    dark = colours(DARK, ":root:not([data-theme=light])")
    by_system = f"@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"
    by_choice = f"@media screen {{\n{colours(DARK, ':root[data-theme=dark]')}}}\n"
    return "\n".join([colours(LIGHT), by_system, by_choice, _read(CHART_STYLE), *more])


def _read(name: str) -> str:
    return files("rlvitals.views.charts").joinpath(name).read_text(encoding="utf-8")


def colours(theme: Theme, selector: str = ":root") -> str:
    """Return a theme's colours as CSS variables; pictures in files use the same colours."""
    variables = {
        "paper": theme.paper,
        "ink": theme.ink,
        "dim": theme.dim,
        "grid": theme.grid,
        **theme.named,
        **{f"curve{index}": colour for index, colour in enumerate(theme.curves)},
    }
    lines = "".join(f"  --{key}: {value};\n" for key, value in variables.items())
    return f"{selector} {{\n{lines}}}\n"
