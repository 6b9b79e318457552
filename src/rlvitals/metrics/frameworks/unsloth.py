"""Unsloth's GRPOTrainer: TRL's, with a loss of its own that logs some keys differently.

Its loss logs `completion_length` beside TRL's `completions/mean_length`, no entropy, and `kl`
whether or not there is a reference.
"""

from dataclasses import replace

from rlvitals.metrics.catalogue import language, policy
from rlvitals.metrics.frameworks import trl_grpo
from rlvitals.metrics.frameworks.key import Name

NAMES = replace(
    trl_grpo.NAMES,
    framework="unsloth",
    title="Unsloth GRPOTrainer",
    keys={
        **trl_grpo.NAMES.keys,
        # unsloth/models/rl_replacements.py, compute_loss; unsloth_zoo/rl_replacements.py
        "kl": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            "k3, mean over tokens, then over sequences, of the process that logs; 0 where"
            " beta is 0",
            estimator="k3",
            zero_if_off=True,
        ),
        "completion_length": Name(
            language.LENGTH_MEAN, "trained tokens of the microbatch, of the process that logs"
        ),
        "completions/mean_length": Name(language.LENGTH_MEAN, trl_grpo.OVER_GENERATION_BATCH),
    },
    # TRL itself had the one until 0.16 and has the other since 0.17, never both.
    marks=(("completion_length", "completions/mean_length"),),
    read_from="unslothai/unsloth 015bdef: unsloth/models/rl_replacements.py"
    " (grpo_trainer_compute_loss); unslothai/unsloth-zoo ce232d6: unsloth_zoo/rl_replacements.py"
    " (grpo_compute_loss); the rest is TRL's",
)
