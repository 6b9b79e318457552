"""Every picture of every log of other people's runs, without a warning."""

from functools import cache

import pytest
from effort import sampled
from matplotlib.image import imread

from rlvitals import api
from rlvitals.comparison.compare import CompareOptions, compare
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.learning_curves import learning_curves
from rlvitals.diagnosis.key_metrics import crucial
from rlvitals.diagnosis.training_summary import summary
from rlvitals.views import key_metrics as shown
from rlvitals.views.console import DEFAULT_WIDTH, plain
from rlvitals.views.drawing import files
from rlvitals.views.figures import FIGURES, groups
from rlvitals.views.figures.figure import Subject
from rlvitals.views.figures.panels import picture
from rlvitals.views.summary import page

pytestmark = pytest.mark.real_logs

LOGS = (
    "rllib/a2c-breakout-cut", "sb3-monitor/ppo__Acrobot-v1_1", "vidurrl-20250917_201326",
    "rllib/a2c-qbert", "rllib/impala-breakout", "rllib/sac-halfcheetah",
    "sb3-monitor/a2c__Acrobot-v1_1", "sb3-monitor/a2c__AntBulletEnv-v0_1",
    "sb3-monitor/dqn__LunarLander-v2_1", "sb3-monitor/dqn__MountainCar-v0_1",
    "vidurrl-20250918_232535", "vidurrl-20250919_183038",
    "wandb/run-20230330_004402-22gd2nys", "wandb/run-20230402_020025-14kim7w1",
)  # fmt: skip


@cache
def judged(path):
    return api.diagnose(path)


@pytest.mark.soak
@pytest.mark.parametrize("name", sampled(LOGS, 12))
def test_every_picture_is_drawn(name, real_logs, tmp_path):
    one = Subject(name, judged(real_logs / name))
    drawn = [found for figure in FIGURES if (found := picture(figure, [one]))]
    # W&B's two hold the machine's numbers, and keys that are their authors' own.
    least = {"throughput"} if name.startswith("wandb/") else {"dashboard", "crucial", "rewards"}
    assert least <= {found.name for found in drawn}
    for found in drawn:
        for theme in ("light", "dark"):
            path = tmp_path / f"{found.name}-{theme}.png"
            files.write(found, path, theme, 40)
            assert imread(path)[..., :3].std() > 0.01  # something stands on the paper


@pytest.mark.parametrize("name", LOGS)
def test_the_crucial_values_have_a_page(name, real_logs):
    found = judged(real_logs / name)
    page = plain(shown.crucial(found, crucial(found)))
    assert found.verdict.word.value.upper() in page
    assert max(map(len, page.splitlines())) <= DEFAULT_WIDTH


@pytest.mark.parametrize("name", [name for name in LOGS if name.startswith("vidurrl")])
def test_what_is_asked_of_a_scheduler_has_an_answer(name, real_logs):
    said = page([summary(name, judged(real_logs / name))])
    assert "  Replicas: what would be best is not known: no replica_speeds is set" in said
    assert ("  Temperature: " in said) == (name != "vidurrl-20250917_201326")  # it logs none


def test_groups_of_real_runs_are_drawn(real_logs, tmp_path):
    kinds = {"a2c": "sb3-monitor/a2c__Acrobot-v1_1", "ppo": "sb3-monitor/ppo__Acrobot-v1_1"}
    members = [Member(api.trace(real_logs / path), kind) for kind, path in kinds.items()]
    asked = CompareOptions(by=("path",))
    told = compare(members, asked)
    for drawn in groups.pictures(told, learning_curves(members, asked, told)):
        files.write(drawn, tmp_path / f"{drawn.name}.png", "dark", 40)
        assert imread(tmp_path / f"{drawn.name}.png")[..., :3].std() > 0.01


@pytest.mark.soak
def test_all_of_them_are_drawn_together(real_logs, tmp_path):
    several = [Subject(name, api.diagnose(real_logs / name)) for name in LOGS]
    for figure in FIGURES:
        if found := picture(figure, several):
            files.write(found, tmp_path / f"{figure.name}.png", "light", 40)
    assert (tmp_path / "dashboard.png").exists()
