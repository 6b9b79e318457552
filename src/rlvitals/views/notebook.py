"""Show a diagnosed run in a notebook through IPython's formatters: its page, and its text."""

import sys
from functools import cache
from html import escape
from importlib.resources import files
from io import StringIO
from typing import Any

from rich.console import Console

from rlvitals.diagnosis.engine import Diagnosis, diagnose
from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.training_summary import summary
from rlvitals.errors import harmless
from rlvitals.tracking import clock
from rlvitals.types import Trace
from rlvitals.views import terminal
from rlvitals.views.report import contents
from rlvitals.views.report import html as report
from rlvitals.views.report.markup import Html, el
from rlvitals.views.report.page import Subject


def html(diagnosis: Diagnosis) -> str:
    """Return the report's page with header and charts, and below it the text of the terminal.

    The page is in a separate frame: neither its style nor its script reaches the notebook, where a
    script of ours makes the frame as high as its content. A notebook that is not trusted, and
    GitHub, leave frames out; the text stays.
    """
    name = harmless(diagnosis.trace.name)
    style = "width:100%;height:34rem;border:1px solid #8886;border-radius:6px;resize:vertical"
    frame = Html(
        f'<iframe data-rlvitals srcdoc="{escape(_page(diagnosis))}" style="{style}"'
        f' sandbox="allow-scripts" title="{escape(f"rlvitals: {name}")}"></iframe>'
    )
    script = el("script", Html(frame_script()))
    return el("div", script, frame, el("details", el("summary", "as text"), Html(text(diagnosis))))


@cache
def frame_script() -> str:
    """Return the script that a notebook runs beside its frames."""
    return files("rlvitals.views.report").joinpath("frame.js").read_text("utf-8")


def _page(diagnosis: Diagnosis) -> str:
    """Return the report of a run of which the trace alone is known."""
    now_s, name = clock.now(), diagnosis.trace.name
    subject = Subject(
        summary=summary(name, diagnosis, None),
        standing=standing(name, diagnosis, now=now_s),
        facts={},
    )
    return report.document([contents.page(subject, 0)], now_s)


def text(diagnosis: Diagnosis) -> str:
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
    """Register the formatters of Diagnosis and Trace with a running IPython, if there is one."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(Diagnosis, html)
    formatters["text/html"].for_type(Trace, lambda trace: html(diagnose(trace)))
    formatters["text/plain"].for_type(
        Diagnosis, lambda diagnosis, printer, _cycle: printer.text(terminal.diagnosis(diagnosis))
    )
