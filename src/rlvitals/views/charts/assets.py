"""The charts' own script and style, and the colours of every page that shows them."""

from importlib.resources import files

from rlvitals.views.charts import SCRIPTS, STYLE
from rlvitals.views.drawing.themes import DARK, LIGHT, Theme


def script(*more: str) -> str:
    """Put the charts' script together, with what a page adds to it, in a scope of its own."""
    parts = [*(_read(name) for name in SCRIPTS), *more]
    return "(() => {\n" + "\n".join(['"use strict";', *parts]) + "})();\n"


def style(*more: str) -> str:
    """Put the colours and the charts' style together, with what a page adds to it."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_colours(DARK)}}}\n"
    return "\n".join([_colours(LIGHT), dark, _read(STYLE), *more])


def _read(name: str) -> str:
    return files("rlvitals.views.charts").joinpath(name).read_text(encoding="utf-8")


def _colours(theme: Theme) -> str:
    """Name a theme's colours, as the pictures that are drawn into files have them."""
    named = {
        "paper": theme.paper,
        "ink": theme.ink,
        "dim": theme.dim,
        "grid": theme.grid,
        **theme.named,
        **{f"curve{at}": colour for at, colour in enumerate(theme.curves)},
    }
    return ":root {\n" + "".join(f"  --{key}: {value};\n" for key, value in named.items()) + "}\n"
