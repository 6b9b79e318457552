"""Names in loops that people write themselves to train language models by reward.

A log is taken for one only where a key says that responses are written or graded: their length, a
reward's part for right answers or their form, accuracy of answers beside format, groups of one
prompt; or where the file is named after such an algorithm and no other framework knows its keys.
The rest are plain names. Tinker's cookbook is such a loop, whose "env/all/" holds means over the
rollouts of a batch, and so is NeMo RL's.
"""

import re

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    outcome,
    policy,
    reward,
)
from rlvitals.metrics.frameworks import generic
from rlvitals.metrics.frameworks.generic import AS_MEASURED
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "language-loop",
    "hand-written loops around a language model",
    loose=True,
    keys={
        # without the "train/" before them
        "approx_entropy": Name(exploration.ENTROPY, "estimated from sampled tokens"),
        "mean_gen_tokens_per_sample": Name(language.LENGTH_MEAN, "mean over the batch's rollouts"),
        "validation/accuracy": Name(outcome.EVAL_ACCURACY, "mean over the validation set"),
        "train_answer_accuracy": Name(outcome.ACCURACY, AS_MEASURED),
        "answer_accuracy": Name(outcome.ACCURACY, AS_MEASURED),
        "batch_accuracy": Name(outcome.ACCURACY, AS_MEASURED),
        "correctness": Name(outcome.ACCURACY, AS_MEASURED),
        "acc": Name(outcome.ACCURACY, AS_MEASURED),
        "correct_rate": Name(outcome.ACCURACY, AS_MEASURED),
        "train_reward": Name(outcome.REWARD, AS_MEASURED),
        "mean_reward": Name(outcome.REWARD, AS_MEASURED),
        "reward": Name(outcome.REWARD, AS_MEASURED),
        "reward/total": Name(outcome.REWARD, AS_MEASURED),
        "std_reward": Name(reward.STD, AS_MEASURED),
        "token_entropy": Name(exploration.ENTROPY, AS_MEASURED),
        "kl_div": Name(policy.KL_TO_REFERENCE_PER_TOKEN, AS_MEASURED),
        "kl_divergence": Name(policy.KL_TO_REFERENCE_PER_TOKEN, AS_MEASURED),
        "completion_len": Name(language.LENGTH_MEAN, AS_MEASURED),
        "avg_response_token_length": Name(language.LENGTH_MEAN, AS_MEASURED),
        "avg_gen_tokens": Name(language.LENGTH_MEAN, AS_MEASURED),
    },
    families=(
        Family(
            rf"reward/((?!(?:{generic.STATISTIC_WORDS})\Z)[^/]+)",
            Name(reward.COMPONENT, AS_MEASURED),
        ),
        Family(r"(?:train_)?(format)_(?:accuracy|rate)", Name(reward.COMPONENT, AS_MEASURED)),
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
        ("mean_reward", "accuracy", "loss"),
        ("mean_reward", "group_reward_std"),
    ),
    # TRL's families, in a table that its callback or a person wrote.
    mark_pattern=rf"{LENGTH_KEY}|{'|'.join(PART_KEYS)}|rewards/[^/]+/(?:mean|std)",
    read_from="logs of public repositories that train language models with loops of their own;"
    " NVIDIA-NeMo/RL: nemo_rl/algorithms/grpo.py",
)
