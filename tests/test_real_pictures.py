"""Every picture of every log of other people's runs, without a warning."""

import pytest
from matplotlib.image import imread

from rlvitals import api
from rlvitals.show.drawing import files
from rlvitals.show.figures import FIGURES
from rlvitals.show.figures.figure import Subject
from rlvitals.show.figures.panels import picture

pytestmark = pytest.mark.real_logs

LOGS = (
    "rllib/a2c-breakout-cut", "sb3-monitor/ppo__Acrobot-v1_1", "vidurrl-20250917_201326",
    "rllib/a2c-qbert", "rllib/impala-breakout", "rllib/sac-halfcheetah",
    "sb3-monitor/a2c__Acrobot-v1_1", "sb3-monitor/a2c__AntBulletEnv-v0_1",
    "sb3-monitor/dqn__LunarLander-v2_1", "sb3-monitor/dqn__MountainCar-v0_1",
    "vidurrl-20250918_232535", "vidurrl-20250919_183038",
    "wandb/run-20230330_004402-22gd2nys", "wandb/run-20230402_020025-14kim7w1",
)  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_every_picture_is_drawn(name, real_logs, tmp_path):
    one = Subject(name, api.diagnose(real_logs / name))
    drawn = [found for figure in FIGURES if (found := picture(figure, [one]))]
    # W&B's two hold the machine's numbers, and keys that are their authors' own.
    least = {"throughput"} if name.startswith("wandb/") else {"dashboard", "rewards"}
    assert least <= {found.name for found in drawn}
    for found in drawn:
        for theme in ("light", "dark"):
            path = tmp_path / f"{found.name}-{theme}.png"
            files.write(found, path, theme, 40)
            assert imread(path)[..., :3].std() > 0.01  # something stands on the paper


@pytest.mark.soak
def test_all_of_them_are_drawn_together(real_logs, tmp_path):
    several = [Subject(name, api.diagnose(real_logs / name)) for name in LOGS]
    for figure in FIGURES:
        if found := picture(figure, several):
            files.write(found, tmp_path / f"{figure.name}.png", "light", 40)
    assert (tmp_path / "dashboard.png").exists()
