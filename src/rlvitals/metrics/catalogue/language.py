"""Metrics of language models: lengths, truncation, sample filters, tools, log-probs."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric


def _length(suffix: str, *, title: str, meaning: str, formula: str, also: str) -> Metric:
    return Metric(
        name=f"language/{suffix}",
        title=title,
        unit="tokens",
        kind="health",
        meaning=meaning,
        formula=formula,
        better="depends",
        healthy=Band(low=0.0),
        possible=NOT_NEGATIVE,
        see_also=(f"language/{also}",),
    )


LENGTH_MEAN = _length(
    "length_mean",
    title="Response length",
    meaning="Mean tokens of a response. Growing is the aim of some training and a way to game"
    " others: judge it with truncation and held-out scores.",
    formula="mean over responses of tokens",
    also="truncated_share",
)
LENGTH_STD = _length(
    "length_std",
    title="Spread of response lengths",
    meaning="How much response lengths differ; exploding, some responses never end.",
    formula="standard deviation over responses of tokens",
    also="length_mean",
)
LENGTH_MIN = _length(
    "length_min",
    title="Shortest response",
    meaning="Tokens of the shortest response of the batch.",
    formula="min over responses of tokens",
    also="length_mean",
)
LENGTH_MAX = _length(
    "length_max",
    title="Longest response",
    meaning="Tokens of the longest response; at the limit, responses are being cut.",
    formula="max over responses of tokens",
    also="truncated_share",
)
LENGTH_DISTRIBUTION = _length(
    "length_distribution",
    title="Response lengths",
    meaning="Tokens of every response, as a histogram.",
    formula="histogram of tokens",
    also="length_mean",
)
TERMINATED_LENGTH_MEAN = _length(
    "terminated_length_mean",
    title="Length of finished responses",
    meaning="Mean tokens of the responses that ended by themselves; 0 where none did.",
    formula="mean over finished responses of tokens",
    also="length_mean",
)
TERMINATED_LENGTH_MIN = _length(
    "terminated_length_min",
    title="Shortest finished response",
    meaning="Tokens of the shortest response that ended by itself; 0 where none did.",
    formula="min over finished responses of tokens",
    also="terminated_length_mean",
)
TERMINATED_LENGTH_MAX = _length(
    "terminated_length_max",
    title="Longest finished response",
    meaning="Tokens of the longest response that ended by itself; 0 where none did.",
    formula="max over finished responses of tokens",
    also="terminated_length_mean",
)
QUERY_LENGTH_MEAN = _length(
    "query_length_mean",
    title="Prompt length",
    meaning="Mean tokens of a prompt: a drift means the data changed.",
    formula="mean over prompts of tokens",
    also="length_mean",
)
QUERY_LENGTH_STD = _length(
    "query_length_std",
    title="Spread of prompt lengths",
    meaning="How much prompt lengths differ.",
    formula="standard deviation over prompts of tokens",
    also="query_length_mean",
)
QUERY_LENGTH_DISTRIBUTION = _length(
    "query_length_distribution",
    title="Prompt lengths",
    meaning="Tokens of every prompt, as a histogram.",
    formula="histogram of tokens",
    also="query_length_mean",
)

TRUNCATED_SHARE = Metric(
    name="language/truncated_share",
    title="Truncated responses",
    unit="share",
    kind="health",
    meaning="Share of responses cut at the length limit instead of ending by themselves: their"
    " reward is often wrong.",
    formula="responses without an end token / responses",
    better="down",
    healthy=SHARE,
    possible=SHARE,
    see_also=("language/length_max", "max_completion_length"),
)

EOS_TOKENS = Metric(
    name="language/eos_tokens",
    title="End-of-sequence tokens",
    unit="tokens",
    kind="health",
    meaning="End tokens in the batch's responses: falling to zero, no response is complete.",
    formula="count of end tokens",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/truncated_share",),
)

POSITIVE_SAMPLES = Metric(
    name="language/positive_samples",
    title="Positive samples",
    unit="samples",
    kind="health",
    meaning="Samples at or above the reward threshold. PSR learns from these alone: none means"
    " no gradient.",
    formula="count of r >= reward_threshold",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/negative_samples", "reward_threshold"),
)

POSITIVE_SHARE = Metric(
    name="language/positive_share",
    title="Positive share",
    unit="share",
    kind="health",
    meaning="Share of samples at or above the reward threshold; it rises as the model learns.",
    formula="positive samples / samples",
    better="up",
    healthy=SHARE,
    possible=SHARE,
    see_also=("language/positive_samples",),
)

NEGATIVE_SAMPLES = Metric(
    name="language/negative_samples",
    title="Negative samples",
    unit="samples",
    kind="health",
    meaning="Samples below the reward threshold. NSR learns from these alone: none means no"
    " gradient, which is also what success looks like.",
    formula="count of r < reward_threshold",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/positive_samples", "reward_threshold"),
)

NEGATIVE_SHARE = Metric(
    name="language/negative_share",
    title="Negative share",
    unit="share",
    kind="health",
    meaning="Share of samples below the reward threshold; it falls as the model learns.",
    formula="negative samples / samples",
    better="down",
    healthy=SHARE,
    possible=SHARE,
    see_also=("language/negative_samples",),
)

POS_NEG_RATIO = Metric(
    name="language/pos_neg_ratio",
    title="Positive to negative",
    unit="ratio",
    kind="health",
    meaning="Positive samples for each negative one in W-REINFORCE.",
    formula="positive / negative",
    better="up",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/positive_share", "lambda_psr"),
)

FILTERED_REWARD = Metric(
    name="language/filtered_reward",
    title="Reward after the filter",
    unit="reward",
    kind="health",
    meaning="Mean reward after PSR, NSR or W-REINFORCE has filtered and signed it. Negative in"
    " NSR by design; never compare it with a raw reward.",
    formula="psr: r if r >= thr else 0; nsr: -|r - thr| if r < thr else 0; w-reinforce: lambda r"
    " or -|r - thr|",
    better="up",
    see_also=("outcome/reward",),
)

COMPARED_REWARD = Metric(
    name="language/compared_reward",
    title="Reward compared with the threshold",
    unit="reward",
    kind="health",
    meaning="Mean of the reward that tells positive from negative samples in PSR, NSR and"
    " W-REINFORCE, before anything is filtered: correctness, or the total where that is compared.",
    formula="mean over the batch of the compared r",
    better="up",
    see_also=("language/filtered_reward", "reward_threshold"),
)

LOGPROBS = Metric(
    name="language/logprobs",
    title="Log-probabilities",
    unit="nats",
    kind="health",
    meaning="Log-probabilities that the policy gives to the response tokens.",
    formula="log pi(token)",
    see_also=("language/ref_logprobs",),
)

REF_LOGPROBS = Metric(
    name="language/ref_logprobs",
    title="Reference log-probabilities",
    unit="nats",
    kind="health",
    meaning="Log-probabilities that the frozen reference gives to the same tokens.",
    formula="log pi_ref(token)",
    see_also=("language/logprobs", "policy/kl_to_reference"),
)

TOOL_CALLS = Metric(
    name="language/tool_calls",
    title="Tool calls per response",
    unit="calls",
    kind="health",
    meaning="Tool calls per response: falling to zero, the model has given tools up.",
    better="depends",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/tool_failures",),
)

TOOL_FAILURES = Metric(
    name="language/tool_failures",
    title="Failed tool calls",
    unit="share",
    kind="health",
    meaning="Share of tool calls that failed.",
    better="down",
    healthy=SHARE,
    possible=SHARE,
    see_also=("language/tool_calls",),
)

METRICS = (
    LENGTH_MEAN,
    LENGTH_STD,
    LENGTH_MIN,
    LENGTH_MAX,
    LENGTH_DISTRIBUTION,
    TERMINATED_LENGTH_MEAN,
    TERMINATED_LENGTH_MIN,
    TERMINATED_LENGTH_MAX,
    QUERY_LENGTH_MEAN,
    QUERY_LENGTH_STD,
    QUERY_LENGTH_DISTRIBUTION,
    TRUNCATED_SHARE,
    EOS_TOKENS,
    POSITIVE_SAMPLES,
    POSITIVE_SHARE,
    NEGATIVE_SAMPLES,
    NEGATIVE_SHARE,
    POS_NEG_RATIO,
    FILTERED_REWARD,
    COMPARED_REWARD,
    LOGPROBS,
    REF_LOGPROBS,
    TOOL_CALLS,
    TOOL_FAILURES,
)
