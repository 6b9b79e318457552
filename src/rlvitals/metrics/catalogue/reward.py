"""Reward metrics: mean, spread, components, groups."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric, share_metric

MEAN = Metric(
    name="reward/mean",
    title="Mean step reward",
    unit="reward",
    kind="health",
    meaning="Mean reward of one environment step in the collected batch, where episodes have"
    " returns of their own. Not the return: it mixes episodes of different length.",
    formula="mean over collected steps of r_t",
    better="up",
    see_also=("outcome/return", "outcome/reward"),
)

STEP = Metric(
    name="reward/step",
    title="Reward of one decision",
    unit="reward",
    kind="health",
    meaning="The reward of the single decision logged: noisy by nature, judge it in blocks.",
    formula="r_t",
    better="up",
    see_also=("outcome/reward",),
)

STD = Metric(
    name="reward/std",
    title="Reward spread",
    unit="reward",
    kind="health",
    meaning="How much rewards differ within a batch. Zero means nothing to learn from; an"
    " explosion means a few extreme rewards rule the update.",
    formula="standard deviation over the batch of r",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("reward/group_std", "reward/group_zero_std"),
)

GROUP_STD = Metric(
    name="reward/group_std",
    title="Reward spread within groups",
    unit="reward",
    kind="health",
    meaning="Mean over prompts of the spread of rewards within a prompt's group: what GRPO's"
    " advantages are made of. Smaller than the batch's spread.",
    formula="mean over groups of std(r in group)",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("reward/std", "reward/group_zero_std"),
)

MIN = Metric(
    name="reward/min",
    title="Lowest reward",
    unit="reward",
    kind="health",
    meaning="The lowest reward of the batch.",
    formula="min over the batch of r",
    see_also=("reward/std",),
)

MAX = Metric(
    name="reward/max",
    title="Highest reward",
    unit="reward",
    kind="health",
    meaning="The highest reward of the batch.",
    formula="max over the batch of r",
    see_also=("reward/std",),
)

DISTRIBUTION = Metric(
    name="reward/distribution",
    title="Reward distribution",
    unit="reward",
    kind="health",
    meaning="All rewards of the batch, as a histogram: long tails mean a few samples rule.",
    formula="histogram of r",
    see_also=("reward/std",),
)

COMPONENT = Metric(
    name="reward/component",
    title="Reward component",
    unit="reward",
    kind="health",
    meaning="One part of a composed reward. When an easy part (format, length) makes all the"
    " gain while the part that matters stands still, the reward is being gamed.",
    formula="mean over the batch of r_i, with reward = sum_i w_i r_i",
    better="up",
    see_also=("outcome/reward",),
    family=True,
)

COMPONENT_STD = Metric(
    name="reward/component_std",
    title="Spread of a reward component",
    unit="reward",
    kind="health",
    meaning="How much one part of the reward differs within the batch; zero throughout means"
    " the part never told completions apart.",
    formula="standard deviation over the batch of r_i",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("reward/component",),
    family=True,
)

EVAL_COMPONENT = Metric(
    name="reward/eval_component",
    title="Reward component on held-out prompts",
    unit="reward",
    kind="outcome",
    meaning="One part of a composed reward, measured on held-out prompts.",
    formula="mean over the evaluation set of r_i",
    better="up",
    see_also=("reward/component",),
    family=True,
)

ABSOLUTE = Metric(
    name="reward/absolute",
    title="Absolute score",
    unit="reward",
    kind="health",
    meaning="The part of the scheduler's reward that pays the level of throughput and latency.",
    formula="throughput / target - alpha * latency / threshold",
    better="up",
    see_also=("reward/delta",),
)

DELTA = Metric(
    name="reward/delta",
    title="Delta score",
    unit="reward",
    kind="health",
    meaning="The part of the scheduler's reward that pays improvement over the recent average."
    " A negative total beside a positive absolute score means this part weighs too much.",
    formula="beta * (tp - EMA_tp) / EMA_tp - gamma * (lat - EMA_lat) / EMA_lat",
    better="up",
    see_also=("reward/absolute",),
)

RAW = Metric(
    name="reward/raw",
    title="Raw reward",
    unit="reward",
    kind="health",
    meaning="The reward before it is scaled, compressed or clipped.",
    better="up",
    see_also=("reward/step",),
)

CLIPPED = Metric(
    name="reward/clipped",
    title="Clipped reward",
    unit="reward",
    kind="health",
    meaning="The reward after clipping: sitting at the limit, the agent sees no difference.",
    see_also=("reward/raw",),
)

NON_SCORE = Metric(
    name="reward/non_score",
    title="KL penalty in the reward, per sequence",
    unit="score",
    kind="health",
    meaning="The part of the RLHF reward that does not come from the reward model. Negative"
    " where KL is positive; it should not outweigh changes of the score.",
    formula="-kl_coef * mean over sequences of sum_t KL_t",
    better="depends",
    see_also=("reward/non_score_per_token", "outcome/rlhf_reward", "policy/kl_coef"),
)

NON_SCORE_PER_TOKEN = Metric(
    name="reward/non_score_per_token",
    title="KL penalty in the reward, per token",
    unit="score/token",
    kind="health",
    meaning="The KL penalty averaged over tokens: smaller than the per-sequence one by the"
    " response length, so never compare it with a score.",
    formula="mean over tokens of -kl_coef * KL_t",
    better="depends",
    see_also=("reward/non_score",),
)

GROUP_ZERO_STD = Metric(
    name="reward/group_zero_std",
    title="Groups without contrast",
    unit="share",
    kind="health",
    meaning="Share of prompts whose completions all earned the same reward: they teach nothing."
    " It rises as a model masters its data, so a high value is an error only when the outcome"
    " stalls.",
    formula="share of groups with std(r) = 0",
    better="depends",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("reward/group_std",),
)

SCORE_STD = Metric(
    name="reward/score_std",
    title="Spread of the scores",
    unit="score",
    kind="health",
    meaning="Spread over sequences of the score PPO is given.",
    formula="standard deviation over sequences of score",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("outcome/score",),
)

INTRINSIC = Metric(
    name="reward/intrinsic",
    title="Intrinsic reward of an episode",
    unit="reward",
    kind="health",
    meaning="What curiosity or imitation pays over an episode beside the environment's own reward."
    " It fades as novelty wears off; outweighing the environment's, the agent chases novelty.",
    formula="sum_t of the intrinsic r_t",
    better="depends",
    see_also=("outcome/return",),
)

SHAPED = Metric(
    name="reward/shaped",
    title="Reward after baseline and penalty",
    unit="reward",
    kind="health",
    meaning="Mean per sequence of the reward as the advantage is made of it: less the group's"
    " baseline, scaled, less the KL penalty. About 0 by construction where a baseline is"
    " subtracted; never a score.",
    formula="mean over sequences of sum_t r_t after shaping",
    see_also=("outcome/reward",),
)

TRAINED_MEAN = Metric(
    name="reward/trained_mean",
    title="Mean reward of what is trained on",
    unit="reward",
    kind="health",
    meaning="Mean reward of the batch that reaches the update, after groups were dropped: with"
    " dynamic sampling it stays near the middle however good the policy is.",
    formula="mean over the trained batch of r",
    better="up",
    see_also=("outcome/reward", "language/kept_share"),
)

GROUP_ALL_RIGHT = Metric(
    name="reward/group_all_right",
    title="Groups all right",
    unit="share",
    kind="health",
    meaning="Share of prompts whose every completion earned the full reward: solved, and nothing"
    " to learn from.",
    formula="share of groups with every r = 1",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("reward/group_zero_std", "reward/group_all_wrong"),
)

GROUP_ALL_WRONG = Metric(
    name="reward/group_all_wrong",
    title="Groups all wrong",
    unit="share",
    kind="health",
    meaning="Share of prompts whose every completion earned nothing: too hard, or the verifier is"
    " broken.",
    formula="share of groups with every r = 0",
    better="down",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("reward/group_zero_std", "reward/group_all_right"),
)

GROUP_ZERO_STD_COUNT = Metric(
    name="reward/group_zero_std_count",
    title="Groups without contrast, by reward",
    unit="groups",
    kind="health",
    meaning="Count of prompts whose completions all earned this one reward: which side the useless"
    " groups are on.",
    formula="count of groups with std(r) = 0 at this reward",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("reward/group_zero_std",),
    family=True,
)

GROUP_SHARE = share_metric(
    "reward/group_share",
    "Groups of one role by their rewards",
    "Share of one agent role's groups whose rewards differ, are all alike and full, or are all"
    " alike and nothing. Groups of a single response are left out.",
    "groups of this kind / groups of two responses or more",
    "reward/group_zero_std",
    better="depends",
    family=True,
)
POSITIVE_PART = Metric(
    name="reward/positive_part",
    title="Positive part of the reward",
    unit="reward",
    kind="health",
    meaning="Mean reward with every negative reward counted as 0: where it stands still and the"
    " reward rises, penalties have become fewer and right answers have not become more.",
    formula="mean over responses of sum_t max(r_t, 0)",
    better="up",
    possible=NOT_NEGATIVE,
    see_also=("outcome/reward",),
)
DROPPED_REWARD = Metric(
    name="reward/dropped",
    title="Rewards of dropped groups",
    unit="as logged",
    kind="health",
    meaning="A measure of the rewards of groups that were generated and not trained on, by name:"
    " near full reward, the prompts have become too easy; near none, they are too hard.",
    see_also=("outcome/reward", "language/kept_share"),
    family=True,
)

NONE_SHARE = Metric(
    name="reward/none_share",
    title="Share without a reward",
    unit="share",
    kind="health",
    meaning="Share of the samples that a reward function gave no number: None, as functions for one"
    " of several tasks do, or a failure that is reported so.",
    formula="count of None / count of rewards",
    healthy=SHARE,
    possible=SHARE,
    see_also=("reward/component",),
    family=True,
)
EXCEPTIONS = Metric(
    name="reward/exceptions",
    title="Exceptions of a reward function",
    unit="calls",
    kind="health",
    meaning="Calls of a reward function that raised an exception, since the beginning.",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("reward/none_share",),
    family=True,
)

METRICS = (
    MEAN,
    STEP,
    STD,
    GROUP_STD,
    MIN,
    MAX,
    DISTRIBUTION,
    COMPONENT,
    COMPONENT_STD,
    EVAL_COMPONENT,
    ABSOLUTE,
    DELTA,
    RAW,
    CLIPPED,
    NON_SCORE,
    NON_SCORE_PER_TOKEN,
    GROUP_ZERO_STD,
    SCORE_STD,
    INTRINSIC,
    SHAPED,
    TRAINED_MEAN,
    GROUP_ALL_RIGHT,
    GROUP_ALL_WRONG,
    GROUP_ZERO_STD_COUNT,
    GROUP_SHARE,
    POSITIVE_PART,
    DROPPED_REWARD,
    NONE_SHARE,
    EXCEPTIONS,
)
