"""Claims of the sentences of rules on saved rollouts."""

import numpy as np
from column_values import at_end, at_start
from derivations import Case, claim


def times_longer(case: Case):
    """Return how many times their first length replies have at the end."""
    for name in ("language/length_mean", "language/statistic/characters_mean"):
        firsts, lasts = list(at_start(name)(case)), list(at_end(name)(case))
        yield from (last / first for last in lasts for first in firsts if first)


def part_means(case: Case):
    """Return the mean of each fifth of the finding's metric."""
    return [float(part.mean()) for part in np.array_split(case.metric.values, 5)]


def reason_shares(level):
    """Return the level of the share of each reason to stop."""
    return lambda case: [
        value
        for name in case.trace.series if name.startswith("language/stop_reason/")
        for value in level(name)(case)
    ]  # fmt: skip


LATE_AND_START = {"end": at_end(), "start": at_start()}
ROLLOUT_RULES = {
    "answers-copied": [
        claim("<median M> of prompts state the answer that is expected"),
        claim("<end> of a reply's text is copied from its prompt, <start> at the start",
              **LATE_AND_START),
    ],
    "failures-scored": [
        claim("<median M> of rollouts failed and have a reward of 0"),
        claim("<median M> of the replies that give the expected answer are paid nothing for it"),
    ],
    "language-switches": [
        claim("<end> of replies are in another script than their prompts, <start> at the start",
              **LATE_AND_START),
    ],
    "length-is-paid": [
        *(claim(f"within a group the {word} reply is paid (correlation <median M>), and replies "
                f"{grown} to <ratio> times their length", ratio=times_longer)
          for word, grown in (("longer", "grew"), ("shorter", "shrank"))),
    ],
    "phantom-gradient": [
        claim("<end> of the groups with contrast have no right answer: what they learn is shaping "
              "alone", end=at_end()),
    ],
    "stop-reason-shifts": [
        claim("<end> of rollouts end by '<any words>', <start> at the start", **LATE_AND_START),
        claim("those that end by '<any words>' go from <start> to <end>",
              start=reason_shares(at_start), end=reason_shares(at_end)),
    ],
    "task-regresses": [
        claim("the task '<any words>' gets worse while the others do not: its reward was <best> in "
              "its best fifth and is <last> in the last", best=part_means, last=part_means),
        claim("it was <first> in the first fifth", first=part_means),
    ],
    "tasks-without-signal": [
        claim("nothing is learned from <any words>: all rollouts of a group earn the same in <end> "
              "of the groups", end=at_end()),
    ],
    "template-collapse": [
        claim("replies become blind to their prompts: <end> of prompts are found again from them, "
              "<start> at the start", **LATE_AND_START),
    ],
    "text-degenerates": [
        claim("<end> of replies end in one phrase over and over, <start> at the start",
              **LATE_AND_START),
    ],
    "turns-inflate": [
        claim("episodes take <end> turns, <start> at the start", **LATE_AND_START),
    ],
}  # fmt: skip
