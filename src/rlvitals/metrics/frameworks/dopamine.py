"""Dopamine at 5873f54 of 2026: event files with a point an iteration.

An iteration is a phase of training and one of evaluation, 250,000 and 125,000 steps by default.
The agent writes its losses at its training steps: they are placed by their times.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    progress,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, OffAxis, Table

NAMES = Table(
    "dopamine",
    "Dopamine",
    keys={
        # discrete_domains/run_experiment.py, _run_one_iteration
        "Train/AverageReturns": Name(outcome.RETURN, "mean over the phase's episodes"),
        "Eval/AverageReturns": Name(outcome.EVAL_RETURN, "mean over the phase's episodes"),
        "Train/NumEpisodes": Name(progress.EPISODES_NEW, "of the training phase"),
        "Train/AverageStepsPerSecond": Name(throughput.STEPS_PER_SECOND, "of the training phase"),
        # jax/agents/*/*_agent.py: of one batch
        "HuberLoss": Name(value.LOSS, "DQN: Huber error, one batch"),
        "QuantileLoss": Name(optimiser.LOSS, "IQN, QR-DQN: one batch"),
        "CrossEntropyLoss": Name(optimiser.LOSS, "Rainbow: one batch"),
        "Losses/Critic": Name(
            value.LOSS, "PPO: half the squared error, mean over all minibatches; SAC: one batch"
        ),
        "Losses/Entropy": Name(exploration.ENTROPY, "PPO: positive; mean over all minibatches"),
        "Losses/Combined": Name(optimiser.LOSS, "PPO: total, mean over all minibatches"),
        "Losses/Alpha": Name(exploration.ENTROPY_COEF_LOSS, "SAC: one batch"),
        "Values/Alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "Values/CriticValues1": Name(value.Q_MEAN, "SAC: first critic, one batch"),
        "Values/TargetValues1": Name(value.RETURN_MEAN, "SAC: first target network, one batch"),
    },
    families=(
        Family(r"Values/(CriticValues2)", Name(value.CRITIC_Q, "SAC: one batch")),
        Family(
            r"Losses/(Actor)", Name(optimiser.LOSS_PART, "PPO: clipped surrogate; SAC: the actor's")
        ),
    ),
    off_axis=OffAxis(
        r"(?:Losses|Values)/.+|\w+Loss", clock=("Train/AverageReturns", "Train/NumEpisodes")
    ),
    step_unit="iterations",
    marks=(("Train/AverageReturns",), ("Eval/AverageReturns", "Eval/NumEpisodes")),
    read_from="google/dopamine 5873f54: dopamine/discrete_domains/run_experiment.py"
    " (_run_one_iteration), continuous_domains/run_experiment.py,"
    " jax/agents/{dqn,implicit_quantile,quantile,rainbow,ppo,sac}/*_agent.py",
)
