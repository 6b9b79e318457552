"""Policy metrics: KL, clipping, ratio, advantages, actions."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric
from rlvitals.types import Profile

APPROX_KL = Metric(
    name="policy/approx_kl",
    title="KL per update",
    unit="nats",
    kind="health",
    meaning="How far one update moved the policy from the one that collected the data.",
    formula="an estimate of KL(old, new): k1 = -log r, k2 = (log r)^2 / 2, k3 = (r - 1) - log r",
    better="steady",
    healthy=Band(low=0.0, high=0.02, high_from="target_kl"),
    healthy_in={Profile.RLHF_PPO: Band(low=0.0, high=0.05)},
    see_also=("policy/kl_signed", "policy/kl_to_reference", "policy/clip_fraction"),
)

KL_SIGNED = Metric(
    name="policy/kl_signed",
    title="KL per update, signed estimate",
    unit="nats",
    kind="health",
    meaning="The k1 estimate of the KL of one update, unclamped: right on average, but a single"
    " batch may be negative.",
    formula="k1 = mean(log pi_old - log pi_new)",
    better="steady",
    see_also=("policy/approx_kl",),
)

CLIP_FRACTION = Metric(
    name="policy/clip_fraction",
    title="Clip fraction",
    unit="share",
    kind="health",
    meaning="Share of samples whose probability ratio left the clip range. High: updates are"
    " too large (or the range tiny); zero throughout: clipping never acts.",
    formula="mean(|r - 1| > clip_range)",
    better="steady",
    healthy=Band(low=0.0, high=0.3),
    healthy_in={
        Profile.CONTROL_PPO: Band(low=0.05, high=0.3),
        Profile.SCHEDULER_PPO: Band(low=0.1, high=0.3),
        Profile.RLHF_PPO: Band(low=0.0, high=0.2),
        Profile.GRPO: Band(high=0.2),
    },
    possible=SHARE,
    see_also=("policy/clip_fraction_effective", "policy/approx_kl"),
)

CLIP_FRACTION_EFFECTIVE = Metric(
    name="policy/clip_fraction_effective",
    title="Effective clip fraction",
    unit="share",
    kind="health",
    meaning="Share of tokens whose gradient clipping removed: the ratio left the range in the"
    " direction its advantage pushes. About half the plain clip fraction. Exactly zero"
    " throughout is normal for on-policy GRPO (one iteration per batch).",
    formula="mean((r > 1 + eps and A > 0) or (r < 1 - eps and A < 0))",
    better="steady",
    healthy=Band(high=0.2),
    possible=SHARE,
    see_also=("policy/clip_fraction", "policy/clip_fraction_low", "policy/clip_fraction_high"),
)

CLIP_FRACTION_LOW = Metric(
    name="policy/clip_fraction_low",
    title="Clipped below",
    unit="share",
    kind="health",
    meaning="Share of tokens clipped at the lower edge: the update wanted them less likely still.",
    formula="mean(r < 1 - eps_low and A < 0)",
    better="steady",
    possible=SHARE,
    see_also=("policy/clip_fraction_effective",),
)

CLIP_FRACTION_HIGH = Metric(
    name="policy/clip_fraction_high",
    title="Clipped above",
    unit="share",
    kind="health",
    meaning="Share of tokens clipped at the upper edge: the update wanted them more likely still.",
    formula="mean(r > 1 + eps_high and A > 0)",
    better="steady",
    possible=SHARE,
    see_also=("policy/clip_fraction_effective",),
)

CLIP_FRACTION_LOW_MIN = Metric(
    name="policy/clip_fraction_low_min",
    title="Clipped below, least",
    unit="share",
    kind="health",
    meaning="The smallest share of tokens clipped below among the sequences (older TRL: among the"
    " processes).",
    formula="min of mean(r < 1 - eps_low and A < 0)",
    possible=SHARE,
    see_also=("policy/clip_fraction_low",),
)

CLIP_FRACTION_HIGH_MAX = Metric(
    name="policy/clip_fraction_high_max",
    title="Clipped above, most",
    unit="share",
    kind="health",
    meaning="The largest share of tokens clipped above among the sequences (older TRL: among the"
    " processes).",
    formula="max of mean(r > 1 + eps_high and A > 0)",
    possible=SHARE,
    see_also=("policy/clip_fraction_high",),
)

CISPO_CLIP_FRACTION = Metric(
    name="policy/cispo_clip_fraction",
    title="CISPO clip fraction",
    unit="share",
    kind="health",
    meaning="Share of tokens whose importance weight CISPO capped; their gradient stays.",
    formula="mean(r > epsilon_high and A > 0)",
    possible=SHARE,
    see_also=("policy/clip_fraction_effective",),
)

VESPO_WEIGHT = Metric(
    name="policy/vespo_weight",
    title="VESPO sequence weight",
    unit="ratio",
    kind="health",
    meaning="Mean weight that VESPO gives a sequence's gradient; towards 0 sequences are ignored.",
    possible=NOT_NEGATIVE,
    see_also=("policy/ratio",),
)

CLIP_RANGE = Metric(
    name="policy/clip_range",
    title="Clip range in force",
    unit="ratio",
    kind="health",
    meaning="The clip range of this update, as its schedule gives it.",
    formula="r is clipped to [1 - clip_range, 1 + clip_range]",
    possible=NOT_NEGATIVE,
    see_also=("policy/clip_fraction", "clip_range"),
)

RATIO = Metric(
    name="policy/ratio",
    title="Probability ratio",
    unit="ratio",
    kind="health",
    meaning="Mean of new over old probability of the sampled actions. Its expectation is 1"
    " whatever the update, so a mean far from 1 says that the old log-probabilities are not"
    " the sampler's (temperature, dropout, padding, stale weights), not that the step was large.",
    formula="mean of exp(log pi_new - log pi_old)",
    better="steady",
    healthy=Band(low=0.5, high=2.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/ratio_var", "policy/approx_kl"),
)

RATIO_VAR = Metric(
    name="policy/ratio_var",
    title="Variance of the ratio",
    unit="ratio^2",
    kind="health",
    meaning="Spread of the probability ratio. TRL takes it over the means of microbatches, not"
    " over tokens.",
    formula="variance of exp(log pi_new - log pi_old)",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/ratio",),
)

LOSS = Metric(
    name="policy/loss",
    title="Policy loss",
    unit="loss",
    kind="health",
    meaning="The surrogate objective with its sign turned. Not a score: it hovers near zero in a"
    " healthy run. Exploding is instability; exactly zero is no learning signal.",
    formula="-mean(min(r A, clip(r, 1 - eps, 1 + eps) A))",
    better="steady",
    see_also=("policy/advantage_std", "optimiser/loss"),
)

LOSS_MAGNITUDE = Metric(
    name="policy/loss_magnitude",
    title="Size of the policy loss",
    unit="loss",
    kind="health",
    meaning="Mean of the absolute policy losses of the minibatches: it cannot cancel to zero, so it"
    " is larger than the policy loss itself.",
    formula="mean over minibatches of |policy loss|",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/loss",),
)

ACTOR_LOSS = Metric(
    name="policy/actor_loss",
    title="Actor loss",
    unit="return",
    kind="health",
    meaning="What an off-policy actor minimises: minus the critic's value of its actions. It moves"
    " with the scale of returns, falls as they rise, and is no measure of instability.",
    formula="mean of alpha log pi - min Q (SAC), of -Q (TD3, DDPG)",
    see_also=("value/q_mean",),
)

LOSS_SUM = Metric(
    name="policy/loss_sum",
    title="Policy loss, summed over the batch",
    unit="loss",
    kind="health",
    meaning="The policy loss added up over a training batch: its size grows with the batch.",
    formula="-sum(log pi A)",
    better="steady",
    see_also=("policy/loss",),
)

ADVANTAGE_MEAN = Metric(
    name="policy/advantage_mean",
    title="Mean advantage",
    unit="reward",
    kind="health",
    meaning="Zero by construction where advantages are whitened; drifting off zero elsewhere"
    " points at the value function or at the advantage computation.",
    formula="mean of A",
    better="steady",
    see_also=("policy/advantage_std",),
)

ADVANTAGE_STD = Metric(
    name="policy/advantage_std",
    title="Spread of the advantages",
    unit="reward",
    kind="health",
    meaning="How much better and worse than expected the actions were. One by construction where"
    " advantages are whitened before logging.",
    formula="standard deviation of A",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/advantage_mean",),
)

ADVANTAGE_DISTRIBUTION = Metric(
    name="policy/advantage_distribution",
    title="Advantage distribution",
    unit="reward",
    kind="health",
    meaning="All advantages of the batch, as a histogram: it should be balanced, not skewed.",
    formula="histogram of A",
    see_also=("policy/advantage_mean",),
)

ACTION = Metric(
    name="policy/action",
    title="Action chosen",
    unit="index",
    kind="health",
    meaning="The index of the action chosen at one decision. Judge its distribution in windows:"
    " one index taking over is a collapsed policy.",
    formula="a_t",
    see_also=("policy/action_count", "exploration/entropy"),
)

ACTION_COUNT = Metric(
    name="policy/action_count",
    title="Times an action was chosen",
    unit="decisions",
    kind="health",
    meaning="How often one action was chosen in a rollout: one series per action.",
    formula="count of a_t = i over the rollout",
    possible=NOT_NEGATIVE,
    see_also=("policy/action",),
    family=True,
)

ACTION_AT_BOUND = Metric(
    name="policy/action_at_bound_share",
    title="Actions at their bound",
    unit="share",
    kind="health",
    meaning="Share of the components of continuous actions at the edge of what is allowed. Near"
    " one the policy is bang-bang or saturated: its gradients no longer reach the action.",
    formula="mean of [a within 1 % of the range's end, or beyond]",
    better="steady",
    possible=SHARE,
    see_also=("exploration/std",),
)

LOG_PROBABILITY = Metric(
    name="policy/log_probability",
    title="Log-probability of the action",
    unit="nats",
    kind="health",
    meaning="How likely the chosen action was, in logarithm, at one decision.",
    formula="log pi(a_t | s_t)",
    see_also=("exploration/entropy",),
)

KL_TO_REFERENCE = Metric(
    name="policy/kl_to_reference",
    title="KL to the reference model, per sequence",
    unit="nats/sequence",
    kind="health",
    meaning="How far the policy has drifted from the frozen reference, added up over a response:"
    " it grows with response length. Clearly negative means the two are compared wrongly.",
    formula="mean over sequences of sum_t KL_t",
    better="steady",
    healthy=Band(low=0.0, high_from="kl_target"),
    see_also=("policy/kl_to_reference_per_token", "policy/kl_coef", "policy/approx_kl"),
)

KL_TO_WARM_START = Metric(
    name="policy/kl_to_warm_start",
    title="KL to the warm start",
    unit="nats",
    kind="health",
    meaning="How far a control policy has moved from the frozen one that training began from, in a"
    " mean state. Large in the first update, that update was too large.",
    formula="mean over states of KL(pi || pi_0)",
    better="steady",
    healthy=Band(low=0.0),
    see_also=("policy/kl_to_reference", "policy/approx_kl"),
)
KL_TO_REFERENCE_PER_TOKEN = Metric(
    name="policy/kl_to_reference_per_token",
    title="KL to the reference model, per token",
    unit="nats/token",
    kind="health",
    meaning="How far the policy has drifted from the frozen reference, averaged over tokens.",
    formula="mean over tokens of KL_t; k3 = exp(d) - d - 1 with d = log pi_ref - log pi",
    better="steady",
    healthy=Band(low=0.0, high=0.1),
    see_also=("policy/kl_to_reference",),
)

KL_TO_REFERENCE_DISTRIBUTION = Metric(
    name="policy/kl_to_reference_distribution",
    title="KL to the reference model, distribution",
    unit="nats/sequence",
    kind="health",
    meaning="The KL to the reference of every sequence, as a histogram.",
    formula="histogram of sum_t KL_t",
    see_also=("policy/kl_to_reference",),
)

KL_COEF = Metric(
    name="policy/kl_coef",
    title="KL coefficient",
    unit="score/nat",
    kind="health",
    meaning="The price of KL in the reward or loss. An adaptive one rises while KL is above its"
    " target; running away, it often comes before numerical trouble.",
    formula="v <- v * (1 + clip(KL / target - 1, -0.2, 0.2) * n / horizon)",
    better="steady",
    healthy=Band(low=0.0),
    see_also=("policy/kl_to_reference", "reward/non_score"),
)

METRICS = (
    APPROX_KL,
    KL_SIGNED,
    CLIP_FRACTION,
    CLIP_FRACTION_EFFECTIVE,
    CLIP_FRACTION_LOW,
    CLIP_FRACTION_HIGH,
    CLIP_FRACTION_LOW_MIN,
    CLIP_FRACTION_HIGH_MAX,
    CISPO_CLIP_FRACTION,
    VESPO_WEIGHT,
    CLIP_RANGE,
    RATIO,
    RATIO_VAR,
    LOSS,
    LOSS_MAGNITUDE,
    ACTOR_LOSS,
    LOSS_SUM,
    ADVANTAGE_MEAN,
    ADVANTAGE_STD,
    ADVANTAGE_DISTRIBUTION,
    ACTION,
    ACTION_COUNT,
    ACTION_AT_BOUND,
    LOG_PROBABILITY,
    KL_TO_REFERENCE,
    KL_TO_WARM_START,
    KL_TO_REFERENCE_PER_TOKEN,
    KL_TO_REFERENCE_DISTRIBUTION,
    KL_COEF,
)
