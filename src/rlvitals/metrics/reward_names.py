"""Meaning of a reward part's name: it pays for right answers, or for their form."""

import re
from functools import lru_cache

from rlvitals.metrics.catalogue.reward import COMPONENT
from rlvitals.startup.lazy_pattern import lazy_pattern

SOLVED_SHARE = 0.95  # of right answers, in a task with little left to learn
# "information" and "percentage" have other words in them; "xmlcount" begins with one.
FORM_PATTERN = lazy_pattern(
    r"(?<![a-z])(?:format|fmt|xml|tags?(?![a-z])|syntax|template)", re.IGNORECASE
)
_RIGHT_ANSWER_PATTERN = lazy_pattern(
    r"correct|accura|success|solve|pass|equation|exact_?match|check_(?:answer|numbers)|verif"
    r"|unit_?test|(?<![a-z])(?:acc|em)(?![a-z])|(?<![a-z])answer(?!\w*len)",
    re.IGNORECASE,
)
# Parts that take something off, or pay for manner: whether they are earned says nothing of answers.
_SHAPING_PATTERN = lazy_pattern(
    r"len|penalt|repeat|repetition|overlong|divers|entropy|brev|concis|cost|kl(?![a-z])|cosine"
    r"|language|style|safe|toxic|anti|hack|cheat|bonus|novel|turn|token|efficien",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def pays_right_answers(reward: str) -> bool:
    """Say whether a reward of this name pays for right answers: a format that is right is none."""
    return bool(_RIGHT_ANSWER_PATTERN.search(reward)) and not FORM_PATTERN.search(reward)


@lru_cache(maxsize=4096)
def pays_the_task(reward: str) -> bool:
    """Say whether a reward of this name pays for neither the form of an answer nor its manner."""
    return not FORM_PATTERN.search(reward) and not _SHAPING_PATTERN.search(reward)


def checks_the_answer(name: str) -> bool:
    """See a reward component, by its canonical name, that is named for right answers."""
    return name.startswith(f"{COMPONENT.name}/") and pays_right_answers(name)
