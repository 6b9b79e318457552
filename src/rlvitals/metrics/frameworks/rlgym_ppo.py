"""rlgym-ppo: PPO for RLGym, as commit 4ffd2e9 of 2025 reports it.

A report an iteration, printed and sent to Weights & Biases under the same names. The step counts
the timesteps of all agents. The first value loss is NaN by design, and so is the reward until an
episode has ended.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import OVER_ALL_MINIBATCHES, Family, Name, Table

NAMES = Table(
    "rlgym-ppo",
    "rlgym-ppo",
    keys={
        # batched_agents/batched_agent_manager.py, _collect_response
        "Policy Reward": Name(
            outcome.RETURN,
            "moving average over the agents' episodes, each of weight 0.1",
            window=19,  # episodes: 2 / 0.1 - 1
        ),
        # ppo/ppo_learner.py, learn
        "Policy Entropy": Name(
            exploration.ENTROPY,
            f"positive; mean over the branches of several discrete actions; {OVER_ALL_MINIBATCHES}",
        ),
        "Mean KL Divergence": Name(policy.APPROX_KL, f"k3, {OVER_ALL_MINIBATCHES}", estimator="k3"),
        "SB3 Clip Fraction": Name(
            policy.CLIP_FRACTION, f"|ratio - 1| > clip range, {OVER_ALL_MINIBATCHES}"
        ),
        "Value Function Loss": Name(
            value.LOSS,
            f"squared error, returns scaled if standardize_returns; {OVER_ALL_MINIBATCHES}",
        ),
        "Cumulative Model Updates": Name(optimiser.UPDATES, "gradient steps"),
        # learner.py, _learn
        "Cumulative Timesteps": Name(progress.STEPS, "of all agents"),
        "Timesteps Collected": Name(progress.STEPS_NEW, "of this iteration, of all agents"),
        "Collected Steps per Second": Name(
            throughput.SAMPLER_RATE, "timesteps of all agents, while collecting"
        ),
        "Overall Steps per Second": Name(
            throughput.STEPS_PER_SECOND, "of this iteration, timesteps of all agents"
        ),
        "Total Iteration Time": Name(throughput.STEP_TIME, "seconds of one iteration"),
    },
    families=(
        Family(
            r"(Timestep Collection|Timestep Consumption|PPO Batch Consumption) Time",
            Name(throughput.PHASE_TIME, "seconds; of a batch: mean over the iteration's"),
        ),
    ),
    settings={
        "timestep_limit": "total_steps",
        "ts_per_iteration": "batch_size",
        "ppo_batch_size": "minibatch_size",  # of one gradient step: `ppo_minibatch_size` splits it
        "ppo_epochs": "n_epochs",
        "ppo_ent_coef": "entropy_coef",
        "ppo_clip_range": "clip_range",
        "gae_gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "policy_lr": "learning_rate",
        "n_proc": "n_envs",
        "random_seed": "seed",
    },
    step_unit="agent steps",
    marks=(("Policy Reward", "Cumulative Timesteps"), ("Mean KL Divergence", "SB3 Clip Fraction")),
    read_from="AechPro/rlgym-ppo 4ffd2e9: rlgym_ppo/learner.py (_learn), ppo/ppo_learner.py"
    " (learn), batched_agents/batched_agent_manager.py, util/reporting.py (report_metrics)",
)
