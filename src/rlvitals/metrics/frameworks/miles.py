"""miles: slime with asynchronous rollouts, adapters and staleness of its own."""

from dataclasses import replace

from rlvitals.metrics.catalogue import (
    language,
    optimiser,
    reward,
    rollouts,
    sampler,
    throughput,
)
from rlvitals.metrics.frameworks import slime
from rlvitals.metrics.frameworks.key import Family, Name

NAMES = replace(
    slime.NAMES,
    framework="miles",
    title="miles",
    keys={
        **slime.NAMES.keys,
        # utils/metric_utils.py; ray/rollout; backends/training_utils/loss.py
        "train/train_rollout_kl": Name(sampler.KL, slime.TOKENS_THEN_SAMPLES),
        "train/ess_ratio": Name(sampler.ESS),
        "rollout/weight_version/mixed_version_ratio": Name(sampler.MIXED_VERSIONS),
        "weight_version/mixed_version_ratio": Name(sampler.MIXED_VERSIONS),
        "rollout/avg_staleness": Name(optimiser.POLICY_LAG, "versions, over the batch"),
        "rollout/max_staleness": Name(optimiser.POLICY_LAG_MAX, "versions, over the batch"),
        "rollout/zero_std/all_one_percentage": Name(reward.GROUP_ALL_RIGHT, "share of groups"),
        "rollout/zero_std/all_zero_percentage": Name(reward.GROUP_ALL_WRONG, "share of groups"),
        "zero_std/all_one_percentage": Name(reward.GROUP_ALL_RIGHT, "share of groups"),
        "zero_std/all_zero_percentage": Name(reward.GROUP_ALL_WRONG, "share of groups"),
        "raw_response_length/response_length_mean": Name(
            language.LENGTH_MEAN, "before cuts, tool output included", again=True
        ),
        "raw_response_length/response_length_clip_ratio": Name(language.TRUNCATED_SHARE),
    },
    families=(
        Family(r"(?:rollout/)?error_cat/(.+)", Name(rollouts.ERRORS, "share of the samples")),
        Family(r"eval/(.+)-none_reward_ratio", Name(rollouts.ERRORS, "share")),
        Family(r"(eval/(?:lag_steps|skipped_.+))", Name(rollouts.COUNT)),
        *slime.NAMES.families,
        Family(r"(?:.+/)?perf/(?:.+/)?(stale_dropped)", Name(rollouts.DROPPED, "too old")),
        Family(r"(?:rollout/)?(\w*(?:aborted|stale)_groups_filtered)", Name(rollouts.DROPPED)),
        Family(r"(?:rollout/)?(?:zero_std)/count_(.+)", Name(reward.GROUP_ZERO_STD_COUNT)),
        Family(r"perf/(cpu_memory_\w+)_gb", Name(throughput.MEMORY)),
        Family(r"perf/(actor_train)_mfu", Name(throughput.MFU)),
        Family(r"dashboard/(.+)", Name(throughput.MACHINE)),
        Family(r"multi_turn_metric/round_number_mean", Name(rollouts.TURNS_MEAN)),
        Family(r"multi_turn_metric/round_number_max", Name(rollouts.TURNS_MAX)),
        Family(r"multi_turn_metric/round_number_min", Name(rollouts.TURNS_MIN)),
    ),
    other_prefixes=rf"perf|{slime.NAMES.other_prefixes}",
    marks=(
        ("train/train_rollout_kl",),
        ("train/ess_ratio",),
        ("rollout/weight_version/mixed_version_ratio",),
        ("rollout/avg_staleness",),
        ("rollout/zero_std/all_one_percentage",),
        ("perf/actor_train_mfu",),
        ("weight_version/mixed_version_ratio",),
    ),
    read_from="radixark/miles 31f1ca9: miles/utils/train_metric_utils.py, miles/ray/rollout,"
    " miles/backends/training_utils; the rest is slime's",
)
