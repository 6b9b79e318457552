"""Generation metrics of a language run: turns, failures, dropped samples."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric, share_metric


def _count(suffix: str, title: str, unit: str, meaning: str) -> Metric:
    return Metric(
        name=f"language/{suffix}",
        title=title,
        unit=unit,
        kind="health",
        meaning=meaning,
        healthy=Band(low=0.0),
        possible=NOT_NEGATIVE,
        see_also=("language/length_mean",),
    )


def _share(suffix: str, title: str, meaning: str, formula: str) -> Metric:
    see_also = "language/truncated_share"
    return share_metric(f"language/{suffix}", title, meaning, formula, see_also)


TURNS_MEAN = _count(
    "turns_mean", "Turns", "turns",
    "Mean turns of a conversation or episode: at the cap, tasks are not finished; at one, the"
    " model has given tools up.",
)  # fmt: skip
TURNS_MIN = _count("turns_min", "Fewest turns", "turns", "Turns of the shortest episode.")
TURNS_MAX = _count("turns_max", "Most turns", "turns", "Turns of the longest episode.")
SEQUENCE_LENGTH_MEAN = _count(
    "sequence_length_mean", "Sequence length", "tokens",
    "Mean tokens of prompt and response together: no response length.",
)  # fmt: skip
SEQUENCE_LENGTH_MIN = _count(
    "sequence_length_min", "Shortest sequence", "tokens", "Fewest tokens of prompt and response."
)
SEQUENCE_LENGTH_MAX = _count(
    "sequence_length_max", "Longest sequence", "tokens", "Most tokens of prompt and response."
)
LENGTH_RIGHT = _count(
    "sequence_length_right", "Length of rewarded sequences", "tokens",
    "Mean tokens, prompt included, of sequences with a reward above 0. Far below the others"
    " length is a symptom of not finding the answer, far above it the reward pays for length.",
)  # fmt: skip
LENGTH_WRONG = _count(
    "sequence_length_wrong", "Length of unrewarded sequences", "tokens",
    "Mean tokens, prompt included, of sequences with a reward of 0 or below.",
)  # fmt: skip
QUERY_LENGTH_MIN = _count(
    "query_length_min", "Shortest prompt", "tokens", "Tokens of the batch's shortest prompt."
)
QUERY_LENGTH_MAX = _count(
    "query_length_max", "Longest prompt", "tokens",
    "Tokens of the batch's longest prompt: at the limit, prompts are being cut.",
)  # fmt: skip
QUERY_TRUNCATED_SHARE = _share(
    "query_truncated_share", "Prompts at the limit",
    "Share of prompts as long as the limit: they were probably cut.",
    "prompts at the limit / prompts",
)  # fmt: skip
ABORTED_SHARE = _share(
    "aborted_share", "Aborted responses",
    "Share of responses without a single token: aborted by the engine, or timed out.",
    "responses of length 0 / responses",
)  # fmt: skip
ERROR_SHARE = _share(
    "error_share", "Failed rollouts",
    "Share of rollouts that ended in an error of environment, tool or judge. A reward of 0 that"
    " comes from an error teaches the wrong thing.",
    "rollouts with an error / rollouts",
)  # fmt: skip
CANCELLED_SHARE = _share(
    "cancelled_share", "Cancelled rollouts",
    "Share of rollouts thrown away because their policy had become too old.",
    "cancelled / rollouts",
)  # fmt: skip
REPETITION_SHARE = _share(
    "repetition_share", "Responses that repeat themselves",
    "Share of responses whose end is one text over and over.",
    "responses whose last 10,000 characters compress more than tenfold / responses",
)  # fmt: skip
KEPT_SHARE = Metric(
    name="language/kept_share",
    title="Kept by dynamic sampling",
    unit="share",
    kind="health",
    meaning="Share of generated groups that dynamic sampling keeps, as they hold right and wrong"
    " answers. Falling, most generation is thrown away.",
    formula="groups kept / groups generated",
    better="up",
    healthy=SHARE,
    possible=SHARE,
    see_also=("reward/group_zero_std", "language/generation_batches"),
)
GENERATION_BATCHES = _count(
    "generation_batches", "Generation batches per update", "batches",
    "Batches generated until dynamic sampling had enough groups with contrast: rising, prompts"
    " have become too easy or too hard.",
)  # fmt: skip
DROPPED = Metric(
    name="language/dropped",
    title="Dropped samples",
    unit="as logged",
    kind="health",
    meaning="Samples or groups that were generated and not trained on, by reason. A count since"
    " the previous row or since the start, as the framework keeps it.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/kept_share", "optimiser/policy_lag"),
    family=True,
)

PARTIAL_SHARE = _share(
    "partial_share", "Responses of several policies",
    "Share of responses that were begun by one version of the policy and finished by a later one.",
    "responses across a synchronisation / responses",
)  # fmt: skip
RESPONSE_TIME_MEDIAN = _count(
    "response_time_median", "Usual time of a response", "s",
    "Median seconds that one response took, its tools and its environment included.",
)  # fmt: skip
RESPONSE_TIME_P99 = _count(
    "response_time_p99", "Time of the slowest responses", "s",
    "Seconds that 99 of 100 responses stayed below: far above the median, the batch waits for"
    " stragglers.",
)  # fmt: skip


def _by_kind(part: str, title: str, unit: str, meaning: str) -> Metric:
    return Metric(
        name=f"language/{part}",
        title=title,
        unit=unit,
        kind="health",
        meaning=meaning,
        see_also=("language/error_share",),
        family=True,
    )


STATISTIC = _by_kind(
    "statistic", "Other numbers of the framework", "as logged",
    "A number under the framework's own name whose meaning is not known here. It is shown, and"
    " judged by no rule.",
)  # fmt: skip
# The kinds below say what sort of number a framework logs; no rule judges them.
COUNT = _by_kind(
    "count", "Counts", "count",
    "How many rollouts, groups, samples, requests or versions there were, or how many stand in a"
    " queue, under the framework's own name: of the step or since the start, as it keeps them.",
)  # fmt: skip
EXTREME = _by_kind(
    "extreme", "Extremes and spread", "as logged",
    "The least, the largest, a percentile or the spread of a number over the batch, by name. Its"
    " mean is a metric of its own where it is logged.",
)  # fmt: skip
SHARE_OF = _by_kind(
    "share", "Shares", "share",
    "A part of the responses, groups, tokens or requests under the framework's own name.",
)  # fmt: skip
LENGTH_OF = _by_kind(
    "length", "Lengths counted another way", "tokens",
    "Tokens of a part of the responses, or counted with padding, tools or all turns: not the mean"
    " length of a response.",
)  # fmt: skip
HELD_OUT = _by_kind(
    "held_out", "Responses to held-out prompts", "as logged",
    "What is measured of training under the name that follows, here of an evaluation: a length, a"
    " share of cut responses, a spread.",
)  # fmt: skip
LOGGED_SETTING = _by_kind(
    "setting", "Settings in force", "as logged",
    "A threshold, a weight or a limit that the framework logs with every row: chosen or scheduled,"
    " not measured.",
)  # fmt: skip
STOP_REASON = _by_kind(
    "stop_reason", "Why rollouts end", "as logged",
    "How many rollouts ended for one reason (answered, length limit, turn limit, error), as a"
    " share or a count, as the framework keeps it. A shift from answered to any other is the first"
    " sign of a tool or an environment that fails.",
)  # fmt: skip
ERRORS = _by_kind(
    "error", "Failed rollouts by kind", "as logged",
    "How many rollouts failed in one way, as a share or a count, as the framework keeps it.",
)  # fmt: skip
TOOL_USE = _by_kind(
    "tool_use", "Calls of one tool", "calls/response",
    "Calls of one tool for each response: falling to 0, the model has given it up.",
)  # fmt: skip
TOOL_ERRORS = _by_kind(
    "tool_errors", "Failing calls of one tool", "share",
    "Share of one tool's calls that fail.",
)  # fmt: skip
TURN_LENGTH = _count(
    "turn_length_mean", "Length of a turn", "tokens",
    "Mean tokens that the policy writes in one turn of a conversation.",
)  # fmt: skip
POLICY_TOKENS_MEAN = _count(
    "policy_tokens_mean", "Tokens that the policy wrote", "tokens",
    "Mean tokens of a response that the policy itself wrote: what tools and environments answered"
    " is left out.",
)  # fmt: skip
POLICY_TOKEN_SHARE = share_metric(
    "language/policy_token_share", "Share of tokens that the policy wrote",
    "Share of a response's tokens that the policy itself wrote: 1 where no tool or environment"
    " answers. Falling, results of tools fill the context.",
    "tokens of the policy / tokens of the response",
    "language/policy_tokens_mean",
    better="depends",
)  # fmt: skip
ROWS_PER_TRAJECTORY = _count(
    "rows_per_trajectory", "Training rows of a trajectory", "rows",
    "Rows that one trajectory becomes when turns with a common beginning are merged: 1 where all"
    " are. More, the context was rewritten or its tokens changed between turns.",
)  # fmt: skip
TURNS_PER_ROW = _count(
    "turns_per_row", "Turns merged into a training row", "turns",
    "Turns of the batch for each training row: the usual number of turns where all turns of a"
    " trajectory are merged, 1 where none are.",
)  # fmt: skip
RIGHT_LENGTHS = share_metric(
    "language/right_lengths", "Right answers by length",
    "Share of the right answers whose length lies in one quarter of the length limit, by the upper"
    " end of the quarter in per cent.",
    "right answers with a length in the quarter / right answers",
    "language/length_mean",
    better="depends",
    family=True,
)  # fmt: skip
METRICS = (
    TURNS_MEAN,
    TURNS_MIN,
    TURNS_MAX,
    SEQUENCE_LENGTH_MEAN,
    SEQUENCE_LENGTH_MIN,
    SEQUENCE_LENGTH_MAX,
    LENGTH_RIGHT,
    LENGTH_WRONG,
    QUERY_LENGTH_MIN,
    QUERY_LENGTH_MAX,
    QUERY_TRUNCATED_SHARE,
    ABORTED_SHARE,
    ERROR_SHARE,
    CANCELLED_SHARE,
    REPETITION_SHARE,
    KEPT_SHARE,
    GENERATION_BATCHES,
    DROPPED,
    PARTIAL_SHARE,
    RESPONSE_TIME_MEDIAN,
    RESPONSE_TIME_P99,
    STATISTIC,
    COUNT,
    EXTREME,
    SHARE_OF,
    LENGTH_OF,
    HELD_OUT,
    LOGGED_SETTING,
    STOP_REASON,
    ERRORS,
    TOOL_USE,
    TOOL_ERRORS,
    TURN_LENGTH,
    POLICY_TOKENS_MEAN,
    POLICY_TOKEN_SHARE,
    ROWS_PER_TRAJECTORY,
    TURNS_PER_ROW,
    RIGHT_LENGTHS,
)
