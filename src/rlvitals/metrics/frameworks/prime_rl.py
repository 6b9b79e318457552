"""prime-rl: an orchestrator that collects rollouts, a trainer that updates, never in step.

Both write one row per step; before 0.5 into two runs. Three generations of names: `reward/mean`
(to 0.4), `reward/all/mean` (0.5, 0.6), `train/agg/all/<agent>/reward/mean` (since 0.7), where
"all" is every rollout that arrived and "effective" the batch that is trained on. Until 0.6 the
means are taken over a prompt's rollouts first, then over prompts.
"""

from collections.abc import Mapping

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    progress,
    reward,
    rollouts,
    sampler,
    surrogate,
    throughput,
)
from rlvitals.metrics.frameworks.key import OVER_ALL_TRAINED_TOKENS, Family, Name, Table
from rlvitals.metrics.metric import Metric

OVER_ARRIVED_ROLLOUTS = "mean over rollouts that arrived"


# What a rollout is measured by: name in the log -> mean, max, min; None where nothing is said.
ROLLOUT_METRICS: Mapping[str, tuple[Metric, Metric | None, Metric | None]] = {
    "reward": (outcome.REWARD, reward.MAX, reward.MIN),
    "seq_len": (
        rollouts.SEQUENCE_LENGTH_MEAN,
        rollouts.SEQUENCE_LENGTH_MAX,
        rollouts.SEQUENCE_LENGTH_MIN,
    ),
    "decode_len": (language.LENGTH_MEAN, language.LENGTH_MAX, language.LENGTH_MIN),
    "prefill_len": (
        language.QUERY_LENGTH_MEAN,
        rollouts.QUERY_LENGTH_MAX,
        rollouts.QUERY_LENGTH_MIN,
    ),
    "num_turns": (rollouts.TURNS_MEAN, rollouts.TURNS_MAX, rollouts.TURNS_MIN),
    "is_truncated": (language.TRUNCATED_SHARE, None, None),
}
TRACE_STATISTICS = ("mean", "max", "min")


def _flat(middle: str) -> dict[str, Name]:
    return {
        f"{key}/{middle}{statistic}": Name(
            metric, f"{statistic} over prompts, of the mean of a prompt's rollouts (0.3 to 0.6)"
        )
        for key, metrics in ROLLOUT_METRICS.items()
        for statistic, metric in zip(TRACE_STATISTICS, metrics, strict=True)
        if metric is not None
    }


def _by_agent() -> tuple[Family, ...]:
    return tuple(
        Family(
            rf"train/agg/all/[^/]+/{key}/{statistic}",
            Name(metric, f"{statistic} over all rollouts that arrived, of one agent"),
        )
        # Since 0.7: orchestrator/metrics.py, one value per trace.
        for key, metrics in {
            "reward": (outcome.REWARD, reward.MAX, reward.MIN),
            "num_total_tokens": ROLLOUT_METRICS["seq_len"],
            "num_output_tokens": ROLLOUT_METRICS["decode_len"],
            "num_input_tokens": ROLLOUT_METRICS["prefill_len"],
            "num_turns": ROLLOUT_METRICS["num_turns"],
            "is_truncated": ROLLOUT_METRICS["is_truncated"],
            "has_error": (rollouts.ERROR_SHARE, None, None),
            "cancelled": (rollouts.CANCELLED_SHARE, None, None),
        }.items()
        for statistic, metric in zip(TRACE_STATISTICS, metrics, strict=True)
        if metric is not None
    )


EVALUATION_TASK = Name(outcome.EVAL_TASK, "avg@k is the mean of k rollouts, pass@k the best of k")
TASK = Name(outcome.TASK_REWARD, OVER_ARRIVED_ROLLOUTS)

