"""Metrics that rlvitals counts in saved rollouts, one point for each step."""

from rlvitals.metrics.metric import Band, Metric, share_metric


def _share(suffix: str, title: str, meaning: str, formula: str, *, family: bool = False) -> Metric:
    see_also = "language/error_share"
    return share_metric(f"rollout/{suffix}", title, meaning, formula, see_also, family=family)


FAILED_AS_ZERO_SHARE = _share(
    "failed_as_zero_share", "Failed rollouts with a reward of 0",
    "Share of rollouts that ended in an error and have a reward of 0: they are learned from as if"
    " the policy had been wrong. A failed rollout without a reward is not counted.",
    "rollouts with an error and r = 0 / rollouts",
)  # fmt: skip
COPIED_SHARE = _share(
    "copied_share", "Text copied from the prompt",
    "Share of a reply's passages that stand word for word in its prompt, on the first rollout of 32"
    " prompts of a step.",
    "passages of 24 characters that the prompt has / passages",
)  # fmt: skip
ANSWER_STATED_SHARE = _share(
    "answer_stated_share", "Prompts that state the answer",
    'Share of prompts in which the expected answer follows a word such as "answer" or'
    ' "solution": what is learned is to read it there.',
    "prompts with a labelled answer / prompts with an expected answer",
)  # fmt: skip
ANSWER_UNPAID = _share(
    "answer_unpaid", "Right answers without pay",
    "Share of the replies that end by giving the expected answer, in a box, in tags or behind a"
    ' word such as "answer", and get nothing for it from this part of the reward: its parser does'
    " not find what is there.",
    "replies that give the answer and are paid 0 or less / replies that give the answer",
    family=True,
)  # fmt: skip
OTHER_SCRIPT_SHARE = _share(
    "other_script_share", "Replies in another script",
    "Share of replies of which a tenth of the letters or more are in a script that the prompt does"
    " not use, as Chinese in an answer to English. Languages of one script are not told apart.",
    "replies with 10 % of letters in other scripts / replies",
)  # fmt: skip
DEAD_GROUPS = _share(
    "dead_groups", "Groups without contrast, by task",
    "Share of a task's groups whose rewards are all equal, so that nothing is learned from them.",
    "groups of a task with max r = min r / its groups",
    family=True,
)  # fmt: skip
EQUAL_GROUPS = _share(
    "equal_groups", "Contrast without this part",
    "Share of groups with differing rewards in which a part of the reward is at its lowest for"
    " every rollout. Of the part for right answers: groups that are all wrong and pushed apart by"
    " shaping alone.",
    "groups with max r > min r and max part = its lowest / groups with max r > min r",
    family=True,
)  # fmt: skip
REWARD_BY_TASK = Metric(
    name="rollout/task_reward",
    title="Reward by task",
    unit="reward",
    kind="health",
    meaning="Mean reward of a task's rollouts: a mean over all tasks hides that one gets worse.",
    formula="mean over a task's rollouts of r",
    better="up",
    see_also=("rollout/dead_groups",),
    family=True,
)
PROMPT_RETRIEVAL = Metric(
    name="rollout/prompt_retrieval",
    title="Prompts found again from replies",
    unit="share",
    kind="health",
    meaning="How surely the prompt of a reply is found among those of its step by the words that"
    " both have: 1 always, 0 as by chance. Falling, replies become a template that is blind to the"
    " prompt. Entropy does not show it.",
    formula="(hits - 1 / prompts) / (1 - 1 / prompts); without numbers and capitalised words",
    better="depends",
    possible=Band(low=-1.0, high=1.0),
    see_also=("exploration/entropy", "rollout/copied_share"),
)
LENGTH_REWARD_CORRELATION = Metric(
    name="rollout/length_reward_correlation",
    title="Reward and length within groups",
    unit="correlation",
    kind="health",
    meaning="Pearson's correlation of reward and length among rollouts of one group: what long"
    " prompts and hard ones share is out of it. Near 1, longer replies are paid more whatever they"
    " say.",
    formula="sum of (r - group mean) (length - group mean), normalised, over groups with contrast",
    better="depends",
    possible=Band(low=-1.0, high=1.0),
    see_also=("language/length_mean",),
)
METRICS = (
    FAILED_AS_ZERO_SHARE,
    PROMPT_RETRIEVAL,
    COPIED_SHARE,
    ANSWER_STATED_SHARE,
    ANSWER_UNPAID,
    OTHER_SCRIPT_SHARE,
    LENGTH_REWARD_CORRELATION,
    REWARD_BY_TASK,
    DEAD_GROUPS,
    EQUAL_GROUPS,
)
