"""Metrics of a request scheduler for a serving cluster: queues, pressure, balance."""

from rlvitals.metrics.metric import NOT_NEGATIVE, Band, Metric

BALANCE_PENALTY = Metric(
    name="scheduler/balance_penalty",
    title="Imbalance of replicas",
    unit="share",
    kind="health",
    meaning="Gap between the fullest and the emptiest replica: near zero once load is balanced."
    " In the hybrid reward it is logged only and does not count.",
    formula="max utilisation - min utilisation of KV-cache blocks",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/action_count",),
)

QUEUE_LENGTH = Metric(
    name="scheduler/queue_length",
    title="Waiting requests",
    unit="requests",
    kind="health",
    meaning="Requests waiting for a replica at one decision: growth without end is overload.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("outcome/latency",),
)

ARRIVALS = Metric(
    name="scheduler/arrival_rate",
    title="Arriving requests",
    unit="requests/s",
    kind="performance",
    meaning="Requests that arrive in a second: more than these no scheduler can finish.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("outcome/throughput", "scheduler/qps_pressure"),
)

SELECTED_REPLICA = Metric(
    name="scheduler/selected_replica",
    title="Replica chosen",
    unit="index",
    kind="health",
    meaning="The replica that one request was sent to.",
    see_also=("policy/action", "policy/action_count"),
)

QPS_PRESSURE = Metric(
    name="scheduler/qps_pressure",
    title="Request-rate pressure",
    unit="share",
    kind="health",
    meaning="How far the request rate is off its target, smoothed; positive lowers the"
    " temperature. Constant, the target merely follows the rate.",
    formula="EMA of (qps - target) / target",
    better="steady",
    see_also=("exploration/temperature",),
)

LATENCY_PRESSURE = Metric(
    name="scheduler/latency_pressure",
    title="Latency pressure",
    unit="share",
    kind="health",
    meaning="How far latency is above its target, smoothed; it lowers the temperature.",
    formula="EMA of max(0, (latency - target) / target)",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("exploration/temperature", "outcome/latency"),
)

DELTA_THROUGHPUT = Metric(
    name="scheduler/delta_throughput",
    title="Change of throughput",
    unit="requests/s",
    kind="health",
    meaning="Throughput now minus throughput at the previous decision.",
    formula="tp_t - tp_{t-1}",
    better="up",
    see_also=("outcome/throughput",),
)

DELTA_LATENCY = Metric(
    name="scheduler/delta_latency",
    title="Change of latency",
    unit="s",
    kind="health",
    meaning="Latency now minus latency at the previous decision.",
    formula="lat_t - lat_{t-1}",
    better="down",
    see_also=("outcome/latency",),
)

THROUGHPUT_EMA = Metric(
    name="scheduler/throughput_ema",
    title="Throughput, smoothed",
    unit="requests/s",
    kind="health",
    meaning="Moving average of throughput: the level the delta score compares with.",
    better="up",
    see_also=("reward/delta",),
)

THROUGHPUT_VAR = Metric(
    name="scheduler/throughput_var",
    title="Variance of throughput",
    unit="(requests/s)^2",
    kind="health",
    meaning="Moving variance of throughput.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("scheduler/throughput_ema",),
)

LATENCY_EMA = Metric(
    name="scheduler/latency_ema",
    title="Latency, smoothed",
    unit="s",
    kind="health",
    meaning="Moving average of latency: the level the delta score compares with.",
    better="down",
    see_also=("reward/delta",),
)

LATENCY_VAR = Metric(
    name="scheduler/latency_var",
    title="Variance of latency",
    unit="s^2",
    kind="health",
    meaning="Moving variance of latency.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("scheduler/latency_ema",),
)

RAW_THROUGHPUT = Metric(
    name="scheduler/raw_throughput",
    title="Throughput as measured",
    unit="requests/s",
    kind="health",
    meaning="Throughput as the simulator gave it, before the reward replaced start-up zeros.",
    better="up",
    see_also=("outcome/throughput",),
)

RAW_LATENCY = Metric(
    name="scheduler/raw_latency",
    title="Latency as measured",
    unit="s",
    kind="health",
    meaning="Latency as the simulator gave it, before the reward replaced start-up zeros.",
    better="down",
    see_also=("outcome/latency",),
)

SKIPPED_METRICS = Metric(
    name="scheduler/skipped_metrics",
    title="Rewards reused",
    unit="0 or 1",
    kind="health",
    meaning="Whether the measurements looked corrupt and the previous reward was used again.",
    better="down",
    see_also=("reward/step",),
)

BUFFER_PROGRESS = Metric(
    name="scheduler/buffer_progress",
    title="Rollout filled",
    unit="share",
    kind="performance",
    meaning="How full the rollout buffer is.",
    see_also=("progress/rollout_length",),
)

EPISODE_MASK = Metric(
    name="scheduler/episode_mask",
    title="Episode goes on",
    unit="0 or 1",
    kind="performance",
    meaning="1 while the episode goes on, 0 where it ends.",
    see_also=("scheduler/buffer_progress",),
)

CURRICULUM = Metric(
    name="scheduler/curriculum",
    title="Curriculum",
    unit="1",
    kind="performance",
    meaning="State of the curriculum: stage, progress, scale of penalties.",
    family=True,
)

TAIL_LATENCY_ALERTS = Metric(
    name="scheduler/tail_latency_alerts",
    title="Tail latency watch",
    unit="count",
    kind="health",
    meaning="Counts of the tail-latency monitor: samples, alerts, violations and their rate.",
    better="down",
    see_also=("outcome/tail_latency",),
    family=True,
)

METRICS = (
    BALANCE_PENALTY,
    QUEUE_LENGTH,
    ARRIVALS,
    SELECTED_REPLICA,
    QPS_PRESSURE,
    LATENCY_PRESSURE,
    DELTA_THROUGHPUT,
    DELTA_LATENCY,
    THROUGHPUT_EMA,
    THROUGHPUT_VAR,
    LATENCY_EMA,
    LATENCY_VAR,
    RAW_THROUGHPUT,
    RAW_LATENCY,
    SKIPPED_METRICS,
    BUFFER_PROGRESS,
    EPISODE_MASK,
    CURRICULUM,
    TAIL_LATENCY_ALERTS,
)
