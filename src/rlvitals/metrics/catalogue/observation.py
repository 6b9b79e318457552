"""Observation metrics: finite, varying and scaled inputs."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric

VARYING = Metric(
    name="observation/varying_share",
    title="Observations that vary",
    unit="share",
    kind="health",
    meaning="Share of the observation's numbers that took more than one value since the previous"
    " point. At zero the policy is blind: a broken sensor, a wrapper that returns a copy.",
    formula="mean over components of [min < max]",
    better="steady",
    healthy=SHARE,
    possible=SHARE,
    see_also=("observation/largest",),
)

FINITE = Metric(
    name="observation/finite_share",
    title="Observations that are numbers",
    unit="share",
    kind="health",
    meaning="Share of the observation's numbers that are neither NaN nor infinite. Anything below"
    " one breaks the first update that sees it.",
    formula="mean over components of [|o| < inf]",
    better="up",
    healthy=Band(low=1.0),
    possible=SHARE,
    see_also=("observation/largest",),
)

LARGEST = Metric(
    name="observation/largest",
    title="Largest observation",
    unit="as observed",
    kind="health",
    meaning="Largest absolute number of the observations. Far above ten a network's first layer"
    " saturates: normalise observations. A climb shows an environment that diverges.",
    formula="max |o|",
    better="steady",
    possible=NOT_NEGATIVE,
    see_also=("observation/varying_share",),
)

METRICS = (VARYING, FINITE, LARGEST)
