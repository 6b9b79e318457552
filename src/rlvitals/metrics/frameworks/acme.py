"""Acme: environment loops, and the learners of PPO and IMPALA, as commit 770bc75e of 2026 logs.

Each loop and learner logs a table of its own (`logs/actor/logs.csv`), or one TensorBoard file
with its label before the key and the key in capitals ("actor/EpisodeReturn"). Counters are shared:
`actor_steps` is in all of them. `acme_off_policy.py` holds the learners with replay.
"""

from collections.abc import Mapping

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

LEARNERS = ("learner/", "Learner/")
LOOPS = ("actor/", "train/", "train_loop/", "environment_loop/", "Actor/")
EVALUATORS = ("evaluator/", "eval/", "eval_loop/", "Evaluator/", "eval/evaluator/")


def add_labels(names: Mapping[str, Name], labels: tuple[str, ...]) -> dict[str, Name]:
    """Return the names under each label, as tables and as TensorBoard spell them."""
    return {
        f"{label}{spelt}": name
        for label in labels
        for key, name in names.items()
        for spelt in (key, key.title().replace("_", ""))
    }


LOGGED_EPISODE = "each episode as it ends, at most one a second"
COUNTERS = {
    "actor_steps": Name(progress.STEPS),
    "actor_episodes": Name(progress.EPISODE),
    "learner_steps": Name(optimiser.UPDATES, "PPO: epochs x minibatches; else gradient steps"),
    "learner_walltime": Name(throughput.ELAPSED, "seconds of learning"),
}
# environment_loop.py, run_episode
TRAINING_LOOP_KEYS = {
    "episode_return": Name(outcome.RETURN, LOGGED_EPISODE),
    "episode_length": Name(outcome.EPISODE_LENGTH, LOGGED_EPISODE),
    "steps_per_second": Name(throughput.STEPS_PER_SECOND, "of this episode"),
}
EVALUATION_LOOP_KEYS = {
    "episode_return": Name(outcome.EVAL_RETURN, LOGGED_EPISODE),
    "episode_length": Name(outcome.EVAL_EPISODE_LENGTH, LOGGED_EPISODE),
}
ACME_READ_FROM = (
    "google-deepmind/acme 770bc75e: acme/environment_loop.py (run_episode), utils/counting.py,"
    " utils/loggers/default.py, csv.py, tf_summary.py (_format_key), "
)

NAMES = Table(
    "acme",
    "Acme",
    keys={
        **add_labels(COUNTERS, ("", *LEARNERS, *LOOPS)),
        **add_labels(TRAINING_LOOP_KEYS, ("", *LOOPS)),
        **add_labels(EVALUATION_LOOP_KEYS, EVALUATORS),
        # agents/jax/ppo/learning.py; jax/losses/impala.py: rlax.entropy_loss is minus the entropy
        **add_labels(
            {
                "loss_total": Name(optimiser.LOSS, "total, mean over epochs and minibatches"),
                "loss_policy_pg": Name(
                    policy.LOSS, "PPO: clipped surrogate, mean over epochs and minibatches"
                ),
                "loss_policy_entropy": Name(
                    exploration.ENTROPY, "PPO: logged with its sign flipped", scale=-1.0
                ),
                "loss_critic": Name(
                    value.LOSS, "PPO: squared error, of values normalised if normalize_value"
                ),
                "norm_grad": Name(optimiser.GRAD_NORM, "before clipping"),
                "value_mean": Name(value.RETURN_MEAN, "running mean of the critic's targets"),
                "loss": Name(optimiser.LOSS, "IMPALA: total of one batch"),
                "policy_loss": Name(
                    policy.LOSS, "IMPALA: policy gradient, one batch, not whitened"
                ),
                "policy_gradient_loss": Name(policy.LOSS, "IMPALA in TensorFlow: one batch"),
                "critic_loss": Name(
                    value.LOSS, "IMPALA: squared error of V-trace; in JAX times baseline_cost"
                ),
                "entropy": Name(
                    exploration.ENTROPY, "IMPALA in JAX: logged with its sign flipped", scale=-1.0
                ),
                "param_norm": Name(optimiser.WEIGHT_NORM),
            },
            ("", *LEARNERS),
        ),
    },
    families=(
        Family(
            r"(?:\w+/)?(env_reset|select_action|env_step)_duration_sec",
            Name(throughput.PHASE_TIME, "seconds, mean over the episode's steps"),
        ),
        Family(r"(?:\w+/)?(episode)_duration", Name(throughput.PHASE_TIME, "seconds")),
    ),
    step_unit="environment steps",
    read_from=f"{ACME_READ_FROM}agents/jax/ppo/learning.py (ppo_loss, sgd_step),"
    " jax/losses/impala.py, agents/tf/impala/learning.py (_step)",
)
