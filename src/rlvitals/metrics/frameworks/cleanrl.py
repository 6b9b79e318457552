"""CleanRL: single-file scripts that log to TensorBoard, as commit fe8d8a03 of 2026 writes them.

The step is `global_step`: environment steps over all environments. `charts/episodic_return` is
written when an episode ends, one point each. `eval/episodic_return` is left out: it is written
after training, and its step is the number of the evaluation episode.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, throughput, value
from rlvitals.metrics.frameworks.key import Family, Name, Table

LAST_MINIBATCH = "the last minibatch of the last epoch alone"
EPISODE_END = "each episode as it ends"

NAMES = Table(
    "cleanrl",
    "CleanRL",
    keys={
        # Every script.
        "charts/episodic_return": Name(outcome.RETURN, EPISODE_END),
        "charts/episodic_length": Name(outcome.EPISODE_LENGTH, EPISODE_END),
        "charts/avg_episodic_return": Name(
            outcome.RETURN,
            "envpool: mean of the last 20 episodes; with XLA: of each environment's last one",
            window=20,
        ),
        "charts/avg_episodic_length": Name(
            outcome.EPISODE_LENGTH, "mean of each environment's last episode"
        ),
        "charts/SPS": Name(
            throughput.STEPS_PER_SECOND, "cumulative: all steps over all time since the start"
        ),
        "charts/SPS_update": Name(throughput.LEARNER_RATE, "one iteration, collecting included"),
        "charts/learning_rate": Name(optimiser.LEARNING_RATE),
        # ppo*.py, rpo_continuous_action.py, ppg_procgen.py
        "losses/value_loss": Name(
            value.LOSS, f"half the squared error, clipped if clip_vloss; {LAST_MINIBATCH}"
        ),
        "losses/policy_loss": Name(policy.LOSS, f"clipped surrogate; {LAST_MINIBATCH}"),
        "losses/entropy": Name(exploration.ENTROPY, f"positive; {LAST_MINIBATCH}"),
        "losses/old_approx_kl": Name(
            policy.KL_SIGNED, f"k1, may be negative; {LAST_MINIBATCH}", estimator="k1"
        ),
        "losses/approx_kl": Name(policy.APPROX_KL, f"k3; {LAST_MINIBATCH}", estimator="k3"),
        "losses/clipfrac": Name(
            policy.CLIP_FRACTION, "|ratio - 1| > clip_coef, mean over all epochs"
        ),
        "losses/explained_variance": Name(
            value.EXPLAINED_VARIANCE, "values of the rollout, before the update"
        ),
        "losses/loss": Name(
            optimiser.LOSS,
            "PPO: total loss, the last minibatch; C51: cross-entropy of the return distributions",
        ),
        "charts/entropy_coefficient": Name(exploration.ENTROPY_COEF),
        # ppo_trxl/ppo_trxl.py
        "episode/r_mean": Name(outcome.RETURN, "mean over the rollout's finished episodes"),
        "episode/l_mean": Name(outcome.EPISODE_LENGTH, "mean over the rollout's finished episodes"),
        "episode/value_mean": Name(value.MEAN, "over the rollout"),
        "episode/advantage_mean": Name(policy.ADVANTAGE_MEAN, "over the rollout, not whitened"),
        # dqn*.py, pqn*.py, rainbow_atari.py: every 100 steps
        "losses/td_loss": Name(
            value.LOSS, "squared error of one batch; Rainbow: weighted cross-entropy"
        ),
        "losses/q_values": Name(value.Q_MEAN, "of the batch's own actions; C51: expected values"),
        "charts/epsilon": Name(exploration.EPSILON),
        # sac_*.py, td3_*.py, ddpg_*.py: every 100 steps, one batch
        "losses/qf1_loss": Name(value.LOSS, "squared error of the first critic"),
        "losses/qf1_values": Name(value.Q_MEAN, "first critic, of the batch's own actions"),
        "losses/actor_loss": Name(policy.ACTOR_LOSS, "one batch"),
        "losses/alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "losses/alpha_loss": Name(exploration.ENTROPY_COEF_LOSS),
    },
    families=(
        Family(r"losses/(qf2?)_loss", Name(value.CRITIC_LOSS, "qf: mean of both critics")),
        Family(r"losses/(qf2)_values", Name(value.CRITIC_Q, "of the batch's own actions")),
        Family(
            r"losses/(fwd|distill|reconstruction)_loss", Name(optimiser.LOSS_PART, LAST_MINIBATCH)
        ),
        Family(r"losses/aux/(\w+)_loss", Name(optimiser.LOSS_PART, "PPG: auxiliary phase")),
        Family(r"charts/episodic_return-(player\d+)", Name(outcome.AGENT_RETURN, EPISODE_END)),
    ),
    settings={
        "env_id": "env_id",
        "seed": "seed",
        "total_timesteps": "total_steps",
        "learning_rate": "learning_rate",
        "num_envs": "n_envs",
        "num_steps": "n_steps",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "num_minibatches": "n_minibatches",
        "update_epochs": "n_epochs",
        "clip_coef": "clip_range",
        "ent_coef": "entropy_coef",
        "vf_coef": "value_coef",
        "max_grad_norm": "max_grad_norm",
        "target_kl": "target_kl",
        "batch_size": "batch_size",  # DQN, SAC, TD3: of one gradient step
        "minibatch_size": "minibatch_size",
        "buffer_size": "buffer_size",
        "learning_starts": "learning_starts",
        "tau": "tau",
        "target_network_frequency": "target_update_interval",
        "end_e": "epsilon_final",
        "exploration_fraction": "exploration_fraction",
        "policy_lr": "learning_rate",  # sac_*.py: the actor's; q_lr is the critics'
    },
    step_unit="environment steps",
    read_from="vwxyzjn/cleanrl fe8d8a03: cleanrl/ppo.py, ppo_continuous_action.py,"
    " ppo_atari_envpool.py, ppo_atari_envpool_xla_jax.py, ppo_rnd_envpool.py, ppo_trxl/ppo_trxl.py,"
    " ppg_procgen.py, dqn.py, c51.py, rainbow_atari.py, pqn.py, sac_continuous_action.py,"
    " td3_continuous_action.py, ddpg_continuous_action.py (main loop)",
)
