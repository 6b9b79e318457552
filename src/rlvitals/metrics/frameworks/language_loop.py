"""Names in loops that people write themselves to train language models by reward.

A log is taken for one only where a key says that responses are written or graded: their length, a
reward's part for right answers or their form, accuracy of answers beside format, groups of one
prompt; or where the file is named after such an algorithm and no other framework knows its keys.
The rest are plain names. Tinker's cookbook is such a loop, whose "env/all/" holds means over the
rollouts of a batch, and so is NeMo RL's.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    outcome,
    policy,
    reward,
    rollouts,
)
from rlvitals.metrics.frameworks import generic
from rlvitals.metrics.frameworks.generic import AS_MEASURED
from rlvitals.metrics.frameworks.key import Family, Name, Table

LOOP_ALIASES = (
    (outcome.ACCURACY, ("train_answer_accuracy", "answer_accuracy", "batch_accuracy", "acc",
                        "train_acc", "train_accuracy", "mean_accuracy", "accuracy_mean",
                        "correctness", "correct", "correct_rate", "exact_match", "solve_rate",
                        "correct_answer_rate")),
    (outcome.EVAL_ACCURACY, ("eval_acc", "val_acc", "test_acc", "test_accuracy", "eval/accuracy",
                             "eval/acc", "val/accuracy", "test/accuracy", "heldout_accuracy",
                             "held_out_accuracy", "eval_correct_rate", "eval_pass@1")),
    (outcome.REWARD, ("train_reward", "mean_reward", "average_reward", "reward", "reward/total",
                      "rewards_mean", "mean_rewards", "reward_avg", "total_reward",
                      # Functions of these names are the sum, where no other key is.
                      "rewards/reward/mean", "rewards/total/mean", "rewards/total_reward/mean")),
    (reward.STD, ("std_reward", "rewards_std", "reward_stdev")),
    (reward.GROUP_STD, ("group_reward_std", "group_std", "mean_group_std")),
    (reward.GROUP_ZERO_STD, ("frac_zero_std", "zero_std_frac", "zero_std_ratio",
                             "frac_zero_variance", "zero_variance_frac")),
    (exploration.ENTROPY, ("token_entropy", "mean_entropy", "avg_entropy", "entropy_mean")),
    (policy.KL_TO_REFERENCE_PER_TOKEN, ("kl", "kl_div", "kl_divergence", "kl_mean", "mean_kl",
                                        "avg_kl", "kl_avg", "kl_ref", "ref_kl", "kl_to_ref")),
    (policy.ADVANTAGE_STD, ("adv_std",)),
    (policy.ADVANTAGE_MEAN, ("adv_mean", "mean_advantage")),
    (language.LENGTH_MEAN, ("avg_len", "mean_len", "len_mean")),
    (language.TRUNCATED_SHARE, ("truncation_rate", "truncated_rate", "clipped_rate")),
)  # fmt: skip
MEAN_WORD = r"(?:(?:mean|avg|average)_)?"
LENGTH_KEY = (
    rf"(?:train_)?{MEAN_WORD}(?:completion|response|generation|gen|output)s?_(?:token_)?"
    r"(?:len|length|lengths|tokens)(?:_(?:mean|avg))?"
)
PART_KEYS = (  # "reward_format_reward_func", "rewards/format_reward", "mean_format_reward"
    rf"rewards?(?:_|\.|/)((?!(?:{generic.STATISTIC_WORDS})\Z)\w+_(?:reward|func|fn))(?:[/_.]mean)?",
    (
        rf"{MEAN_WORD}((?:format|correct|accura|answer|tool|json|xml|citation|reasoning|judge)\w*"
        r"_rewards?)(?:[/_]mean)?"
    ),
)

NAMES = Table(
    "language-loop",
    "hand-written loops around a language model",
    loose=True,
    keys={
        # NeMo RL's, without the "train/" before them
        "approx_entropy": Name(exploration.ENTROPY, "estimated from sampled tokens"),
        "mean_gen_tokens_per_sample": Name(language.LENGTH_MEAN, "mean over the batch's rollouts"),
        "validation/accuracy": Name(outcome.EVAL_ACCURACY, "mean over the validation set"),
        **{key: Name(metric, AS_MEASURED) for metric, keys in LOOP_ALIASES for key in keys},
    },
    families=(
        *(Family(pattern, Name(reward.COMPONENT, AS_MEASURED)) for pattern in PART_KEYS),
        Family(LENGTH_KEY, Name(language.LENGTH_MEAN, AS_MEASURED)),
        Family(
            rf"reward/((?!(?:{generic.STATISTIC_WORDS})\Z)[^/]+)",
            Name(reward.COMPONENT, AS_MEASURED),
        ),
        Family(r"(?:train_)?(format)_(?:accuracy|rate)", Name(reward.COMPONENT, AS_MEASURED)),
        Family(r"(fmt|format)", Name(reward.COMPONENT, AS_MEASURED)),
        # DAPO's: groups that are drawn until enough of them differ
        Family(r"(dynamic_sampling_\w+)", Name(rollouts.COUNT, AS_MEASURED)),
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
        ("grpo_iter",),  # aburkov/theLMbook's loop, and its many copies
        *((total, kl) for total in ("reward", "mean_reward") for kl in ("kl_ref", "ref_kl")),
    ),
    # TRL's families, in a table that its callback or a person wrote.
    mark_pattern=rf"{LENGTH_KEY}|{'|'.join(PART_KEYS)}|rewards/[^/]+/(?:mean|std)"
    r"|dynamic_sampling_\w+",
    read_from="logs of public repositories that train language models with loops of their own;"
    " NVIDIA-NeMo/RL: nemo_rl/algorithms/grpo.py",
)
