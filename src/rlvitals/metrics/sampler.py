"""Whether the engine that generates and the learner that updates agree on probabilities."""

from rlvitals.metrics.metric import Band, Metric

LOGP_DIFFERENCE_MEAN = Metric(
    name="policy/sampler_logp_difference_mean",
    title="Sampler and learner disagree, mean",
    unit="nats",
    kind="health",
    meaning="Mean gap between the log-probabilities of the generation engine and the trainer.",
    formula="mean over tokens of |log pi_sampler - log pi_learner|",
    better="down",
    healthy=Band(low=0.0),
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
    see_also=("policy/sampler_logp_difference_mean",),
)

RATIO_MIN = Metric(
    name="policy/sampler_ratio_min",
    title="Least sampler correction",
    unit="ratio",
    kind="health",
    meaning="Smallest importance weight between trainer and generation engine.",
    formula="min of pi_learner / pi_sampler",
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
    see_also=("policy/sampler_logp_difference_mean",),
)

RATIO_MAX = Metric(
    name="policy/sampler_ratio_max",
    title="Largest sampler correction",
    unit="ratio",
    kind="health",
    meaning="Largest importance weight between trainer and generation engine.",
    formula="max of pi_learner / pi_sampler",
    see_also=("policy/sampler_ratio_mean",),
)

METRICS = (
    LOGP_DIFFERENCE_MEAN,
    LOGP_DIFFERENCE_MAX,
    RATIO_MIN,
    RATIO_MEAN,
    RATIO_MAX,
)
