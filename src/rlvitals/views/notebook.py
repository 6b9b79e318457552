"""Show a Diagnosis in a notebook through IPython's formatters."""

import sys
from io import StringIO
from typing import Any

from rich.console import Console

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.views import terminal


def html(diagnosis: Diagnosis) -> str:
    """Return the terminal report as HTML, with text from logs escaped."""
    console = Console(
        file=StringIO(), record=True, width=100, force_terminal=True, color_system="standard",
        force_jupyter=False, markup=False, highlight=False, emoji=False, legacy_windows=False,
        no_color=False,
    )  # fmt: skip
    console.print(terminal.report(diagnosis))
    # Without background, so that light and dark notebooks stay legible.
    return console.export_html(
        inline_styles=True,
        code_format=(
            '<pre style="white-space:pre;overflow-x:auto;line-height:1.35;'
            "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\"><code>{code}</code></pre>"
        ),
    )


def register() -> None:
    """Register the formatters of a Diagnosis with a running IPython, if there is one."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(Diagnosis, html)
    formatters["text/plain"].for_type(
        Diagnosis, lambda diagnosis, printer, _cycle: printer.text(terminal.diagnosis(diagnosis))
    )
