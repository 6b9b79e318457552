"""Acme's learners with replay: DQN, R2D2, D4PG, TD3, SAC, MPO, as commit 770bc75e of 2026 logs."""

from rlvitals.metrics.catalogue import exploration, optimiser, policy, reward, throughput, value
from rlvitals.metrics.frameworks.acme import (
    ACME_READ_FROM,
    COUNTERS,
    EVALUATION_LOOP_KEYS,
    EVALUATORS,
    LEARNERS,
    LOOPS,
    TRAINING_LOOP_KEYS,
    add_labels,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

LAST_GRADIENT_STEP = "the last gradient step"


NAMES = Table(
    "acme-off-policy",
    "Acme, off-policy learners",
    keys={
        **add_labels(COUNTERS, ("", *LEARNERS, *LOOPS)),
        **add_labels(TRAINING_LOOP_KEYS, LOOPS),
        **add_labels(EVALUATION_LOOP_KEYS, EVALUATORS),
        **add_labels(
            {
                "total_loss": Name(
                    optimiser.LOSS, f"DQN: Huber or cross-entropy, weighted, {LAST_GRADIENT_STEP}"
                ),
                "mean_loss": Name(optimiser.LOSS, f"DQN with an ensemble: {LAST_GRADIENT_STEP}"),
                "loss": Name(optimiser.LOSS, f"R2D2, DQN in TensorFlow: {LAST_GRADIENT_STEP}"),
                "critic_loss": Name(
                    value.LOSS,
                    "SAC: half the squared error, both critics; D4PG: cross-entropy;"
                    f" {LAST_GRADIENT_STEP}",
                ),
                "actor_loss": Name(policy.ACTOR_LOSS, f"SAC, {LAST_GRADIENT_STEP}"),
                "policy_loss": Name(
                    policy.ACTOR_LOSS,
                    "D4PG, TD3: half the squared gradient of Q by the action,"
                    f" {LAST_GRADIENT_STEP}",
                ),
                "alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "alpha_loss": Name(exploration.ENTROPY_COEF_LOSS, LAST_GRADIENT_STEP),
                "rewards_mean": Name(reward.MEAN, "of the replayed batch"),
                "rewards_std": Name(reward.STD, "of the replayed batch"),
                "steps_per_second": Name(throughput.UPDATES_PER_SECOND, "of this step"),
                # MPO
                "loss/loss": Name(optimiser.LOSS, f"MPO: total, {LAST_GRADIENT_STEP}"),
                "loss/policy_loss": Name(
                    policy.ACTOR_LOSS, f"MPO: weighted maximum likelihood, {LAST_GRADIENT_STEP}"
                ),
                "loss/critic_loss": Name(value.LOSS, f"MPO, {LAST_GRADIENT_STEP}"),
                "opt/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
                "opt/param_norm": Name(optimiser.WEIGHT_NORM),
            },
            ("", *LEARNERS),
        ),
    },
    families=(
        Family(
            r"(?:learner/)?(twin)_critic_loss",
            Name(value.CRITIC_LOSS, f"TD3: {LAST_GRADIENT_STEP}"),
        ),
    ),
    step_unit="environment steps",
    read_from=f"{ACME_READ_FROM}agents/jax/dqn/learning_lib.py, losses.py, sac/learning.py,"
    " td3/learning.py, d4pg/learning.py, mpo/learning.py, r2d2/learning.py",
)
