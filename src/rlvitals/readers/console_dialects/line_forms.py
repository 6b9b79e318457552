"""Write what a loop prints about a row as `key: value` pairs, where it uses other words.

`Episode 3 finished after 20 timesteps with reward 20`     the guides of Gym
`Episode 50 | Avg Reward (last 50): 12.3 | ε: 0.9`         a window beside the name
`Total T: 1000 Episode Num: 5 Episode T: 200 Reward: 1.2`  TD3: `main.py`
`Ep 10: 23.0`                                              the reward without its name
"""

import re
from collections.abc import Callable
from functools import cache

NUMBER = r"[-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,3})?|\.\d{1,40}|nan|inf(?:inity)?)"
TD3_ROW = re.compile(r"\bTotal T: ?(\d+) +Episode Num: ?(\d+) +Episode T: ?(\d+) +Reward: ?")
# "[TEST] Episode 3 - Reward: 5", "Eval | episode 3 | reward 5": no row of training.
EVALUATION = re.compile(
    r"\W{0,3}(?:\[(?:test|eval|evaluation|validation)\]|(?:test|eval|evaluation|validation) ?[|:])"
    r"\s*",
    re.IGNORECASE,
)


def _write_out(match: re.Match[str]) -> str:
    """Write "step 20k" as "step 20000"."""
    factor = 1e6 if match[4] == "M" else 1e3
    return f"{match[1]}{match[2]}{float(match[3]) * factor:.0f}"


@cache
def _forms() -> dict[re.Pattern[str], str | Callable[[re.Match[str]], str]]:
    """Return what replaces each form, in the order of their use."""
    episode = r"(?:[Ee]pisode|EPISODE|[Ee]p|EP|[Gg]ame)\b[ #]{0,3}\d{1,9}(?: ?/ ?\d{1,9})?"
    forms: dict[str, str | Callable[[re.Match[str]], str]] = {
        "ε": "epsilon",
        "│": "|",
        # "Epoch:[1/3](20/4292)": the epoch, and the batch within it.
        r"(?i)\b(epoch):? ?\[(\d+)/\d+\] ?\((\d+/\d+)\)": r"\1: \2, step: \3",
        r"(?<=\d)\s{1,4}of\s{1,4}(?=\d)": "/",  # "Episode 3 of 500"
        TD3_ROW.pattern: r"total_timesteps: \1, episode: \2, episode_length: \3, episode_reward: ",
        r"(?i)\bfinished (?:after|in) (\d+) (?:time[ -]?)?steps?\b": r", episode_length: \1,",
        rf"({episode}) (?:ended|finished|completed?|done)\b[.!,:;]?": r"\1,",
        r"\bwith (?:an? )?((?:total |final )?(?:reward|score)s?)(?: of)?\b": r", \1: ",
        r"(?i) ?\((?:over |for )?(?:the )?(?:last|past|previous|recent) ?\d{1,6}"
        r"(?: [a-z]{1,12})?\)(?=\s*[:=])": "",
        r"\b([Ss]teps?|[Tt]imesteps?|[Ff]rames?)([:= ]+)(\d+(?:\.\d+)?)([kKM])\b": _write_out,
        rf"(?i)\A\s*({episode})\s{{0,4}}[:=]\s{{0,8}}({NUMBER})\s*\Z": r"\1, reward: \2",
    }
    return {re.compile(pattern): text for pattern, text in forms.items()}


def write_pairs(text: str) -> str:
    """Return a printed row with its words written as `key: value` pairs; other text is kept."""
    for form, replacement in _forms().items():
        text = form.sub(replacement, text)
    return text
