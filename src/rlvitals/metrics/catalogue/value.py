"""Critic metrics: loss, explained variance, scale of values and returns."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric

LOSS = Metric(
    name="value/loss",
    title="Value loss",
    unit="return^2",
    kind="health",
    meaning="How far value predictions are from the returns they aim at. Its size follows the"
    " reward's scale, so compare it with the variance of returns or with its own past.",
    formula="mean((V - R)^2), in some frameworks halved or clipped",
    better="down",
    healthy=Band(low=0.0),
    see_also=("value/explained_variance", "value/return_var"),
)

LOSS_SUM = Metric(
    name="value/loss_sum",
    title="Value loss, summed over the batch",
    unit="return^2",
    kind="health",
    meaning="The value loss added up over a training batch: its size grows with the batch.",
    formula="sum((V - R)^2) / 2",
    better="down",
    healthy=Band(low=0.0),
    see_also=("value/loss",),
)

LOSS_UNCLIPPED = Metric(
    name="value/loss_unclipped",
    title="Value loss before clipping",
    unit="return^2",
    kind="health",
    meaning="The value loss before large errors are cut; far above the clipped one, the cut"
    " hides most of the error from the critic.",
    formula="mean((V - R)^2)",
    better="down",
    healthy=Band(low=0.0),
    see_also=("value/loss",),
)

CRITIC_LOSS = Metric(
    name="value/critic_loss",
    title="Loss of one of several critics",
    unit="return^2",
    kind="health",
    meaning="The loss of one critic where a framework trains several and logs each: twins should"
    " stay close together.",
    formula="mean((Q_i - target)^2)",
    better="down",
    healthy=Band(low=0.0),
    see_also=("value/loss", "value/critic_q"),
    family=True,
)

EXPLAINED_VARIANCE = Metric(
    name="value/explained_variance",
    title="Explained variance",
    unit="share",
    kind="health",
    meaning="Share of the returns' variance that the critic predicts: 1 is perfect, 0 no better"
    " than a constant, negative worse. Meaningless where returns hardly vary, as in a run at its"
    " maximum; short rollouts leave it near 0 in healthy runs.",
    formula="1 - Var(R - V) / Var(R)",
    better="up",
    # No lower end: many healthy runs learn at 0, so a low value alone is no evidence.
    healthy=Band(high=1.0),
    possible=Band(high=1.0),
    see_also=("value/loss", "value/mse_explained_variance", "value/return_var"),
)

MSE_EXPLAINED_VARIANCE = Metric(
    name="value/mse_explained_variance",
    title="Explained variance, by squared error",
    unit="share",
    kind="health",
    meaning="Like explained variance, but a constant offset of the critic counts against it too:"
    " it can be far below zero for a critic that orders states well.",
    formula="1 - mean((V - R)^2) / Var(R)",
    better="up",
    healthy=Band(high=1.0),
    possible=Band(high=1.0),
    see_also=("value/explained_variance",),
)

MEAN = Metric(
    name="value/mean",
    title="Mean value",
    unit="return",
    kind="health",
    meaning="Mean predicted value of the visited states: it should follow the mean return.",
    formula="mean of V(s)",
    better="steady",
    see_also=("value/return_mean",),
)

PREDICTION_MEAN = Metric(
    name="value/prediction_mean",
    title="Mean value while updating",
    unit="return",
    kind="health",
    meaning="Mean value predicted during the update, after the critic has begun to move.",
    formula="mean of V_new(s)",
    better="steady",
    see_also=("value/mean",),
)

STEP = Metric(
    name="value/step",
    title="Value at one decision",
    unit="return",
    kind="health",
    meaning="The value predicted for the state of a single decision.",
    formula="V(s_t)",
    better="steady",
    see_also=("value/mean",),
)

VAR = Metric(
    name="value/var",
    title="Variance of the values",
    unit="return^2",
    kind="health",
    meaning="How much predicted values differ between states; near zero, the critic tells states"
    " apart no more.",
    formula="variance of V(s)",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("value/return_var",),
)

ERROR = Metric(
    name="value/error",
    title="Value error",
    unit="return^2",
    kind="health",
    meaning="Mean squared error of the values against the returns, without clipping.",
    formula="mean((V - R)^2)",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("value/loss", "value/explained_variance"),
)

CLIP_FRACTION = Metric(
    name="value/clip_fraction",
    title="Value clip fraction",
    unit="share",
    kind="health",
    meaning="Share of value updates that were clipped. High: values move much in each update,"
    " or the value clip range does not fit the reward's scale.",
    formula="mean(clipped squared error > plain squared error)",
    better="steady",
    healthy=Band(low=0.0, high=0.3),
    possible=SHARE,
    see_also=("value/loss",),
)

CLIP_RANGE = Metric(
    name="value/clip_range",
    title="Value clip range in force",
    unit="return",
    kind="health",
    meaning="The value clip range of this update, as its schedule gives it.",
    see_also=("value/clip_fraction",),
)

RETURN_MEAN = Metric(
    name="value/return_mean",
    title="Mean return target",
    unit="return",
    kind="health",
    meaning="Mean of the returns that the critic is fitted to (discounted, bootstrapped): not"
    " the episode return.",
    formula="mean of A + V",
    better="up",
    see_also=("value/mean", "outcome/return"),
)

RETURN_VAR = Metric(
    name="value/return_var",
    title="Variance of the return targets",
    unit="return^2",
    kind="health",
    meaning="Spread of the returns that the critic is fitted to: the yardstick of value loss.",
    formula="variance of A + V",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("value/loss",),
)

Q_MEAN = Metric(
    name="value/q_mean",
    title="Mean Q value",
    unit="return",
    kind="health",
    meaning="Mean value that the critic gives to the policy's own actions. Far above what"
    " episodes earn, it is over-estimation; without end, divergence.",
    formula="mean of Q(s, pi(s))",
    better="up",
    see_also=("outcome/return", "value/loss"),
)

CRITIC_Q = Metric(
    name="value/critic_q",
    title="Mean Q value of one of several critics",
    unit="return",
    kind="health",
    meaning="Mean value that one critic gives, where several are trained and each is logged:"
    " a target takes the lower of them, so that over-estimation shows as distance.",
    formula="mean of Q_i(s, a)",
    see_also=("value/q_mean", "value/critic_loss"),
    family=True,
)

Q_MIN = Metric(
    name="value/q_min",
    title="Lowest Q value",
    unit="return",
    kind="health",
    meaning="Lowest Q value of the training batch.",
    see_also=("value/q_mean",),
)

Q_MAX = Metric(
    name="value/q_max",
    title="Highest Q value",
    unit="return",
    kind="health",
    meaning="Highest Q value of the training batch: no return can exceed r_max / (1 - gamma).",
    see_also=("value/q_mean",),
)

TD_ERROR = Metric(
    name="value/td_error",
    title="Temporal-difference error",
    unit="return",
    kind="health",
    meaning="Mean difference between the critic's target and its prediction.",
    formula="mean of r + gamma V(s') - V(s), signed or absolute as the framework takes it",
    better="steady",
    see_also=("value/loss",),
)

METRICS = (
    LOSS,
    LOSS_SUM,
    LOSS_UNCLIPPED,
    CRITIC_LOSS,
    EXPLAINED_VARIANCE,
    MSE_EXPLAINED_VARIANCE,
    MEAN,
    PREDICTION_MEAN,
    STEP,
    VAR,
    ERROR,
    CLIP_FRACTION,
    CLIP_RANGE,
    RETURN_MEAN,
    RETURN_VAR,
    Q_MEAN,
    CRITIC_Q,
    Q_MIN,
    Q_MAX,
    TD_ERROR,
)
