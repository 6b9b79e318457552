"""Figure: return, reward, score and success; for language models reward components too."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import language, outcome, reward
from rlvitals.rules import kinds
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import annotate, first_of, has_metric, members, together

EPISODE_RETURNS = ((outcome.RETURN, "training"), (outcome.EVAL_RETURN, "evaluation"))
MEAN_REWARDS = (
    outcome.REWARD, outcome.RLHF_REWARD, outcome.TASK_REWARD, reward.MEAN, reward.TRAINED_MEAN,
    reward.STEP,
)  # fmt: skip
SUCCESS_SHARES = (
    outcome.SUCCESS_RATE, outcome.ACCURACY, outcome.WIN_RATE_EMA, outcome.EVAL_SUCCESS_RATE,
    outcome.EVAL_ACCURACY, outcome.PASS_RATE,
)  # fmt: skip


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel for each logged outcome, and a language model's reward components."""
    candidates = [
        together(subjects, EPISODE_RETURNS, "Episode return"),
        first_of(subjects, *MEAN_REWARDS, title="Reward"),
        first_of(subjects, outcome.SCORE),
        first_of(subjects, language.FILTERED_REWARD),
        first_of(subjects, outcome.EVAL_REWARD),
        first_of(subjects, *SUCCESS_SHARES, low=0.0, high=1.0),
        together(
            subjects,
            (
                (outcome.EPISODE_LENGTH, "training"),
                (outcome.EVAL_EPISODE_LENGTH, "evaluation"),
            ),
            "Episode length",
        ),
    ]
    spoken = [subject for subject in subjects if subject.trace.profile in kinds.LANGUAGE]
    if len(subjects) == 1 and any(
        has_metric(subject.trace, reward.COMPONENT) for subject in spoken
    ):
        lines = members(subjects, reward.COMPONENT)
        candidates.append(
            annotate(subjects, Panel("Parts of the reward", "reward", lines), (reward.COMPONENT,))
        )
    return tuple(panel for panel in candidates if panel.lines)


FIGURE = Figure(
    "rewards",
    "Rewards",
    needs=(
        *(metric for metric, _ in EPISODE_RETURNS),
        *MEAN_REWARDS,
        *SUCCESS_SHARES,
        outcome.SCORE,
        outcome.EVAL_REWARD,
        language.FILTERED_REWARD,
    ),
    panels=panels,
)
