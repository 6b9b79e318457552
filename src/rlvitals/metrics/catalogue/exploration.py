"""Exploration metrics: entropy, temperature, noise."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric

ENTROPY = Metric(
    name="exploration/entropy",
    title="Policy entropy",
    unit="nats",
    kind="health",
    meaning="How undecided the policy is, per decision or per token. It falls slowly as the"
    " policy learns; falling early while the outcome is poor is a collapse.",
    formula="mean of -log pi(a|s); at most ln(actions) where actions are discrete, may be"
    " negative where they are continuous",
    better="steady",
    healthy=Band(low_from="entropy_min"),
    see_also=("exploration/entropy_sequence", "exploration/std", "exploration/temperature"),
)

ENTROPY_SEQUENCE = Metric(
    name="exploration/entropy_sequence",
    title="Entropy per sequence",
    unit="nats/sequence",
    kind="health",
    meaning="Entropy added up over a response: it moves with response length as well as with"
    " the policy's certainty.",
    formula="mean over sequences of sum_t -log pi(token_t)",
    better="steady",
    see_also=("exploration/entropy", "language/length_mean"),
)

ENTROPY_SUM = Metric(
    name="exploration/entropy_sum",
    title="Entropy summed over the batch",
    unit="nats/batch",
    kind="health",
    meaning="Entropy added up over a training batch: compare it with its own start only, or"
    " divide by the batch size.",
    formula="sum over the batch of -log pi(a|s)",
    better="steady",
    see_also=("exploration/entropy",),
)

ENTROPY_SHARE = Metric(
    name="exploration/entropy_share",
    title="Entropy as a share of its range",
    unit="share",
    kind="health",
    meaning="Where the entropy stands between the least and the most the policy can have: 1 is"
    " uniform, 0 fully decided.",
    formula="(H - H_min) / (H_max - H_min)",
    better="steady",
    see_also=("exploration/entropy",),
)

ENTROPY_COEF = Metric(
    name="exploration/entropy_coef",
    title="Entropy coefficient in force",
    unit="reward/nat",
    kind="health",
    meaning="The weight of the entropy bonus at this update; SAC's alpha, which it tunes itself.",
    better="steady",
    healthy=Band(low=0.0),
    see_also=("exploration/entropy",),
)

ENTROPY_COEF_LOSS = Metric(
    name="exploration/entropy_coef_loss",
    title="Loss of the entropy coefficient",
    unit="loss",
    kind="health",
    meaning="What SAC minimises to tune alpha: zero where the policy's entropy is on target.",
    formula="-mean(log alpha * (log pi + target_entropy))",
    better="steady",
    see_also=("exploration/entropy_coef",),
)

ENTROPY_BONUS = Metric(
    name="exploration/entropy_bonus",
    title="Entropy bonus in the loss",
    unit="loss",
    kind="health",
    meaning="The entropy as it enters the loss, already weighted: divide it by the coefficient to"
    " have the entropy itself.",
    formula="entropy_coef * H",
    better="steady",
    see_also=("exploration/entropy", "entropy_coef"),
)

TEMPERATURE = Metric(
    name="exploration/temperature",
    title="Sampling temperature",
    unit="ratio",
    kind="health",
    meaning="The temperature that divides the logits when an action is sampled. Pulses may"
    " exceed the upper limit on purpose.",
    formula="pi(a) ~ exp(logit_a / T)",
    better="steady",
    healthy=Band(low=0.5, high=2.0, low_from="min_temperature", high_from="max_temperature"),
    possible=NOT_NEGATIVE,
    see_also=("exploration/is_pulsing", "exploration/entropy"),
)

BASE_TEMPERATURE = Metric(
    name="exploration/base_temperature",
    title="Base temperature",
    unit="ratio",
    kind="health",
    meaning="The temperature before pressure and pulses move it.",
    better="steady",
    see_also=("exploration/temperature",),
)

IS_PULSING = Metric(
    name="exploration/is_pulsing",
    title="Temperature pulse",
    unit="0 or 1",
    kind="health",
    meaning="Whether a temperature pulse is on. Pulses should coincide with stagnation.",
    see_also=("exploration/temperature", "exploration/stagnation"),
)

PULSE_REMAINING = Metric(
    name="exploration/pulse_remaining",
    title="Decisions left of the pulse",
    unit="decisions",
    kind="health",
    meaning="How long the current temperature pulse still lasts.",
    see_also=("exploration/is_pulsing",),
)

STAGNATION = Metric(
    name="exploration/stagnation",
    title="Stagnation level",
    unit="change",
    kind="health",
    meaning="How much throughput and latency still change; near zero sets off a pulse.",
    formula="|d throughput| + |d latency| over the last decisions",
    see_also=("exploration/is_pulsing",),
)

STD = Metric(
    name="exploration/std",
    title="Action standard deviation",
    unit="action",
    kind="health",
    meaning="Width of a Gaussian policy. Shrinking to nothing ends exploration; growing without"
    " end drowns the actions in noise. State-dependent exploration logs another quantity here.",
    formula="mean over action dimensions of exp(log_std)",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("exploration/entropy",),
)

EPSILON = Metric(
    name="exploration/epsilon",
    title="Exploration rate",
    unit="share",
    kind="health",
    meaning="Probability of a random action in epsilon-greedy exploration.",
    better="steady",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("value/q_mean",),
)

ACTION_SHARE = Metric(
    name="exploration/action_share",
    title="Share of an action",
    unit="share",
    kind="health",
    meaning="How often one action is chosen, as a part of all choices: one series per action.",
    formula="count of a_t = i / count of all",
    healthy=SHARE,
    possible=SHARE,
    see_also=("policy/action_count",),
    family=True,
)
ACTION_SHARE_MAX = Metric(
    name="exploration/action_share_max",
    title="Share of the commonest action",
    unit="share",
    kind="health",
    meaning="The part of all choices that falls to the action chosen most: 1 where the policy has"
    " only one left.",
    formula="max_i count of a_t = i / count of all",
    healthy=SHARE,
    possible=SHARE,
    see_also=("exploration/entropy", "policy/action_count"),
)

METRICS = (
    ENTROPY,
    ENTROPY_SEQUENCE,
    ENTROPY_SUM,
    ENTROPY_SHARE,
    ENTROPY_COEF,
    ENTROPY_COEF_LOSS,
    ENTROPY_BONUS,
    TEMPERATURE,
    BASE_TEMPERATURE,
    IS_PULSING,
    PULSE_REMAINING,
    STAGNATION,
    STD,
    EPSILON,
    ACTION_SHARE,
    ACTION_SHARE_MAX,
)
