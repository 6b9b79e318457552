"""Saved rollouts: what rlvitals itself counts in the samples that a framework keeps."""

from rlvitals.metrics.catalogue import language, outcome, reward, rollout_metrics, rollouts
from rlvitals.metrics.frameworks.key import Family, Name, Table

SAVED = "over the saved rollouts of a step"
OF_FIRST_ROLLOUTS = "over the first rollouts of 32 prompts of a step"

NAMES = Table(
    "rollouts",
    "saved rollouts",
    keys={
        "rollout/reward_mean": Name(outcome.REWARD, SAVED),
        "rollout/truncated_share": Name(language.TRUNCATED_SHARE, "by the reason to stop"),
        "rollout/failed_as_zero_share": Name(rollout_metrics.FAILED_AS_ZERO_SHARE, SAVED),
        "rollout/prompt_retrieval": Name(rollout_metrics.PROMPT_RETRIEVAL, OF_FIRST_ROLLOUTS),
        "rollout/copied_share": Name(rollout_metrics.COPIED_SHARE, OF_FIRST_ROLLOUTS),
        "rollout/answer_stated_share": Name(rollout_metrics.ANSWER_STATED_SHARE, OF_FIRST_ROLLOUTS),
        "rollout/other_script_share": Name(rollout_metrics.OTHER_SCRIPT_SHARE, OF_FIRST_ROLLOUTS),
        "rollout/length_reward_correlation": Name(
            rollout_metrics.LENGTH_REWARD_CORRELATION, "characters; groups with contrast"
        ),
        "rollout/error_share": Name(rollouts.ERROR_SHARE, SAVED),
        "rollout/looping_share": Name(
            rollouts.REPETITION_SHARE, "the end is one phrase, three times and over 200 characters"
        ),
        "rollout/tokens_mean": Name(language.LENGTH_MEAN, f"generated tokens, {SAVED}"),
        "rollout/turns_mean": Name(rollouts.TURNS_MEAN, SAVED),
        "rollout/turns_min": Name(rollouts.TURNS_MIN, SAVED),
        "rollout/turns_max": Name(rollouts.TURNS_MAX, SAVED),
        "rollout/tool_calls_mean": Name(language.TOOL_CALLS, SAVED),
        "rollout/tool_failure_share": Name(
            language.TOOL_FAILURES, "by the beginning of the results, mean over rollouts with calls"
        ),
        "rollout/dead_group_share": Name(
            reward.GROUP_ZERO_STD, "groups of one step, or rollouts of one prompt"
        ),
    },
    families=(
        Family(r"rollout/part/(.+)", Name(reward.COMPONENT, SAVED)),
        Family(r"rollout/stop_reason/(.+)", Name(rollouts.STOP_REASON, f"share, {SAVED}")),
        Family(r"rollout/task_reward/(.+)", Name(rollout_metrics.REWARD_BY_TASK, SAVED)),
        Family(r"rollout/dead_groups/(.+)", Name(rollout_metrics.DEAD_GROUPS, SAVED)),
        Family(r"rollout/equal_groups/(.+)", Name(rollout_metrics.EQUAL_GROUPS, SAVED)),
        Family(r"rollout/answer_unpaid/(.+)", Name(rollout_metrics.ANSWER_UNPAID, SAVED)),
        Family(r"rollout/(\w+)", Name(rollouts.STATISTIC, SAVED)),
    ),
    read_from="rlvitals/rollouts/series.py, to_log",
    marks=(("rollout/characters_mean", "rollout/dead_group_share"),),
)
