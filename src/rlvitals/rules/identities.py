"""Accounting identities that a log must satisfy, by the source code of its framework."""

from itertools import pairwise

from rlvitals.metrics.catalogue import (
    language,
    outcome,
    policy,
    preference,
    reward,
    rollouts,
    surrogate,
)
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE, LOSS, UPDATES
from rlvitals.metrics.catalogue.value import Q_MAX, Q_MEAN, Q_MIN
from rlvitals.metrics.metric import Metric
from rlvitals.rules import ledgers
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass

TRL_PPO, TRL_OLD, TRL_GRPO, TRL_DPO = "trl-ppo", "trl-ppo-old", "trl-grpo", "trl-dpo"
RLVITALS_RLHF = "rlvitals-rlhf"  # logs the metrics of both of TRL's PPO trainers
HF_FRAMEWORKS = ("hf-trainer", TRL_PPO, TRL_OLD, TRL_GRPO, TRL_DPO)


@dataclass(frozen=True, slots=True)
class Identity:
    """Something that holds in every row of a log, and what it means where it does not."""

    says: str  # in words
    total: Metric
    keep: ledgers.Keep
    logged_by: tuple[str, ...]  # frameworks whose source says so
    read_from: str
    worst: Severity = Severity.ERROR
    causes: tuple[str, ...] = ()


def _order_identities(
    quantity: str, logged_by: tuple[str, ...], *metrics: Metric
) -> tuple[Identity, ...]:
    """A lowest, a mean, a highest: of the same numbers."""
    title = f"the {quantity} in order: lowest, mean, highest"
    return tuple(
        Identity(
            title,
            high,
            ledgers.never_above(low, high),
            logged_by,
            "by what the words mean",
            Severity.WARNING,
            ("they are not taken over the same samples", "one is masked and the other not"),
        )
        for low, high in pairwise(metrics)
    )


