"""Preference metrics: direct preference optimisation and reward models."""

from rlvitals.metrics.metric import SHARE, Band, Metric


def _pair(suffix: str, title: str, unit: str, meaning: str, formula: str = "") -> Metric:
    return Metric(
        name=f"preference/{suffix}",
        title=title,
        unit=unit,
        kind="health",
        meaning=meaning,
        formula=formula,
        see_also=("preference/margin",),
    )


ACCURACY = Metric(
    name="preference/accuracy",
    title="Pairs ordered rightly",
    unit="share",
    kind="health",
    meaning="Share of pairs in which the chosen response has the higher reward; one half is"
    " guessing.",
    formula="mean(r_chosen > r_rejected)",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("preference/margin",),
)
EVAL_ACCURACY = Metric(
    name="preference/eval_accuracy",
    title="Held-out pairs ordered rightly",
    unit="share",
    kind="outcome",
    meaning="Share of held-out pairs in which the chosen response has the higher reward.",
    formula="mean(r_chosen > r_rejected)",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    see_also=("preference/accuracy",),
)
MARGIN = Metric(
    name="preference/margin",
    title="Reward margin",
    unit="reward",
    kind="health",
    meaning="How far the chosen response's reward is above the rejected one's. It may grow while"
    " both fall: look at the chosen one's log-probability.",
    formula="mean(r_chosen - r_rejected)",
    better="up",
    see_also=("preference/chosen_reward", "preference/chosen_logp"),
)
CHOSEN_REWARD = _pair(
    "chosen_reward", "Reward of chosen responses", "reward",
    "Reward of the preferred responses; in DPO implicit, so below 0 they are less likely than"
    " under the reference.",
    "DPO: beta * (log pi - log pi_ref), summed over the response",
)  # fmt: skip
REJECTED_REWARD = _pair(
    "rejected_reward", "Reward of rejected responses", "reward",
    "Reward of the responses that were not preferred.",
    "DPO: beta * (log pi - log pi_ref), summed over the response",
)  # fmt: skip
CHOSEN_LOGP = _pair(
    "chosen_logp", "Log-probability of chosen responses", "nats/sequence",
    "How likely the policy finds the preferred responses: falling along with the rejected ones,"
    " probability goes to texts that are in neither set.",
    "mean over sequences of sum_t log pi(token_t)",
)  # fmt: skip
REJECTED_LOGP = _pair(
    "rejected_logp", "Log-probability of rejected responses", "nats/sequence",
    "How likely the policy finds the responses that were not preferred.",
    "mean over sequences of sum_t log pi(token_t)",
)  # fmt: skip
EVAL_MARGIN = _pair(
    "eval_margin", "Reward margin on held-out pairs", "reward",
    "How far the chosen response's reward is above the rejected one's, on held-out pairs.",
)  # fmt: skip
EVAL_CHOSEN_LOGP = _pair(
    "eval_chosen_logp", "Log-probability of held-out chosen responses", "nats/sequence",
    "How likely the policy finds preferred responses that it was not trained on.",
    "mean over sequences of sum_t log pi(token_t)",
)  # fmt: skip
CHOSEN_LOGITS = _pair(
    "chosen_logits", "Logits of chosen responses", "logit",
    "Mean logit over tokens and vocabulary of the preferred responses: a drift is no learning.",
)  # fmt: skip
REJECTED_LOGITS = _pair(
    "rejected_logits", "Logits of rejected responses", "logit",
    "Mean logit over tokens and vocabulary of the responses that were not preferred.",
)  # fmt: skip
REWARD_MEAN = _pair(
    "reward_mean", "Mean reward of both", "reward",
    "Mean score a reward model gives to both sides of the pairs; its zero is arbitrary.",
)  # fmt: skip
REWARD_MIN = _pair("reward_min", "Lowest reward", "reward", "Lowest score of the batch.")
REWARD_MAX = _pair("reward_max", "Highest reward", "reward", "Highest score of the batch.")
NLL_LOSS = _pair(
    "nll_loss", "Likelihood term", "nats/token",
    "Negative log-likelihood of the chosen responses, where the loss adds it.",
)  # fmt: skip

METRICS = (
    ACCURACY,
    EVAL_ACCURACY,
    MARGIN,
    EVAL_MARGIN,
    EVAL_CHOSEN_LOGP,
    CHOSEN_REWARD,
    REJECTED_REWARD,
    CHOSEN_LOGP,
    REJECTED_LOGP,
    CHOSEN_LOGITS,
    REJECTED_LOGITS,
    REWARD_MEAN,
    REWARD_MIN,
    REWARD_MAX,
    NLL_LOSS,
)
