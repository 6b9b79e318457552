"""verifiers' RLTrainer: Hugging Face's Trainer fed by an orchestrator one batch ahead.

`trainer_state.json` holds the bare keys; trackers put "train/" before them. Values are means over
the steps since the previous row. Earlier versions had a GRPOTrainer with TRL's names.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    outcome,
    reward,
    rollouts,
    sampler,
    throughput,
)
from rlvitals.metrics.frameworks import hf_trainer
from rlvitals.metrics.frameworks.key import OVER_ALL_TRAINED_TOKENS, Family, Name, Table

ROLLOUT_MEAN = "mean over the rollouts of a step"
NAMES = Table(
    "verifiers",
    "verifiers RLTrainer",
    keys={
        **hf_trainer.TRAINER,
        # trainer.py, training_step; tokens whose ratio is out of a range are left out
        "importance_ratio": Name(sampler.RATIO_MEAN, OVER_ALL_TRAINED_TOKENS),
        "mismatch_kl": Name(sampler.KL, f"k3, {OVER_ALL_TRAINED_TOKENS}", estimator="k3"),
        "entropy": Name(exploration.ENTROPY, f"of the tempered softmax, {OVER_ALL_TRAINED_TOKENS}"),
        # orchestrator.py, generate_batch
        "reward": Name(outcome.REWARD, f"weighted sum of the rubric, {ROLLOUT_MEAN}"),
        "reward/std": Name(reward.STD, "over the rollouts of a step, not within groups"),
        "reward/num_turns": Name(rollouts.TURNS_MEAN, ROLLOUT_MEAN),
        "reward/total_tool_calls": Name(language.TOOL_CALLS, ROLLOUT_MEAN),
        "tokens/completion": Name(
            language.LENGTH_MEAN,
            "mean over calls of the model, replies of the environment included",
        ),
    },
    families=(
        # tool_env.py counts the calls of each tool beside the rewards.
        Family(r"reward/(\w+_calls)", Name(rollouts.STATISTIC)),
        Family(
            r"reward/(\w+)",
            Name(
                reward.COMPONENT,
                f"a function of the rubric, unweighted, {ROLLOUT_MEAN}",
            ),
        ),
        Family(r"timing/(.+)", Name(throughput.PHASE_TIME, ROLLOUT_MEAN)),
        Family(r"(advantage/absmean|tokens/masked_fraction)", Name(rollouts.STATISTIC)),
        Family(r"wall_clock/(generate)_s", Name(throughput.PHASE_TIME, "seconds of a batch")),
    ),
    settings={
        **hf_trainer.TRAINING_ARGUMENTS,
        "rollouts_per_example": "num_generations",
        "batch_size": "batch_size",
        "max_tokens": "max_completion_length",
        "temperature": "temperature",
    },
    sources=("trainer-state",),
    prefixes=("train/",),
    marks=(("mismatch_kl", "importance_ratio"), ("wall_clock/generate_s", "tokens/completion")),
    read_from="PrimeIntellect-ai/verifiers acb2209 (before a497ee5, which removed the trainer):"
    " packages/verifiers-rl/verifiers_rl/rl/trainer/trainer.py (training_step, compute_loss, log),"
    " orchestrator.py (generate_batch), config.py",
)