IDENTITIES = (
    Identity(
        "RLHF reward = score + KL penalty",
        outcome.RLHF_REWARD,
        ledgers.adds_up(outcome.RLHF_REWARD, (outcome.SCORE, 1.0), (reward.NON_SCORE, 1.0)),
        (TRL_PPO, RLVITALS_RLHF),
        "trl/trainer/ppo_trainer.py, train: rlhf_reward = mean_non_score_reward + scores.mean()",
        causes=("the penalty enters with the wrong sign", "the score is scaled or clipped between"),
    ),
    Identity(
        "KL penalty in the reward = - KL coefficient x KL",
        reward.NON_SCORE,
        ledgers.penalty,
        (TRL_PPO, RLVITALS_RLHF),
        "trl/trainer/ppo_trainer.py, train: non_score_reward = -args.kl_coef * kl",
        causes=(
            "the penalty's sign is flipped: it pays for leaving the reference",
            "another coefficient than the one that is logged or set",
            "one is summed over the response and the other averaged",
        ),
    ),
    Identity(
        "KL penalty in the reward <= 0 where KL > 0",
        reward.NON_SCORE_PER_TOKEN,
        ledgers.penalty_sign,
        (TRL_OLD, RLVITALS_RLHF),
        "trl/trainer/ppo_trainer.py (0.11), compute_rewards: non_score_reward = -kl_ctl.value * kl",
        causes=("the penalty's sign is flipped: it pays for leaving the reference",),
    ),
    Identity(
        "reward = score where no KL penalty is taken off",
        outcome.RLHF_REWARD,
        ledgers.reward_is_score,
        ("verl",),
        "verl/trainer/ppo/ray_trainer.py, fit: token_level_rewards = token_level_scores",
        causes=("the reward is changed between the verifier and the update",),
    ),
    Identity(
        "reward = weighted sum of its components",
        outcome.REWARD,
        ledgers.components,
        (TRL_GRPO,),
        "trl/trainer/grpo_trainer.py, _calculate_rewards: (rewards_per_func * weights).nansum",
        Severity.WARNING,
        (
            "a component leaves samples unscored (None, a time-out, an error)",
            "the weights of the components were changed",
            "something else was added to the reward",
        ),
    ),
    Identity(
        "clipped tokens = clipped below + clipped above",
        policy.CLIP_FRACTION_EFFECTIVE,
        ledgers.adds_up(
            policy.CLIP_FRACTION_EFFECTIVE,
            (policy.CLIP_FRACTION_LOW, 1.0),
            (policy.CLIP_FRACTION_HIGH, 1.0),
        ),
        (TRL_GRPO,),
        "trl/trainer/grpo_trainer.py, _compute_loss: is_region_clipped = is_low | is_high",
        Severity.WARNING,
        ("the two edges count the same tokens", "one of them is masked and the other not"),
    ),
    Identity(
        "margin = chosen reward - rejected reward",
        preference.MARGIN,
        ledgers.adds_up(
            preference.MARGIN, (preference.CHOSEN_REWARD, 1.0), (preference.REJECTED_REWARD, -1.0)
        ),
        (TRL_DPO,),
        "trl/trainer/dpo_trainer.py, _compute_loss: margins = chosen_rewards - rejected_rewards",
        causes=("chosen and rejected are swapped in one of the two",),
    ),
    Identity(
        "loss = policy loss + value_coef x value loss - entropy_coef x entropy + kl_coef x KL",
        LOSS,
        ledgers.rllib_loss,
        ("rllib",),
        "rllib/algorithms/ppo/ppo_torch_policy.py, loss: total_loss",
        causes=("a term of the loss has another weight or sign than it should",),
    ),
    Identity(
        "loss = policy loss + value_coef x value loss",
        LOSS,
        ledgers.two_losses,
        (TRL_OLD, RLVITALS_RLHF),
        "trl/trainer/ppo_trainer.py (0.11), loss: loss = pg_loss + vf_coef * vf_loss",
        causes=("a term of the loss has another weight or sign than it should",),
    ),
    Identity(
        "loss = policy loss + value_coef x value loss - entropy_coef x entropy",
        LOSS,
        ledgers.cleanrl_loss,
        ("cleanrl",),
        "cleanrl/ppo_trxl/ppo_trxl.py: loss = pg_loss - ent_coef * entropy_loss + v_loss * vf_coef",
        causes=("a term of the loss has another weight or sign than it should",),
    ),
    Identity(
        "all groups are without contrast where the batch is",
        reward.STD,
        ledgers.no_contrast,
        (TRL_GRPO,),
        "trl/trainer/grpo_trainer.py, _generate_and_score_completions: frac_reward_zero_std",
        Severity.WARNING,
        ("groups are not formed by prompt",),
    ),
    Identity(
        "times an action was chosen, added up = decisions",
        policy.ACTION_COUNT,
        ledgers.actions,
        ("scheduler",),
        "src/core/utils/monitoring/metrics_exporter.py: action_replica_i",
        Severity.WARNING,
        ("decisions were not counted, or counted twice",),
    ),
    Identity(
        "epochs run <= iterations x epochs set",
        UPDATES,
        ledgers.epochs,
        ("sb3",),
        "stable_baselines3/ppo/ppo.py, train: self._n_updates += 1 per epoch",
        Severity.WARNING,
        ("the settings are not this run's", "the same batch is trained on again"),
    ),
    Identity(
        "learning rate in force <= learning rate set",
        LEARNING_RATE,
        ledgers.rate,
        (*HF_FRAMEWORKS, "sb3", "cleanrl"),
        "transformers/optimization.py: every schedule scales by at most 1; sb3: utils.py",
        Severity.NOTE,
        ("the settings are not this run's", "something raises the rate above its schedule"),
    ),
    Identity(
        "spread of rewards <= their range / sqrt 2",
        reward.STD,
        ledgers.spread,
        ("scheduler",),
        "by what the words mean: of two samples it is just that",
        Severity.WARNING,
        ("they are not taken over the same samples",),
    ),
    *_order_identities(
        "returns",
        ("rllib", "spinning-up", "skrl", "skrl-off-policy"),
        outcome.RETURN_MIN,
        outcome.RETURN,
        outcome.RETURN_MAX,
    ),
    *_order_identities(
        "evaluation returns",
        ("rllib", "spinning-up"),
        outcome.EVAL_RETURN_MIN,
        outcome.EVAL_RETURN,
        outcome.EVAL_RETURN_MAX,
    ),
    *_order_identities("rewards", ("scheduler",), reward.MIN, outcome.REWARD, reward.MAX),
    *_order_identities("scores", ("verl",), reward.MIN, outcome.SCORE, reward.MAX),
    *_order_identities(
        "response lengths",
        (TRL_GRPO, "verl"),
        language.LENGTH_MIN,
        language.LENGTH_MEAN,
        language.LENGTH_MAX,
    ),
    *_order_identities(
        "prompt lengths",
        ("verl",),
        rollouts.QUERY_LENGTH_MIN,
        language.QUERY_LENGTH_MEAN,
        rollouts.QUERY_LENGTH_MAX,
    ),
    *_order_identities(
        "advantages",
        ("verl",),
        surrogate.ADVANTAGE_MIN,
        policy.ADVANTAGE_MEAN,
        surrogate.ADVANTAGE_MAX,
    ),
    *_order_identities("Q values", ("rllib", "skrl-off-policy"), Q_MIN, Q_MEAN, Q_MAX),
)