NAMES = Table(
    "prime-rl",
    "prime-rl",
    keys={
        # trainer/rl/train.py, train; trainer/rl/loss.py, default_loss_fn
        "loss/mean": Name(optimiser.LOSS, "mean over microbatches, each a share of the token mean"),
        "entropy/mean": Name(
            exploration.ENTROPY, f"of the tempered softmax, {OVER_ALL_TRAINED_TOKENS}"
        ),
        "entropy/all/mean": Name(
            exploration.ENTROPY, f"of the tempered softmax, {OVER_ALL_TRAINED_TOKENS}"
        ),
        "entropy/all": Name(
            exploration.ENTROPY, f"of the tempered softmax, {OVER_ALL_TRAINED_TOKENS}"
        ),
        "mismatch_kl/all": Name(sampler.KL, f"k3, {OVER_ALL_TRAINED_TOKENS}", estimator="k3"),
        "mismatch_kl/mean": Name(sampler.KL, f"k3, {OVER_ALL_TRAINED_TOKENS}", estimator="k3"),
        "mismatch_kl/all/mean": Name(sampler.KL, f"k3, {OVER_ALL_TRAINED_TOKENS}", estimator="k3"),
        "is_masked/mean": Name(
            surrogate.MASKED_SHARE,
            "mean over sequences of the token mean; since 0.6 only where the advantage pushes"
            " outwards",
        ),
        "is_masked_low/mean": Name(surrogate.MASKED_SHARE_LOW, "mean over sequences"),
        "is_masked_high/mean": Name(surrogate.MASKED_SHARE_HIGH, "mean over sequences"),
        "max_vio/mean": Name(optimiser.EXPERT_IMBALANCE, "mean over layers and microbatches"),
        "optim/lr": Name(optimiser.LEARNING_RATE, "after the step"),
        "optim/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
        "perf/throughput": Name(
            throughput.TOKENS_PER_SECOND, "packed tokens, padding included, of the update alone"
        ),
        "perf/throughput_per_gpu": Name(
            throughput.TOKENS_PER_SECOND_PER_DEVICE, "packed tokens, padding included"
        ),
        "val/loss": Name(optimiser.EVAL_LOSS, "supervised"),
        # orchestrator/orchestrator.py
        "time/step": Name(throughput.STEP_TIME, "one step of the trainer or of the orchestrator"),
        "progress/total_tokens": Name(throughput.TOKENS, "since the start"),
        "progress/num_tokens": Name(throughput.TOKENS, "since the start, supervised"),
        "progress/tokens": Name(progress.TOKENS_NEW, "of the rollouts that arrived"),
        "progress/epoch": Name(progress.EPOCH),
        "error/mean": Name(rollouts.ERROR_SHARE, "over rollouts"),
        "batch/solve_none": Name(reward.GROUP_ALL_WRONG),
        "batch/solve_all": Name(reward.GROUP_ALL_RIGHT),
        "solve_none/all": Name(reward.GROUP_ALL_WRONG),
        "solve_all/all": Name(reward.GROUP_ALL_RIGHT),
        "batch/off_policy_level/mean": Name(optimiser.POLICY_LAG, "of rollouts in flight"),
        "batch/off_policy_level/max": Name(optimiser.POLICY_LAG_MAX, "of rollouts in flight"),
        "off_policy_level/all/mean": Name(optimiser.POLICY_LAG, "of rollouts in flight"),
        "off_policy_level/all/max": Name(optimiser.POLICY_LAG_MAX, "of rollouts in flight"),
        "off_policy/mean": Name(optimiser.POLICY_LAG, "of the batch that is trained on"),
        "off_policy/max": Name(optimiser.POLICY_LAG_MAX, "of the batch that is trained on"),
        "dispatcher/off_policy/mean": Name(optimiser.POLICY_LAG, "of rollouts in flight"),
        "dispatcher/off_policy/max": Name(optimiser.POLICY_LAG_MAX, "of rollouts in flight"),
        "watcher/policy_version": Name(sampler.VERSION, "that rollouts use; watcher.py"),
        "val_reward/mean": Name(outcome.EVAL_REWARD, "validation set"),
        "val/reward/all/mean": Name(outcome.EVAL_REWARD, "validation set"),
        **_flat(""),
        **_flat("all/"),
    },
    families=(
        *_by_agent(),
        Family(
            r"train/agg/effective/[^/]+/reward/mean",
            Name(reward.TRAINED_MEAN, "mean over the batch that is trained on, of one agent"),
        ),
        Family(r"train/agg/all/[^/]+/solved_none", Name(reward.GROUP_ALL_WRONG, "every sum is 0")),
        Family(
            r"train/agg/all/[^/]+/solved_all", Name(reward.GROUP_ALL_RIGHT, "every reward is 1")
        ),
        Family(
            r"train/agg/all/[^/]+/rewards/(.+)/mean", Name(reward.COMPONENT, OVER_ARRIVED_ROLLOUTS)
        ),
        Family(r"train/(?!agg/)(.+)/all/[^/]+/reward/mean", TASK),
        Family(r"reward/(?!all/)(.+)/mean", TASK),
        Family(r"reward/((?!all/|mean$|max$|min$|std$)[^/]+)", TASK),
        Family(r"eval/(.+/(?:avg|pass)@\d+)", EVALUATION_TASK),
        Family(
            r"val(?:_reward|/reward)/((?!all/|mean$|max$|min$)[^/]+)(?:/mean)?", EVALUATION_TASK
        ),
        Family(r"off_policy/(dropped)", Name(rollouts.DROPPED, "too old, since the previous row")),
        Family(
            r"train/agg/(?:all|effective)/[^/]+/stop_condition/(.+)",
            Name(rollouts.STOP_REASON, "share of the rollouts"),
        ),
        Family(
            r"train/agg/(?:all|effective)/[^/]+/error/(.+)",
            Name(rollouts.ERRORS, "share of the rollouts"),
        ),
        Family(r"dispatcher/errored/(.+)", Name(rollouts.ERRORS, "of this step")),
        Family(r"dispatcher/cancelled/(.+)", Name(rollouts.DROPPED, "of this step")),
        Family(r"ref_kl/(.+)", Name(surrogate.LOSS_WEIGHT, OVER_ALL_TRAINED_TOKENS)),
        Family(
            r"(?:entropy|mismatch_kl)/(?!all|mean|max|min|std)([^/]+)(?:/mean)?",
            Name(surrogate.LOSS_WEIGHT, "of one environment"),
        ),
        Family(r"(routing_confidence/.+)", Name(sampler.ROUTING)),
        Family(r"(event_loop_lag/.+)", Name(throughput.PHASE_TIME, "seconds of the event loop")),
        Family(r"(system/ckpt_disk_\w+)", Name(throughput.DATA_SIZE)),
        Family(r"(off_policy/in_(?:flight|queue)/.+)", Name(rollouts.COUNT, "updates of lag")),
        Family(
            r"((?:loss/nan|watcher/update)_count|dispatcher/(?:inflight|queued)/.+|pool/unseen"
            r"|eval/.+/policy_version|progress/(?:[\w]+_)?(?:tokens|samples|rollouts|tasks))",
            Name(rollouts.COUNT),
        ),
        Family(r"((?:loss|val)/perplexity|kl_ent_ratio/.+)", Name(sampler.PERPLEXITY)),
        Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
        Family(r"(perf)/mfu", Name(throughput.MFU, "logged in per cent", scale=0.01)),
        Family(r"perf/(peak_memory)", Name(throughput.MEMORY, "reserved on the first process")),
    ),
    other_prefixes=(
        "concurrency|curriculum|dispatcher|gate|inference|pool|progress|off_policy|watcher|system"
    ),
    settings={
        "model/name": "model",
        "max_steps": "total_steps",
        "optim/lr": "learning_rate",
        "optim/weight_decay": "weight_decay",
        "optim/max_norm": "max_grad_norm",
        "loss/type": "loss_type",
        "batch_size": "batch_size",
        "group_size": "num_generations",
        "rollouts_per_example": "num_generations",
        "max_off_policy_steps": "max_policy_lag",
        "seed": "seed",
        "sampling/max_tokens": "max_completion_length",
        "sampling/temperature": "temperature",
        "train/sampling/max_completion_tokens": "max_completion_length",
        "train/sampling/temperature": "temperature",
    },
    settings_under=r"(?:trainer|orchestrator)/",
    sources=(),
    marks=(
        ("optim/lr", "loss/mean"),
        # Excerpts: what no other framework names so.
        ("mismatch_kl/all",),
        ("mismatch_kl/all/mean",),
        ("optim/lr", "perf/mfu"),
        ("reward/mean", "seq_len/mean"),
        ("reward/all/mean", "seq_len/all/mean"),
        ("progress/total_tokens", "progress/tokens"),
    ),
    read_from="PrimeIntellect-ai/prime-rl 559b447 (after v0.8.0), v0.3.0 to v0.8.0:"
    " src/prime_rl/trainer/rl/train.py (train), trainer/rl/loss.py (default_loss_fn,"
    " compute_importance_ratio_and_mismatch_kl), trainer/utils.py (Tensors.compute_stats),"
    " orchestrator/orchestrator.py, orchestrator/metrics.py (TraceMetrics, TrainMetrics,"
    " EvalMetrics), trainer/sft/train.py (train)",
)
