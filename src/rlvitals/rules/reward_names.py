"""What the name of a reward's part says that it pays for: right answers, or their form."""

import re
from functools import lru_cache

from rlvitals.metrics.catalogue.reward import COMPONENT

# "information" and "percentage" have other words in them; "xmlcount" begins with one.
FORM = re.compile(r"(?<![a-z])(?:format|xml|tags?(?![a-z])|syntax|template)", re.IGNORECASE)
_RIGHT = re.compile(r"correct|accura|success|solve|pass", re.IGNORECASE)


@lru_cache(maxsize=4096)
def pays_right_answers(part: str) -> bool:
    """Say whether a reward of this name pays for right answers: a format that is right is none."""
    return bool(_RIGHT.search(part)) and not FORM.search(part)


def checks_the_answer(name: str) -> bool:
    """See a reward component, by its canonical name, that is named for right answers."""
    return name.startswith(f"{COMPONENT.name}/") and pays_right_answers(name)
