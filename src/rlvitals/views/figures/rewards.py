"""What the run is judged by: return, reward, score, success; of a language model its parts too."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import language, outcome, reward
from rlvitals.rules import kinds
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import finished, first_of, logged, members, together

RETURNS = ((outcome.RETURN, "training"), (outcome.EVAL_RETURN, "evaluation"))
EPISODES = ((outcome.EPISODE_LENGTH, "training"), (outcome.EVAL_EPISODE_LENGTH, "evaluation"))
REWARDS = (
    outcome.REWARD, outcome.RLHF_REWARD, outcome.TASK_REWARD, reward.MEAN, reward.TRAINED_MEAN,
    reward.STEP,
)  # fmt: skip
SHARES = (
    outcome.SUCCESS_RATE, outcome.ACCURACY, outcome.WIN_RATE_EMA, outcome.EVAL_SUCCESS_RATE,
    outcome.EVAL_ACCURACY, outcome.PASS_RATE,
)  # fmt: skip
NEEDS = (
    *(metric for metric, _ in RETURNS), *REWARDS, *SHARES, outcome.SCORE, outcome.EVAL_REWARD,
    language.FILTERED_REWARD,
)  # fmt: skip


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw each kind of outcome that is logged, and what a language model's reward is made of."""
    found = [
        together(subjects, RETURNS, "Episode return"),
        first_of(subjects, *REWARDS, title="Reward"),
        first_of(subjects, outcome.SCORE),
        first_of(subjects, language.FILTERED_REWARD),
        first_of(subjects, outcome.EVAL_REWARD),
        first_of(subjects, *SHARES, low=0.0, high=1.0),
        together(subjects, EPISODES, "Episode length"),
    ]
    spoken = [one for one in subjects if one.trace.profile in kinds.LANGUAGE]
    if len(subjects) == 1 and any(logged(one.trace, reward.COMPONENT) for one in spoken):
        lines = members(subjects, reward.COMPONENT)
        found.append(
            finished(subjects, Panel("Parts of the reward", "reward", lines), (reward.COMPONENT,))
        )
    return tuple(panel for panel in found if panel.lines)


FIGURE = Figure("rewards", "Rewards", needs=NEEDS, panels=panels)
