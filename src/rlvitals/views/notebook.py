"""A Diagnosis in a notebook: IPython is told how to show it, the noun is not."""

import sys
from io import StringIO
from typing import Any

from rich.console import Console

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.views import terminal

WIDTH = 100
# The colours of the page show through, so that light and dark notebooks both stay legible.
FRAME = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.35;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\"><code>{code}</code></pre>"
)


def html(diagnosis: Diagnosis) -> str:
    """Write the terminal report as HTML; everything a log wrote is escaped."""
    console = Console(
        file=StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="standard",
        force_jupyter=False, markup=False, highlight=False, emoji=False, legacy_windows=False,
        no_color=False,
    )  # fmt: skip
    console.print(terminal.report(diagnosis))
    return console.export_html(inline_styles=True, code_format=FRAME)


def register() -> None:
    """Teach a running IPython to show a Diagnosis; does nothing where none runs."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(Diagnosis, html)
    formatters["text/plain"].for_type(
        Diagnosis, lambda found, printer, _cycle: printer.text(terminal.diagnosis(found))
    )
