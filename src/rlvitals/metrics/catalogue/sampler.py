"""Differences between the probabilities of the generation engine and the learner."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric

LOGP_DIFFERENCE_MEAN = Metric(
    name="policy/sampler_logp_difference_mean",
    title="Sampler and learner disagree, mean",
    unit="nats",
    kind="health",
    meaning="Mean gap between the log-probabilities of the generation engine and the trainer.",
    formula="mean over tokens of |log pi_sampler - log pi_learner|",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_ratio_mean",),
)

LOGP_DIFFERENCE_MAX = Metric(
    name="policy/sampler_logp_difference_max",
    title="Sampler and learner disagree, most",
    unit="nats",
    kind="health",
    meaning="Largest gap between the log-probabilities of the generation engine and the trainer.",
    formula="max over tokens of |log pi_sampler - log pi_learner|",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_logp_difference_mean",),
)

RATIO_MIN = Metric(
    name="policy/sampler_ratio_min",
    title="Least sampler correction",
    unit="ratio",
    kind="health",
    meaning="Smallest importance weight between trainer and generation engine.",
    formula="min of pi_learner / pi_sampler",
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_ratio_mean",),
)

RATIO_MEAN = Metric(
    name="policy/sampler_ratio_mean",
    title="Mean sampler correction",
    unit="ratio",
    kind="health",
    meaning="Mean importance weight between trainer and generation engine: 1 when they agree.",
    formula="mean of pi_learner / pi_sampler",
    better="steady",
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_logp_difference_mean",),
)

RATIO_MAX = Metric(
    name="policy/sampler_ratio_max",
    title="Largest sampler correction",
    unit="ratio",
    kind="health",
    meaning="Largest importance weight between trainer and generation engine.",
    formula="max of pi_learner / pi_sampler",
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_ratio_mean",),
)

KL = Metric(
    name="policy/sampler_kl",
    title="KL from sampler to learner",
    unit="nats/token",
    kind="health",
    meaning="How far the generation engine's policy is from the trainer's, by an estimate that"
    " cannot be negative: numerics and staleness together. Growing, weights no longer arrive.",
    formula="mean over tokens of exp(d) - d - 1 with d = log pi_learner - log pi_sampler",
    better="down",
    healthy=Band(low=0.0),
    see_also=("policy/sampler_kl_signed", "policy/sampler_logp_difference_mean"),
)

KL_SIGNED = Metric(
    name="policy/sampler_kl_signed",
    title="KL from sampler to learner, signed estimate",
    unit="nats/token",
    kind="health",
    meaning="The k1 estimate of the same KL: right on average, but a single batch may be negative.",
    formula="mean over tokens of log pi_sampler - log pi_learner",
    better="steady",
    see_also=("policy/sampler_kl",),
)

PROB_DIFFERENCE_MEAN = Metric(
    name="policy/sampler_prob_difference_mean",
    title="Sampler and learner disagree in probability, mean",
    unit="probability",
    kind="health",
    meaning="Mean gap between the probabilities (not their logarithms) of the generation engine"
    " and the trainer.",
    formula="mean over tokens of |pi_sampler - pi_learner|",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_prob_correlation", "policy/sampler_logp_difference_mean"),
)

PROB_DIFFERENCE_MAX = Metric(
    name="policy/sampler_prob_difference_max",
    title="Sampler and learner disagree in probability, most",
    unit="probability",
    kind="health",
    meaning="Largest gap between the probabilities of the generation engine and the trainer. Near"
    " 1 at times in healthy runs with long responses.",
    formula="max over tokens of |pi_sampler - pi_learner|",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_prob_difference_mean",),
)

PROB_DIFFERENCE_STD = Metric(
    name="policy/sampler_prob_difference_std",
    title="Spread of that disagreement",
    unit="probability",
    kind="health",
    meaning="How much the gap of probabilities differs between tokens.",
    formula="standard deviation over tokens of |pi_sampler - pi_learner|",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_prob_difference_mean",),
)

PROB_CORRELATION = Metric(
    name="policy/sampler_prob_correlation",
    title="Correlation of sampler and learner",
    unit="correlation",
    kind="health",
    meaning="How well the two probabilities of the same tokens go together: near 1 in order.",
    formula="Pearson correlation over tokens of pi_sampler and pi_learner",
    better="up",
    healthy=Band(low=-1.0, high=1.0),
    possible=Band(low=-1.0, high=1.0),
    see_also=("policy/sampler_prob_difference_mean",),
)

CHI2_TOKEN = Metric(
    name="policy/sampler_chi2_token",
    title="Chi-squared divergence, per token",
    unit="ratio^2",
    kind="health",
    meaning="Variance of the tokens' importance weights: 0 when sampler and trainer agree.",
    formula="mean over tokens of (pi_learner / pi_sampler)^2, less 1",
    better="down",
    see_also=("policy/sampler_ess",),
)

CHI2_SEQUENCE = Metric(
    name="policy/sampler_chi2_sequence",
    title="Chi-squared divergence, per sequence",
    unit="ratio^2",
    kind="health",
    meaning="Variance of whole sequences' importance weights: it grows exponentially with length.",
    formula="mean over sequences of (product of ratios)^2, less 1",
    better="down",
    see_also=("policy/sampler_chi2_token",),
)

ESS = Metric(
    name="policy/sampler_ess",
    title="Effective sample size",
    unit="share",
    kind="health",
    meaning="Share of the batch that is left after importance weighting: 1 is all of it; low, a"
    " few tokens rule the update.",
    formula="1 / mean(w^2) with w scaled to mean 1",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_ratio_mean", "policy/sampler_chi2_token"),
)

RATIO_HIGH_SHARE = Metric(
    name="policy/sampler_ratio_high_share",
    title="Sampler corrections too large",
    unit="share",
    kind="health",
    meaning="Share of importance weights above the upper threshold.",
    formula="mean(pi_learner / pi_sampler > threshold)",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_ratio_mean",),
)

RATIO_LOW_SHARE = Metric(
    name="policy/sampler_ratio_low_share",
    title="Sampler corrections too small",
    unit="share",
    kind="health",
    meaning="Share of importance weights below the lower threshold.",
    formula="mean(pi_learner / pi_sampler < threshold)",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_ratio_mean",),
)

RATIO_CLIPPED_SHARE = Metric(
    name="policy/sampler_ratio_clipped_share",
    title="Sampler corrections that were clipped",
    unit="share",
    kind="health",
    meaning="Share of importance weights that left their range on either side and were clipped or"
    " set to 0.",
    formula="mean(w != clip(w))",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_ratio_high_share",),
)

RATIO_DEVIATION = Metric(
    name="policy/sampler_ratio_deviation",
    title="Sampler correction off 1",
    unit="ratio",
    kind="health",
    meaning="Mean distance of the importance weight from 1.",
    formula="mean over tokens of |pi_learner / pi_sampler - 1|",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/sampler_ratio_mean",),
)

REJECTED_TOKENS = Metric(
    name="policy/sampler_rejected_tokens",
    title="Tokens rejected",
    unit="share",
    kind="health",
    meaning="Share of tokens left out of the update because sampler and trainer disagree on them.",
    formula="tokens masked / tokens",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_rejected_sequences",),
)

REJECTED_SEQUENCES = Metric(
    name="policy/sampler_rejected_sequences",
    title="Sequences with rejected tokens",
    unit="share",
    kind="health",
    meaning="Share of sequences of which at least one token was left out.",
    formula="sequences with a masked token / sequences",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("policy/sampler_rejected_tokens",),
)

VERSION = Metric(
    name="policy/sampler_version",
    title="Version of the sampler's weights",
    unit="synchronisations",
    kind="health",
    meaning="How often the generation engine has been given new weights. Standing still while"
    " updates go on, its samples come from an old policy.",
    better="up",
    healthy=Band(low=0.0),
    see_also=("policy/sampler_kl", "optimiser/policy_lag"),
)

METRICS = (
    LOGP_DIFFERENCE_MEAN,
    LOGP_DIFFERENCE_MAX,
    RATIO_MIN,
    RATIO_MEAN,
    RATIO_MAX,
    KL,
    KL_SIGNED,
    PROB_DIFFERENCE_MEAN,
    PROB_DIFFERENCE_MAX,
    PROB_DIFFERENCE_STD,
    PROB_CORRELATION,
    CHI2_TOKEN,
    CHI2_SEQUENCE,
    ESS,
    RATIO_HIGH_SHARE,
    RATIO_LOW_SHARE,
    RATIO_CLIPPED_SHARE,
    RATIO_DEVIATION,
    REJECTED_TOKENS,
    REJECTED_SEQUENCES,
    VERSION,
)
