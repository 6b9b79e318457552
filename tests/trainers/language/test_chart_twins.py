"""The shipped training on charts, trained for real: healthy it learns, broken it is found out."""

import pytest
from chart_faults import folder_of_charts

import rlvitals
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Severity
from rlvitals.trainers import schema
from rlvitals.trainers.language import presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.program import Training

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),  # transformers' own
]
MODEL = "tiny-vlm"
FORM = {"rewards.correctness": "format_reward"}


def diagnosed(folder, mode, images="", **said):
    if images:
        made = folder_of_charts(folder / "charts", images, seed=11, count=1000)
        said |= {"data.dataset_name": str(made), "data.held_out": 0}
    said |= {
        "training.mode": mode, "training.seed": 11, "training.output_dir": str(folder / "run"),
        "training.max_steps": 40, "monitoring.report_to": (), "monitoring.progress_bar": False,
        "monitoring.diagnose_seconds": 0.0, "monitoring.console_seconds": 1e9,
    }  # fmt: skip
    config = schema.load(Config, None, said, below=presets.preset(MODEL))
    assert Training(config).run() == "finished"
    return rlvitals.diagnose(folder / "run")


def test_the_healthy_run_has_learned(tmp_path):
    found = diagnosed(tmp_path, "psr")
    # It levels off within its 40 steps: where, differs with the machine's arithmetic.
    assert found.verdict.word in {Word.LEARNING, Word.CONVERGED, Word.PLATEAU}
    assert "flat" not in found.verdict.why
    assert found.worst is None or found.worst is Severity.NOTE


@pytest.mark.parametrize(
    ("mode", "images", "said", "rule"),
    [
        ("psr", "", FORM, "threshold-off-correctness"),
        ("w-reinforce", "", FORM, "threshold-off-correctness"),
        ("psr", "blank", {}, "image-not-seen"),
        ("grpo", "shuffled", {}, "image-mismatched"),
    ],
)
def test_a_broken_twin_is_named_first(tmp_path, mode, images, said, rule):
    found = diagnosed(tmp_path, mode, images, **said)
    assert found.verdict.word not in {Word.LEARNING, Word.CONVERGED}
    assert found.cases[0].rule.name == rule
    assert found.cases[0].finding.severity >= Severity.WARNING
