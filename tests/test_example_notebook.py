"""The notebook beside the example runs executes, cell by cell, in a real IPython."""

import json
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOK = json.loads((EXAMPLES / "first-look.ipynb").read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each code cell prints, and its last value, run in a copy of the folder."""
    shells = pytest.importorskip("IPython.core.interactiveshell")
    capture = pytest.importorskip("IPython.utils.capture")
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copytree(EXAMPLES, folder / "examples")
    shell = shells.InteractiveShell.instance()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "examples")
        patch.setattr("tempfile.tempdir", str(folder))
        try:
            cells = []
            for source in CODE:
                with capture.capture_output() as captured:
                    result = shell.run_cell(source)
                result.raise_error()
                cells.append((captured.stdout, result.result))
        finally:
            shells.InteractiveShell.clear_instance()
    return cells


def test_every_cell_runs_and_shows_what_the_text_says(outputs):
    report, causes, trace, _, healthy, recorded, page = (text for text, _ in outputs)
    assert "COLLAPSED" in report
    assert causes.startswith("collapsed\nlearning-rate-jump since step")
    assert "metrics; the best return is" in trace
    assert "policy/approx_kl" in trace
    assert healthy in {"learning []\n", "converged []\n"}
    assert "LEARNING" in recorded
    assert "report.html" in page


def test_the_picture_is_shown(outputs):
    (svg,) = [shown._repr_svg_() for _, shown in outputs if hasattr(shown, "_repr_svg_")]
    assert "</svg>" in svg


def test_it_is_kept_without_outputs():
    assert NOTEBOOK["nbformat"] == 4
    assert all(not cell.get("outputs") for cell in NOTEBOOK["cells"])
