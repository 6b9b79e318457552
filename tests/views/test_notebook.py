"""A Diagnosis renders in a real IPython, and the noun knows nothing of it."""

import re
import subprocess
import sys
from html import unescape

import browser
import made
import pytest

from rlvitals.views import notebook


def test_the_text_is_one_self_contained_block():
    html = notebook.text(made.diagnosis())
    assert html.startswith("<pre")
    assert "LEARNING" in html
    assert "▲ 4,000" in html
    assert "<script" not in html
    assert "http" not in html


def test_html_is_the_page_of_the_report_in_a_frame_and_the_text():
    html = notebook.html(made.diagnosis())
    page = unescape(re.search(r'srcdoc="([^"]*)"', html)[1])
    assert page.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in page
    assert "default-src 'none'" in unescape(page)  # nothing is loaded
    assert '"charts":[{' in page
    assert 'sandbox="allow-scripts"' in html
    assert re.findall(r"<script>(.*?)</script>", html, re.DOTALL) == [notebook.frame_script()]
    assert notebook.text(made.diagnosis()) in html


@pytest.mark.skipif(browser.program() is None, reason="no Chromium")
def test_the_frame_is_as_high_as_its_content(tmp_path):
    """Also where a part of it is unfolded; a message of another frame changes nothing."""
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html>{notebook.html(made.diagnosis())}", encoding="utf-8")
    with browser.Browser() as opened:
        page = opened.open(path)
        height = "document.querySelector('iframe').clientHeight"
        page.until(f"{height} !== {34 * 16}")
        page.settle()
        wide = page.run(height)
        page.run("postMessage({ rlvitalsHeight: 9 }, '*')")
        page.look(400, 900)  # lines break
        page.until(f"{height} > {wide}")


def test_ipython_shows_it():
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    try:
        notebook.register()
        data, _ = shell.display_formatter.format(made.diagnosis())
        assert data["text/html"].startswith("<div><script>")
        assert data["text/plain"].startswith(" LEARNING")
        data, _ = shell.display_formatter.format(made.diagnosis().trace)
        assert data["text/html"].startswith("<div><script>")
    finally:
        shell_module.InteractiveShell.clear_instance()


def test_without_ipython_nothing_is_loaded_or_registered():
    code = (
        "import sys; from rlvitals.views import notebook; notebook.register();"
        "assert 'IPython' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_noun_knows_no_view():
    code = (
        "import sys, rlvitals.diagnosis.engine; assert not [m for m in sys.modules if 'show' in m]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_s_own_text_colour_shows_through():
    """Black is named on a badge's colour alone: in a dark notebook plain text stays legible."""
    styles = re.findall(r'style="([^"]*)"', notebook.text(made.diagnosis()))
    assert all("background-color" in style for style in styles if "color: #000000" in style)
