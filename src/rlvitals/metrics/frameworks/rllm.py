"""rllm: agents on verl or on Tinker; one row per training step.

Its verl backend logs verl's names too, its Tinker backend Tinker's. Where agents have roles, a role
stands between the first word and the statistic ("advantage/solver/mean").
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    reward,
    rollouts,
    sampler,
    surrogate,
    throughput,
)
from rlvitals.metrics.frameworks import tinker, verl
from rlvitals.metrics.frameworks.key import OVER_RESPONSE_TOKENS, Family, Name, Table

NAMES = Table(
    "rllm",
    "rllm",
    keys={
        **verl.NAMES.keys,
        **tinker.NAMES.keys,
        # trainer/algorithms, trainer/*_backend
        "batch/solve_none": Name(reward.GROUP_ALL_WRONG, "share of the batch's tasks"),
        "batch/solve_all": Name(reward.GROUP_ALL_RIGHT, "share of the batch's tasks"),
        "batch/solve_partial": Name(reward.GROUP_ZERO_STD, "what the other two leave", again=True),
        "episode/correct": Name(outcome.ACCURACY, "mean over episodes"),
        "episode/num_turns": Name(rollouts.TURNS_MEAN, "mean over episodes"),
        "episode/response_tokens": Name(language.LENGTH_MEAN, "mean over episodes"),
        "episode/prompt_tokens": Name(language.QUERY_LENGTH_MEAN, "mean over episodes"),
        # transform.py of both backends: turns with a common beginning are merged into one row
        "batch/step_response_length/mean": Name(
            language.LENGTH_MEAN, "of a training row, tool results included, mean over rows"
        ),
        "batch/step_response_length/max": Name(language.LENGTH_MAX, "tool results included"),
        "batch/step_response_length/min": Name(language.LENGTH_MIN, "tool results included"),
        "batch/steps_per_traj/mean": Name(rollouts.ROWS_PER_TRAJECTORY, "mean over trajectories"),
        "batch/merge_compression_ratio": Name(rollouts.TURNS_PER_ROW, "of the batch"),
        "batch/action_token_ratio/mean": Name(rollouts.POLICY_TOKEN_SHARE, "mean over rows"),
        "env/all/ac_tokens_per_trajectory": Name(
            rollouts.POLICY_TOKENS_MEAN, "summed over turns, mean over trajectories"
        ),
        # experimental/fully_async/utils.py
        "rejection_sample/unfiltered_reward_mean": Name(
            outcome.REWARD, "mean over trajectories, before groups are rejected"
        ),
        "rejection_sample/unfiltered_reward_std": Name(reward.STD, "before groups are rejected"),
        "rejection_sample/unfiltered_reward_max": Name(reward.MAX, "before groups are rejected"),
        "rejection_sample/unfiltered_reward_min": Name(reward.MIN, "before groups are rejected"),
        "rejection_sample/filtered_reward_mean": Name(
            reward.TRAINED_MEAN, "mean over trajectories of the groups kept"
        ),
        "reward/mean": Name(outcome.REWARD, "mean over trajectories"),
        "reward/std": Name(reward.STD, "over trajectories"),
        "reward/max": Name(reward.MAX, "over trajectories"),
        "reward/min": Name(reward.MIN, "over trajectories"),
        "advantage/mean": Name(policy.ADVANTAGE_MEAN),
        "advantage/std": Name(policy.ADVANTAGE_STD),
        "advantage/max": Name(surrogate.ADVANTAGE_MAX),
        "advantage/min": Name(surrogate.ADVANTAGE_MIN),
        "advantage/fraction_zero": Name(surrogate.ADVANTAGE_ZERO_SHARE),
        "async/staleness_mean": Name(optimiser.POLICY_LAG, "versions behind, over groups"),
        "async/staleness_max": Name(optimiser.POLICY_LAG_MAX, "versions behind, over groups"),
        "async/weight_version": Name(sampler.VERSION),
        "async/trainer_idle_ratio": Name(throughput.WAIT_SHARE),
        "train/entropy": Name(exploration.ENTROPY, OVER_RESPONSE_TOKENS),
        "train/kl_sample_train_v1": Name(sampler.KL_SIGNED, "k1", estimator="k1"),
        "train/kl_sample_train_v2": Name(sampler.KL, "k2", estimator="k2"),
        "val/avg_reward": Name(outcome.EVAL_REWARD, "validation set"),
        "test/loss": Name(optimiser.EVAL_LOSS),
        "progress/lr": Name(optimiser.LEARNING_RATE),
        **{
            f"offpolicy/{key}": name
            for key, name in {  # verl's, under a name of its own
                "kl": Name(sampler.KL_SIGNED, f"k1, {OVER_RESPONSE_TOKENS}", estimator="k1"),
                "k3_kl": Name(sampler.KL, f"k3, {OVER_RESPONSE_TOKENS}", estimator="k3"),
                "chi2_token": Name(sampler.CHI2_TOKEN),
                "chi2_seq": Name(sampler.CHI2_SEQUENCE),
                "logprob_abs_diff/mean": Name(sampler.LOGP_DIFFERENCE_MEAN, OVER_RESPONSE_TOKENS),
                "logprob_abs_diff/max": Name(sampler.LOGP_DIFFERENCE_MAX),
                "prob_abs_diff/mean": Name(sampler.PROB_DIFFERENCE_MEAN, OVER_RESPONSE_TOKENS),
                "prob_abs_diff/max": Name(sampler.PROB_DIFFERENCE_MAX),
                "prob_pearson_corr": Name(sampler.PROB_CORRELATION),
                "ratio/mean": Name(sampler.RATIO_MEAN, OVER_RESPONSE_TOKENS),
                "ratio/max": Name(sampler.RATIO_MAX),
                "ratio/min": Name(sampler.RATIO_MIN),
            }.items()
        },
    },
    families=(
        Family(r"(?:batch|episode)/termination_reason/(.+)", Name(rollouts.STOP_REASON, "share")),
        Family(r"test/mean_nll", Name(optimiser.EVAL_LOSS)),
        Family(r"((?:optim|train)/perplexity)", Name(sampler.PERPLEXITY)),
        Family(r"val/distill/(\w+)", Name(surrogate.DISTILLATION, "of the validation")),
        Family(r"val/(.+/pass@\w+)", Name(outcome.EVAL_TASK, "validation set")),
        Family(r"reward/([^/]+)/mean", Name(outcome.TASK_REWARD, "of one role")),
        Family(r"reward/([^/]+)/(?:std|max|min)", Name(reward.COMPONENT_STD, "of one role")),
        # trainer/algorithms/advantage.py
        Family(
            r"batch/([^/]+/fractions/(?:effective|too_easy|too_hard))", Name(reward.GROUP_SHARE)
        ),
        Family(r"(batch/[^/]+/informative)", Name(rollouts.COUNT, "groups whose rewards differ")),
        Family(
            r"(rejection_sample/all_filtered_fallback)",
            Name(rollouts.COUNT, "1 where no group was left, and one is trained on masked"),
        ),
        Family(r"groups/(dropped_\w+)", Name(rollouts.DROPPED, "of the step")),
        Family(r"offpolicy/(.*ppl.*|.*abs_diff/min)", Name(sampler.PERPLEXITY)),
        Family(r"(advantage/[^/]+/fraction_zero)", Name(rollouts.SHARE_OF, "of one role")),
        Family(r"(advantage/[^/]+/(?:max|min|std|mean))", Name(rollouts.EXTREME, "of one role")),
        Family(r"(?:advantage|offpolicy|rollout_correction)/(.+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"batch/(dropped_\w+)", Name(rollouts.DROPPED, "of the step")),
        *verl.NAMES.families,
        *tinker.NAMES.families,
    ),
    other_prefixes=r"batch|grouping|groups|rejection_sample|async|train|training|progress|actor"
    r"|fully_async/count|fully_async/partial|global_seqlen|val|episode|optim|test"
    rf"|env/all/by_episode|{verl.NAMES.other_prefixes}",
    settings={**verl.NAMES.settings, **tinker.NAMES.settings},
    prefixes=verl.NAMES.prefixes,
    marks=(
        ("batch/solve_partial",),
        ("episode/correct",),
        ("advantage/fraction_zero",),
        ("batch/num_tasks",),
        ("offpolicy/k3_kl",),
    ),
    step_unit="steps",
    read_from="rllm-org/rllm 9beb6e0: rllm/trainer (algorithms, tinker, verl, sync_coordinator),"
    " rllm/trainer/algorithms (transform.py, advantage.py), rllm/trainer/verl (transform.py,"
    " utils.py), rllm/trainer/tinker/transform.py, rllm/experimental/fully_async/utils.py",
)
