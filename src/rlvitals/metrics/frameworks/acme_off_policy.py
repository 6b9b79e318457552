"""Acme's learners with replay: DQN, R2D2, D4PG, TD3, SAC, MPO, as commit 770bc75e of 2026 logs."""

from rlvitals.metrics.catalogue import exploration, optimiser, policy, reward, throughput, value
from rlvitals.metrics.frameworks.acme import (
    COUNTERS,
    EVALUATION,
    EVALUATORS,
    LEARNERS,
    LOOP,
    LOOPS,
    READ_FROM,
    STEP,
    labelled,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

ONE = "the last gradient step"

LEARNER = {
    "total_loss": Name(optimiser.LOSS, f"DQN: Huber or cross-entropy, weighted, {ONE}"),
    "mean_loss": Name(optimiser.LOSS, f"DQN with an ensemble: {ONE}"),
    "loss": Name(optimiser.LOSS, f"R2D2, DQN in TensorFlow: {ONE}"),
    "critic_loss": Name(
        value.LOSS, f"SAC: half the squared error, both critics; D4PG: cross-entropy; {ONE}"
    ),
    "actor_loss": Name(policy.ACTOR_LOSS, f"SAC, {ONE}"),
    "policy_loss": Name(
        policy.ACTOR_LOSS, f"D4PG, TD3: half the squared gradient of Q by the action, {ONE}"
    ),
    "alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
    "alpha_loss": Name(exploration.ENTROPY_COEF_LOSS, ONE),
    "rewards_mean": Name(reward.MEAN, "of the replayed batch"),
    "rewards_std": Name(reward.STD, "of the replayed batch"),
    "steps_per_second": Name(throughput.UPDATES_PER_SECOND, "of this step"),
    # MPO
    "loss/loss": Name(optimiser.LOSS, f"MPO: total, {ONE}"),
    "loss/policy_loss": Name(policy.ACTOR_LOSS, f"MPO: weighted maximum likelihood, {ONE}"),
    "loss/critic_loss": Name(value.LOSS, f"MPO, {ONE}"),
    "opt/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
    "opt/param_norm": Name(optimiser.WEIGHT_NORM),
}

NAMES = Table(
    "acme-off-policy",
    "Acme, off-policy learners",
    keys={
        **labelled(COUNTERS, ("", *LEARNERS, *LOOPS)),
        **labelled(LOOP, LOOPS),
        **labelled(EVALUATION, EVALUATORS),
        **labelled(LEARNER, ("", *LEARNERS)),
    },
    families=(Family(r"(?:learner/)?(twin)_critic_loss", Name(value.CRITIC_LOSS, f"TD3: {ONE}")),),
    step_unit=STEP,
    read_from=f"{READ_FROM}agents/jax/dqn/learning_lib.py, losses.py, sac/learning.py,"
    " td3/learning.py, d4pg/learning.py, mpo/learning.py, r2d2/learning.py",
)
