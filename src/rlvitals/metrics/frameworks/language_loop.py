"""Names in loops that people write themselves to train language models by reward.

A log is taken for one only where a key says that responses are graded: a reward's part for right
answers, accuracy of answers beside format, groups of one prompt. The rest are plain names. Tinker's
cookbook is such a loop, whose "env/all/" holds means over the rollouts of a batch, and so is NeMo
RL's.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    reward,
    throughput,
)
from rlvitals.metrics.frameworks import generic
from rlvitals.metrics.frameworks.key import Family, Name, Table

HOW = generic.HOW
ROLLOUTS = "mean over the batch's rollouts"
TINKER = {
    "optim/lr": Name(optimiser.LEARNING_RATE),
    "optim/entropy": Name(exploration.ENTROPY, "minus the log-probability of sampled tokens"),
    "time/total": Name(throughput.STEP_TIME, "one batch, sampling included"),
    "env/all/ac_tokens_per_turn": Name(language.LENGTH_MEAN, ROLLOUTS),
    "env/all/by_group/frac_all_good": Name(reward.GROUP_ALL_RIGHT, "share of the groups"),
    "env/all/by_group/frac_all_bad": Name(reward.GROUP_ALL_WRONG, "share of the groups"),
    "env/all/reward/total": Name(outcome.REWARD, f"summed over an episode, {ROLLOUTS}"),
    "env/all/correct": Name(outcome.ACCURACY, ROLLOUTS),
    "test/env/all/correct": Name(outcome.EVAL_ACCURACY, "mean over the test set"),
}

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
        **TINKER,
        **NEMO,
        "train_answer_accuracy": Name(outcome.ACCURACY, HOW),
        "answer_accuracy": Name(outcome.ACCURACY, HOW),
        "batch_accuracy": Name(outcome.ACCURACY, HOW),
        "correctness": Name(outcome.ACCURACY, HOW),
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
        Family(r"env/all/(format)", Name(reward.COMPONENT, ROLLOUTS)),
        Family(r"(?:train_)?(format)_(?:accuracy|rate)", Name(reward.COMPONENT, HOW)),
    ),
    prefixes=generic.NAMES.prefixes,
    marks=(
        ("env/all/correct",),  # distillation earns no reward: it is judged by none
        ("mean_gen_tokens_per_sample", "reward"),
        ("reward/correctness",),
        ("reward/format",),
        ("answer_accuracy", "format_accuracy"),
        ("format_rate", "mean_reward"),
        ("mean_reward", "batch_accuracy"),
        ("mean_reward", "group_reward_std"),
    ),
    read_from="logs of public repositories that train language models with loops of their own;"
    " thinking-machines-lab/tinker-cookbook: tinker_cookbook/rl/train.py, rl/metric_util.py;"
    " NVIDIA-NeMo/RL: nemo_rl/algorithms/grpo.py",
)
