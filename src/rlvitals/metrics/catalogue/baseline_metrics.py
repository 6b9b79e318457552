"""Metrics of a policy and a baseline on the same evaluation requests."""

from rlvitals.metrics.metric import NOT_NEGATIVE, Metric

EVAL_LATENCY = Metric(
    name="outcome/eval_latency",
    title="Evaluation latency",
    unit="s",
    kind="outcome",
    meaning="Mean end-to-end time of requests that arrive the same in every evaluation: what"
    " changes is the scheduler.",
    formula="mean over evaluated requests of (completion - arrival)",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/latency", "outcome/baseline_latency"),
)

EVAL_TAIL_LATENCY = Metric(
    name="outcome/eval_tail_latency",
    title="Evaluation tail latency",
    unit="s",
    kind="outcome",
    meaning="A high percentile of the latency of the evaluation's requests.",
    formula="percentile p of latency over evaluated requests",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/tail_latency", "outcome/baseline_tail_latency"),
    family=True,
)

BASELINE_RETURN = Metric(
    name="outcome/baseline_return",
    title="Return of a baseline",
    unit="reward",
    kind="outcome",
    meaning="What a policy that does not learn earns on the evaluation's own episodes, measured"
    " once: less than that is worse than not to train.",
    formula="mean over evaluation episodes of sum_t r_t",
    better="up",
    see_also=("outcome/eval_return",),
)

BASELINE_LATENCY = Metric(
    name="outcome/baseline_latency",
    title="Latency of a baseline",
    unit="s",
    kind="outcome",
    meaning="Mean latency of the evaluation's requests under a scheduler that does not learn.",
    formula="mean over evaluated requests of (completion - arrival)",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/eval_latency",),
)

BASELINE_TAIL_LATENCY = Metric(
    name="outcome/baseline_tail_latency",
    title="Tail latency of a baseline",
    unit="s",
    kind="outcome",
    meaning="A high percentile of that latency.",
    formula="percentile p of latency over evaluated requests",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/eval_tail_latency",),
    family=True,
)

METRICS = (
    EVAL_LATENCY,
    EVAL_TAIL_LATENCY,
    BASELINE_RETURN,
    BASELINE_LATENCY,
    BASELINE_TAIL_LATENCY,
)
