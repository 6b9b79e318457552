"""Throughput metrics: steps, updates, tokens and episodes per second."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric


def _rate(  # noqa: PLR0913 - the fields of one noun, each named at its call
    suffix: str, *, title: str, unit: str, meaning: str, formula: str, also: str
) -> Metric:
    return Metric(
        name=f"throughput/{suffix}",
        title=title,
        unit=unit,
        kind="performance",
        meaning=meaning,
        formula=formula,
        better="up",
        healthy=Band(low=0.0),
        possible=NOT_NEGATIVE,
        see_also=(f"throughput/{also}",),
    )


STEPS_PER_SECOND = _rate(
    "steps_per_second",
    title="Steps per second",
    unit="steps/s",
    meaning="Environment steps collected per second. An average since the start hides a slowdown:"
    " judge the differences of steps and time.",
    formula="environment steps / seconds",
    also="updates_per_second",
)
UPDATES_PER_SECOND = _rate(
    "updates_per_second",
    title="Updates per second",
    unit="updates/s",
    meaning="Optimiser updates per second; low beside fast collection, the learner starves or its"
    " batches are too small.",
    formula="updates / seconds",
    also="steps_per_second",
)
EPISODES_PER_SECOND = _rate(
    "episodes_per_second",
    title="Episodes per second",
    unit="episodes/s",
    meaning="Episodes finished per second, usually averaged since the start.",
    formula="episodes / seconds",
    also="steps_per_second",
)
SAMPLES_PER_SECOND = _rate(
    "samples_per_second",
    title="Samples per second",
    unit="samples/s",
    meaning="Training samples processed per second.",
    formula="samples / seconds",
    also="updates_per_second",
)
EVAL_SAMPLES_PER_SECOND = _rate(
    "eval_samples_per_second",
    title="Evaluation samples per second",
    unit="samples/s",
    meaning="Evaluation samples processed per second.",
    formula="samples / seconds",
    also="samples_per_second",
)
SAMPLER_RATE = _rate(
    "sampler_rate",
    title="Sampling rate",
    unit="steps/s",
    meaning="Steps per second of the collecting side alone.",
    formula="collected steps / sampling seconds",
    also="learner_rate",
)
LEARNER_RATE = _rate(
    "learner_rate",
    title="Learning throughput",
    unit="samples/s",
    meaning="Samples per second of the learning side alone.",
    formula="trained samples / learning seconds",
    also="sampler_rate",
)
TOKENS = _rate(
    "tokens",
    title="Tokens so far",
    unit="tokens",
    meaning="Prompt and response tokens processed since the start: its slope is tokens per second.",
    formula="running sum of tokens",
    also="step_time",
)

STEP_TIME = Metric(
    name="throughput/step_time",
    title="Time of a step",
    unit="s",
    kind="performance",
    meaning="Seconds of one training step or iteration, generation included.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/phase_time",),
)

PHASE_TIME = Metric(
    name="throughput/phase_time",
    title="Time of a phase",
    unit="as logged",
    kind="performance",
    meaning="Time spent in one phase of a step: sampling, forward pass, optimisation, waiting."
    " Seconds, but milliseconds in old RLlib.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/step_time",),
    family=True,
)

PHASE_SHARE = Metric(
    name="throughput/phase_share",
    title="Share of the time of a phase",
    unit="share",
    kind="performance",
    meaning="Part of the wall time that one phase of the loop takes: collecting, learning.",
    formula="seconds of the phase / seconds since the row before",
    healthy=SHARE,
    possible=NOT_NEGATIVE,
    see_also=("throughput/phase_time",),
    family=True,
)
RECORDER_SHARE = Metric(
    name="throughput/recorder_share",
    title="Share of the time that recording takes",
    unit="share",
    kind="performance",
    meaning="CPU time of the recorder for each second of the training.",
    formula="CPU seconds of the recorder / seconds since the row before",
    better="down",
    healthy=Band(low=0.0, high=0.02),
    possible=NOT_NEGATIVE,
)
ELAPSED = Metric(
    name="throughput/elapsed",
    title="Time since the start",
    unit="s",
    kind="performance",
    meaning="Seconds since training began, as logged.",
    better="depends",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/steps_per_second",),
)

EVAL_ELAPSED = Metric(
    name="throughput/eval_elapsed",
    title="Time of an evaluation",
    unit="s",
    kind="performance",
    meaning="Seconds one evaluation took.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/elapsed",),
)

MACHINE = Metric(
    name="throughput/machine",
    title="Machine load",
    unit="%",
    kind="performance",
    meaning="Use of processor, memory or accelerator in percent.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/steps_per_second",),
    family=True,
)

PHASE_RATE = Metric(
    name="throughput/rate",
    title="Rates by phase",
    unit="as logged",
    kind="performance",
    meaning="Tokens, samples or operations per second of one phase, replica or device, by name.",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/tokens_per_second",),
    family=True,
)

DATA_SIZE = Metric(
    name="throughput/size",
    title="Data moved or stored",
    unit="as logged",
    kind="performance",
    meaning="Bytes, or elements of the weights, that one transfer moves, or that a disk holds.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/phase_time",),
    family=True,
)

LOAD = Metric(
    name="throughput/load",
    title="Load of the system",
    unit="processes",
    kind="performance",
    meaning="Processes that run or wait to run, over the last minute: more than there are cores,"
    " and each gets less than one.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/cores", "throughput/machine"),
)

CORES = Metric(
    name="throughput/cores",
    title="Cores of the machine",
    unit="cores",
    kind="performance",
    meaning="Processor cores of the whole machine, whoever may use them: what its load is held"
    " against.",
    healthy=Band(low=1.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/load",),
)

HANDLES = Metric(
    name="throughput/handles",
    title="Threads and open files",
    unit="count",
    kind="performance",
    meaning="Threads and open files of the training process: a steady climb ends at a limit.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/memory",),
    family=True,
)

DISK_FREE = Metric(
    name="throughput/disk_free",
    title="Room on the disk",
    unit="GiB",
    kind="performance",
    meaning="Room that is left on the disk of the run's folder.",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/machine",),
)

POWER = Metric(
    name="throughput/power",
    title="Power of an accelerator",
    unit="W",
    kind="performance",
    meaning="Power that an accelerator draws: far below its limit, it waits.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/machine",),
    family=True,
)

HEAT = Metric(
    name="throughput/temperature",
    title="Temperature of an accelerator",
    unit="°C",
    kind="performance",
    meaning="Temperature of an accelerator: near its limit its clock is slowed.",
    see_also=("throughput/power",),
    family=True,
)

WORKERS = Metric(
    name="throughput/workers",
    title="Healthy workers",
    unit="workers",
    kind="performance",
    meaning="Rollout workers that answer; fewer than configured means some have died.",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/steps_per_second",),
)

TOKENS_PER_SECOND = _rate(
    "tokens_per_second",
    title="Tokens per second",
    unit="tokens/s",
    meaning="Tokens processed per second by all devices together. Which tokens and which seconds"
    " count differs: the whole step, or the update alone.",
    formula="tokens / seconds",
    also="tokens_per_second_per_device",
)
TOKENS_PER_SECOND_PER_DEVICE = _rate(
    "tokens_per_second_per_device",
    title="Tokens per second and device",
    unit="tokens/s",
    meaning="Tokens processed per second, divided by the devices.",
    formula="tokens / seconds / devices",
    also="tokens_per_second",
)

MFU = Metric(
    name="throughput/mfu",
    title="Use of the accelerators' peak",
    unit="share",
    kind="performance",
    meaning="Model FLOPs utilisation: operations the model needs over what the devices could do.",
    formula="FLOP of the model / (seconds x peak FLOP/s)",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    see_also=("throughput/tokens_per_second",),
    family=True,
)

MEMORY = Metric(
    name="throughput/memory",
    title="Memory",
    unit="GiB",
    kind="performance",
    meaning="Memory of device or host: a steady climb ends in an out-of-memory error.",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/machine",),
    family=True,
)

TOKEN_TIME = Metric(
    name="throughput/token_time",
    title="Time of a phase per token",
    unit="ms/token",
    kind="performance",
    meaning="Milliseconds one phase of a step takes for each of its tokens: longer responses alone"
    " do not raise it.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("throughput/phase_time",),
    family=True,
)

WAIT_SHARE = Metric(
    name="throughput/wait_share",
    title="Share of time waited",
    unit="share",
    kind="performance",
    meaning="Share of a step in which the trainer waits for samples.",
    formula="seconds waited / seconds of the step",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    see_also=("throughput/phase_time",),
)

PREEMPTIONS = Metric(
    name="throughput/preemptions",
    title="Preempted requests",
    unit="requests",
    kind="performance",
    meaning="Requests that the generation engine stopped to free its cache, and computes again"
    " later. A count since the previous row or since the start, as the framework keeps it.",
    better="down",
    healthy=Band(low=0.0),
    see_also=("throughput/memory",),
)

METRICS = (
    STEPS_PER_SECOND,
    UPDATES_PER_SECOND,
    EPISODES_PER_SECOND,
    SAMPLES_PER_SECOND,
    EVAL_SAMPLES_PER_SECOND,
    SAMPLER_RATE,
    LEARNER_RATE,
    TOKENS,
    STEP_TIME,
    PHASE_TIME,
    PHASE_SHARE,
    RECORDER_SHARE,
    ELAPSED,
    EVAL_ELAPSED,
    MACHINE,
    PHASE_RATE,
    DATA_SIZE,
    LOAD,
    CORES,
    HANDLES,
    DISK_FREE,
    POWER,
    HEAT,
    WORKERS,
    TOKENS_PER_SECOND,
    TOKENS_PER_SECOND_PER_DEVICE,
    MFU,
    MEMORY,
    TOKEN_TIME,
    WAIT_SHARE,
    PREEMPTIONS,
)
