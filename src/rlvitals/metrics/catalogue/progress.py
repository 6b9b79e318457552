"""Counters of the progress of a run, which are never judged."""

from rlvitals.metrics.metric import NOT_NEGATIVE, Band, Metric


def _counter(suffix: str, title: str, unit: str, meaning: str) -> Metric:
    return Metric(
        name=f"progress/{suffix}",
        title=title,
        unit=unit,
        kind="performance",
        meaning=meaning,
        better="up",
        healthy=Band(low=0.0),
        possible=NOT_NEGATIVE,
    )


EPOCH = _counter("epoch", "Epoch", "epochs", "Passes over the data so far, in fractions.")
PERCENTAGE = _counter("percentage", "Part of the run", "%", "Updates so far, of those planned.")
EPISODE = _counter("episode", "Episodes", "episodes", "Episodes finished so far.")
EPISODES_NEW = _counter(
    "episodes_new", "New episodes", "episodes", "Episodes finished since the previous row."
)
ITERATION = _counter(
    "iteration", "Iteration", "iterations", "Rounds of collecting and learning so far."
)
STEPS = _counter("steps", "Environment steps", "steps", "Environment steps taken so far.")
STEPS_NEW = _counter(
    "steps_new", "New environment steps", "steps", "Environment steps since the previous row."
)
STEPS_TRAINED = _counter(
    "steps_trained", "Steps trained on", "steps", "Samples the learner has used so far."
)
DECISIONS = _counter("decisions", "Decisions", "decisions", "Decisions of the agent so far.")
ROLLOUT_LENGTH = _counter(
    "rollout_length", "Rollout length", "steps", "Steps in the batch of this update."
)
BATCH_SIZE = _counter(
    "batch_size", "Batch size in force", "samples", "Samples in the batch of this update."
)
NORMALISER_COUNT = _counter(
    "normaliser_count", "Samples normalised", "samples", "Samples the running statistics hold."
)
FLOPS = _counter("flops", "Floating-point operations", "FLOP", "Operations spent so far.")

CURRICULUM = Metric(
    name="progress/curriculum",
    title="Curriculum",
    unit="as logged",
    kind="performance",
    meaning="Where a curriculum stands: how hard the task has become. A return that dips as it"
    " rises is no loss of skill.",
    better="depends",
    see_also=("outcome/return",),
    family=True,
)

TOKENS_NEW = _counter(
    "tokens_new", "New tokens", "tokens", "Tokens processed since the previous row."
)

METRICS = (
    EPOCH,
    PERCENTAGE,
    EPISODE,
    EPISODES_NEW,
    ITERATION,
    STEPS,
    STEPS_NEW,
    STEPS_TRAINED,
    DECISIONS,
    ROLLOUT_LENGTH,
    BATCH_SIZE,
    NORMALISER_COUNT,
    FLOPS,
    CURRICULUM,
    TOKENS_NEW,
)
