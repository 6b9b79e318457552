"""Policy loss metrics: masks, dual clips, extremes, KL terms, the first minibatch."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Metric

DUAL_CLIP_FRACTION = Metric(
    name="policy/dual_clip_fraction",
    title="Dual-clip fraction",
    unit="share",
    kind="health",
    meaning="Share of tokens with a negative advantage whose loss the second, outer clip bounds:"
    " the policy makes them far more likely although they were bad.",
    formula="mean(r > c and A < 0)",
    better="steady",
    healthy=SHARE,
    possible=SHARE,
    see_also=("policy/clip_fraction_effective",),
)

MASKED_SHARE = Metric(
    name="policy/masked_share",
    title="Tokens outside the trust region",
    unit="share",
    kind="health",
    meaning="Share of tokens left out of the policy loss because their probability has moved too"
    " far from the sampler's. Measured in probability, not in its ratio: no clip fraction.",
    formula="mean(|pi - pi_sampler| > threshold), where the advantage pushes outwards if the"
    " framework asks for that",
    better="steady",
    healthy=SHARE,
    possible=SHARE,
    see_also=("policy/sampler_kl", "policy/clip_fraction_effective"),
)

MASKED_SHARE_LOW = Metric(
    name="policy/masked_share_low",
    title="Tokens below the trust region",
    unit="share",
    kind="health",
    meaning="Share of tokens left out because they have become too unlikely.",
    formula="mean(pi - pi_sampler < -threshold)",
    healthy=SHARE,
    possible=SHARE,
    see_also=("policy/masked_share",),
)

MASKED_SHARE_HIGH = Metric(
    name="policy/masked_share_high",
    title="Tokens above the trust region",
    unit="share",
    kind="health",
    meaning="Share of tokens left out because they have become too likely.",
    formula="mean(pi - pi_sampler > threshold)",
    healthy=SHARE,
    possible=SHARE,
    see_also=("policy/masked_share",),
)

ADVANTAGE_MIN = Metric(
    name="policy/advantage_min",
    title="Lowest advantage",
    unit="reward",
    kind="health",
    meaning="The lowest advantage of the batch: an outlier rules the update.",
    formula="min of A",
    see_also=("policy/advantage_std", "policy/advantage_max"),
)

ADVANTAGE_MAX = Metric(
    name="policy/advantage_max",
    title="Highest advantage",
    unit="reward",
    kind="health",
    meaning="The highest advantage of the batch: an outlier rules the update.",
    formula="max of A",
    see_also=("policy/advantage_std", "policy/advantage_min"),
)

KL_LOSS = Metric(
    name="policy/kl_loss",
    title="KL term of the loss",
    unit="nats",
    kind="health",
    meaning="KL to the reference as the loss counts it. Whether that is per token, per sequence or"
    " added up over minibatches depends on settings and version: compare it with its own past.",
    formula="sum or mean of KL_t, as the loss is aggregated",
    better="steady",
    see_also=("policy/kl_to_reference_per_token",),
)

FIRST_KL = Metric(
    name="policy/first_kl",
    title="KL in an update's first minibatch",
    unit="nats",
    kind="health",
    meaning="KL per update before the update's first gradient step: 0, as nothing has moved. Else"
    " the old log-probabilities are not those of the policy that collected.",
    formula="k3 over the first minibatch",
    better="steady",
    see_also=("policy/approx_kl", "policy/first_ratio_max"),
)

FIRST_CLIP_FRACTION = Metric(
    name="policy/first_clip_fraction",
    title="Clip fraction in an update's first minibatch",
    unit="share",
    kind="health",
    meaning="Clip fraction before the update's first gradient step: 0, as nothing has moved.",
    formula="mean(|r - 1| > clip_range) over the first minibatch",
    better="steady",
    possible=SHARE,
    see_also=("policy/clip_fraction", "policy/first_kl"),
)

FIRST_RATIO_MAX = Metric(
    name="policy/first_ratio_max",
    title="Largest ratio in an update's first minibatch",
    unit="ratio",
    kind="health",
    meaning="The largest probability ratio before the update's first gradient step: 1, as nothing"
    " has moved.",
    formula="max(r) over the first minibatch",
    better="steady",
    possible=NOT_NEGATIVE,
    see_also=("policy/ratio", "policy/first_kl"),
)

METRICS = (
    FIRST_KL,
    FIRST_CLIP_FRACTION,
    FIRST_RATIO_MAX,
    DUAL_CLIP_FRACTION,
    MASKED_SHARE,
    MASKED_SHARE_LOW,
    MASKED_SHARE_HIGH,
    ADVANTAGE_MIN,
    ADVANTAGE_MAX,
    KL_LOSS,
)
