"""Saved rollouts: what rlvitals itself counts in the samples that a framework keeps."""

from rlvitals.metrics.catalogue import language, reward, rollouts
from rlvitals.metrics.frameworks.key import Family, Name, Table

SAVED = "over the saved rollouts of a step"

NAMES = Table(
    "rollouts",
    "saved rollouts",
    keys={
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
        Family(r"rollout/((?:dead_groups/.+|\w+))", Name(rollouts.STATISTIC, SAVED)),
    ),
    read_from="rlvitals/rollouts/series.py, to_log",
    marks=(("rollout/characters_mean", "rollout/dead_group_share"),),
)
