"""Tianshou's on-policy algorithms: 0.5, 1.x and 2.x, as 2.0.1 computes them.

Collected and tested returns are written at environment steps, what an update reports at gradient
steps (since 2.0 at updates, and only every thousandth: a short run may hold none), and summaries
of an epoch ("info/...") at epochs: those are left out. So is the mean length of the episodes
collected since 1.0: it counts only those of their steps that are still in the buffer, and
on-policy algorithms empty it after each update.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, throughput, value
from rlvitals.metrics.frameworks.key import Family, Name, OffAxis, Table

COLLECTED = "the episodes that ended in this collection, none: 0 (before 2.0)"
TEST_EPISODES = "the test episodes"
OVER_UPDATE_REPETITIONS = "mean over the repetitions and minibatches of one update"
UNTIL_0_5 = "until 0.5: moving average over 100 updates"

TIANSHOU_KEYS = {
    # trainer.py; data/collector.py, CollectStats; data/stats.py, SequenceSummaryStats
    **{
        f"{scope}/{key}": name
        for scope in ("train", "training")  # until 1.x, since 2.0
        for key, name in {
            "returns_stat/mean": Name(outcome.RETURN, f"mean over {COLLECTED}"),
            "returns_stat/min": Name(outcome.RETURN_MIN, f"over {COLLECTED}"),
            "returns_stat/max": Name(outcome.RETURN_MAX, f"over {COLLECTED}"),
            "collect_speed": Name(throughput.SAMPLER_RATE, "steps/s of this collection"),
        }.items()
    },
    "test/returns_stat/mean": Name(outcome.EVAL_RETURN, f"mean over {TEST_EPISODES}"),
    "test/returns_stat/min": Name(outcome.EVAL_RETURN_MIN, f"over {TEST_EPISODES}"),
    "test/returns_stat/max": Name(outcome.EVAL_RETURN_MAX, f"over {TEST_EPISODES}"),
    "test/lens_stat/mean": Name(outcome.EVAL_EPISODE_LENGTH, f"mean over {TEST_EPISODES}"),
    # until 0.5: utils/logger/base.py
    "train/reward": Name(outcome.RETURN, "mean over the episodes that ended in this collection"),
    "train/length": Name(outcome.EPISODE_LENGTH, "mean over the episodes that ended"),
    "test/reward": Name(outcome.EVAL_RETURN, f"mean over {TEST_EPISODES}"),
    "test/length": Name(outcome.EVAL_EPISODE_LENGTH, f"mean over {TEST_EPISODES}"),
    "train/train/eps": Name(exploration.EPSILON, "as the examples for Atari write it"),
}
TIANSHOU_FAMILIES = (
    Family(r"train(?:ing)?/(collect)_time", Name(throughput.PHASE_TIME, "seconds")),
    Family(r"update/(train)_time", Name(throughput.PHASE_TIME, "seconds of one update")),
)
TIANSHOU_SETTINGS = {
    "task": "env_id",
    "seed": "seed",
    "lr": "learning_rate",
    "gamma": "gamma",
    "gae_lambda": "gae_lambda",
    "eps_clip": "clip_range",
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "max_grad_norm": "max_grad_norm",
    "batch_size": "minibatch_size",
    "buffer_size": "buffer_size",
    "repeat_per_collect": "n_epochs",  # until 1.x
    "update_step_num_repetitions": "n_epochs",
    "step_per_collect": "batch_size",
    "collection_step_num_env_steps": "batch_size",
    "training_num": "n_envs",
    "num_training_envs": "n_envs",
    "tau": "tau",
    "start_timesteps": "learning_starts",
    "eps_train_final": "epsilon_final",
}
BY_UPDATE = OffAxis(r"update/.+", clock=("training/env_step", "train/env_step", "test/env_step"))

NAMES = Table(
    "tianshou",
    "Tianshou",
    keys={
        **TIANSHOU_KEYS,
        # algorithm/modelfree/ppo.py, a2c.py, npg.py, trpo.py, reinforce.py
        "update/loss/mean": Name(optimiser.LOSS, f"total, {OVER_UPDATE_REPETITIONS}"),
        "update/actor_loss/mean": Name(
            policy.LOSS, f"PPO: clipped surrogate; A2C: -mean(A log pi); {OVER_UPDATE_REPETITIONS}"
        ),
        "update/clip_loss/mean": Name(
            policy.LOSS, f"PPO in 1.x: clipped surrogate, {OVER_UPDATE_REPETITIONS}"
        ),
        "update/vf_loss/mean": Name(
            value.LOSS, f"squared error, not halved, {OVER_UPDATE_REPETITIONS}"
        ),
        "update/ent_loss/mean": Name(
            exploration.ENTROPY, f"positive in spite of its name, {OVER_UPDATE_REPETITIONS}"
        ),
        "update/kl/mean": Name(
            policy.APPROX_KL, "NPG, TRPO: exact KL(old, new)", estimator="exact"
        ),
        "update/loss/actor": Name(policy.LOSS, UNTIL_0_5, window=100),
        "update/loss/clip": Name(policy.LOSS, f"clipped surrogate; {UNTIL_0_5}", window=100),
        "update/loss/vf": Name(value.LOSS, f"squared error; {UNTIL_0_5}", window=100),
        "update/loss/ent": Name(exploration.ENTROPY, f"positive; {UNTIL_0_5}", window=100),
        "update/kl": Name(policy.APPROX_KL, f"exact; {UNTIL_0_5}", estimator="exact", window=100),
    },
    families=TIANSHOU_FAMILIES,
    settings=TIANSHOU_SETTINGS,
    step_unit="environment steps",
    off_axis=BY_UPDATE,
    read_from="thu-ml/tianshou 2.0.1 (f2402056): tianshou/trainer.py, data/collector.py"
    " (CollectStats), data/stats.py, utils/logger/logger_base.py, tensorboard.py (write),"
    " algorithm/modelfree/ppo.py, a2c.py, npg.py, trpo.py; 1.2.0, 0.5.0:"
    " tianshou/policy/modelfree/*.py, utils/logger/base.py, trainer/base.py",
)
