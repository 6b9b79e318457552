"""PyMARL and EPyMARL: returns and battles of cooperating agents, over the last test or interval."""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, value
from rlvitals.metrics.frameworks.key import Name, Table

OVER_EPISODES_SINCE = "mean over the episodes since the last row"
OVER_TEST_EPISODES = "mean over the test episodes"

NAMES = Table(
    "pymarl",
    "PyMARL, EPyMARL",
    keys={
        # runners/episode_runner.py, parallel_runner.py (_log)
        "return_mean": Name(outcome.RETURN, OVER_EPISODES_SINCE),
        "test_return_mean": Name(outcome.EVAL_RETURN, OVER_TEST_EPISODES),
        "ep_length_mean": Name(outcome.EPISODE_LENGTH, OVER_EPISODES_SINCE),
        "test_ep_length_mean": Name(outcome.EVAL_EPISODE_LENGTH, OVER_TEST_EPISODES),
        "battle_won_mean": Name(
            outcome.SUCCESS_RATE, f"share of battles won, {OVER_EPISODES_SINCE}"
        ),
        "test_battle_won_mean": Name(outcome.EVAL_SUCCESS_RATE, f"share won, {OVER_TEST_EPISODES}"),
        "epsilon": Name(exploration.EPSILON, "of the action selector"),
        # learners/q_learner.py, actor_critic_learner.py, ppo_learner.py
        "loss": Name(optimiser.LOSS, "squared TD error, over the steps that are not padding"),
        "grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
        "td_error_abs": Name(value.TD_ERROR, "mean absolute TD error"),
        "q_taken_mean": Name(value.Q_MEAN, "of the actions taken, an agent's"),
        "critic_loss": Name(value.LOSS, "squared TD error"),
        "pg_loss": Name(policy.LOSS, "with the entropy term"),
        "advantage_mean": Name(policy.ADVANTAGE_MEAN),
    },
    step_unit="environment steps",
    sources=("sacred",),
    marks=(("return_mean", "ep_length_mean"), ("test_return_mean", "test_ep_length_mean")),
    read_from="oxwhirl/pymarl (c971afdc): src/runners/episode_runner.py, src/learners/q_learner.py,"
    " src/utils/logging.py; uoe-agents/epymarl: src/learners/actor_critic_learner.py",
)
