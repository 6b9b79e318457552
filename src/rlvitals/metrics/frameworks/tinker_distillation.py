"""Tinker's cookbook, on-policy distillation: what is minimised is the KL to the teacher.

The environments' reward is 0 unless they grade answers too, and the entropy goes to the teacher's.
"""

from dataclasses import replace

from rlvitals.metrics.catalogue import optimiser, outcome, rollouts, surrogate
from rlvitals.metrics.frameworks import tinker
from rlvitals.metrics.frameworks.key import Family, Name

TEACHER = Name(optimiser.LOSS, "KL to the teacher, which is minimised: k1, mean over action tokens")

NAMES = replace(
    tinker.NAMES,
    framework="tinker-distillation",
    title="Tinker cookbook, distillation",
    keys={
        **{
            key: name
            for key, name in tinker.TRAINING.items()
            if not key.startswith(("env/all/by_group/", "optim/entropy"))
        },
        "env/all/reward/total": Name(outcome.REWARD, tinker.OVER_EPISODES, zero_if_off=True),
        "teacher_kl": TEACHER,
        "sdft/reverse_kl_mean": TEACHER,
    },
    families=(
        Family(r"(env/all/by_group/.+)", Name(rollouts.SHARE_OF, "no reward is given")),
        Family(r"(optim/entropy)", Name(rollouts.STATISTIC)),
        Family(r"teacher_kl/(.+)", Name(surrogate.DISTILLATION, "k1, of one data set")),
        Family(r"(sdft/(?:num_|total_).+|sdft/\w+_(?:count|positions))", Name(rollouts.COUNT)),
        Family(r"sdft/(.+)", Name(surrogate.DISTILLATION)),
        *tinker.NAMES.families,
    ),
    marks=(("teacher_kl",), ("sdft/reverse_kl_mean",)),
)
