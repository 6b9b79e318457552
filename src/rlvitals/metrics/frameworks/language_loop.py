"""Names in loops that people write themselves to train language models by reward.

A log is taken for one only where a key says that responses are graded: a reward's part for right
answers, accuracy of answers beside format, groups of one prompt. The rest are plain names. Tinker's
cookbook is such a loop, whose "env/all/" holds means over the rollouts of a batch, and so is NeMo
RL's.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    outcome,
    policy,
    reward,
)
from rlvitals.metrics.frameworks import generic
from rlvitals.metrics.frameworks.key import Family, Name, Table

HOW = generic.HOW
ROLLOUTS = "mean over the batch's rollouts"
NEMO = {  # without the "train/" before them
    "approx_entropy": Name(exploration.ENTROPY, "estimated from sampled tokens"),
    "mean_gen_tokens_per_sample": Name(language.LENGTH_MEAN, ROLLOUTS),
    "validation/accuracy": Name(outcome.EVAL_ACCURACY, "mean over the validation set"),
}

NAMES = Table(
    "language-loop",
    "hand-written loops around a language model",
    loose=True,
    keys={
        **NEMO,
        "train_answer_accuracy": Name(outcome.ACCURACY, HOW),
        "answer_accuracy": Name(outcome.ACCURACY, HOW),
        "batch_accuracy": Name(outcome.ACCURACY, HOW),
        "correctness": Name(outcome.ACCURACY, HOW),
        "acc": Name(outcome.ACCURACY, HOW),
        "correct_rate": Name(outcome.ACCURACY, HOW),
        "train_reward": Name(outcome.REWARD, HOW),
        "mean_reward": Name(outcome.REWARD, HOW),
        "reward": Name(outcome.REWARD, HOW),
        "reward/total": Name(outcome.REWARD, HOW),
        "std_reward": Name(reward.STD, HOW),
        "token_entropy": Name(exploration.ENTROPY, HOW),
        "kl_div": Name(policy.KL_TO_REFERENCE_PER_TOKEN, HOW),
        "kl_divergence": Name(policy.KL_TO_REFERENCE_PER_TOKEN, HOW),
        "completion_len": Name(language.LENGTH_MEAN, HOW),
        "avg_response_token_length": Name(language.LENGTH_MEAN, HOW),
        "avg_gen_tokens": Name(language.LENGTH_MEAN, HOW),
    },
    families=(
        Family(rf"reward/((?!(?:{generic.STATISTICS})\Z)[^/]+)", Name(reward.COMPONENT, HOW)),
        Family(r"(?:train_)?(format)_(?:accuracy|rate)", Name(reward.COMPONENT, HOW)),
    ),
    prefixes=generic.NAMES.prefixes,
    marks=(
        ("mean_gen_tokens_per_sample", "reward"),
        ("reward/correctness",),
        ("reward/format",),
        ("answer_accuracy", "format_accuracy"),
        ("format_rate", "mean_reward"),
        ("mean_reward", "batch_accuracy"),
        ("reward", "acc", "loss"),  # rewarded for answers that are right or not
        ("reward", "accuracy", "loss"),
        ("mean_reward", "group_reward_std"),
    ),
    read_from="logs of public repositories that train language models with loops of their own;"
    " NVIDIA-NeMo/RL: nemo_rl/algorithms/grpo.py",
)
