"""Write what a loop prints about a row as `key: value` pairs, where it uses other words.

`Episode 3 finished after 20 timesteps with reward 20`     the guides of Gym
`Episode 50 | Avg Reward (last 50): 12.3 | ε: 0.9`         a window beside the name
`Total T: 1000 Episode Num: 5 Episode T: 200 Reward: 1.2`  TD3: `main.py`
`Ep 10: 23.0`                                              the reward without its name
`After 100 games: win rate 0.4`                            the step in a sentence
`Total reward for episode 3 is 12.5`
"""

import re
from collections.abc import Callable
from functools import cache

NUMBER = r"[-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,3})?|\.\d{1,40}|nan|inf(?:inity)?)"
TD3_ROW = re.compile(
    r"\bTotal T(?:imesteps)?:? ?(\d+) +Episode Num:? ?(\d+) +Episode T(?:imesteps)?:? ?(\d+)"
    r" +(?:\w{1,20} )?[Rr]eward:? ?"
)
# "[TEST] Episode 3 - Reward: 5", "Eval | episode 3 | reward 5": no row of training.
EVALUATION = re.compile(
    r"\W{0,3}(?:\[(?:test|eval|evaluation|validation)\]"
    r"|(?:test|eval|evaluation|validation)(?: ?[|:]| (?=(?:at|after) [a-z]{0,12} ?\d)))\s*",
    re.IGNORECASE,
)


def _write_out(match: re.Match[str]) -> str:
    """Write "step 20k" as "step 20000"."""
    factor = 1e6 if match[4] == "M" else 1e3
    return f"{match[1]}{match[2]}{float(match[3]) * factor:.0f}"


def _write_plain(match: re.Match[str]) -> str:
    return match[0].replace(",", "")


def _join_digits(match: re.Match[str]) -> str:
    return match[0].replace(",", "")


COUNTED = "episode|game|(?:time)?step|frame|iteration|epoch|update|generation|trial|round|matche?"


@cache
def _forms() -> dict[re.Pattern[str], str | Callable[[re.Match[str]], str]]:
    """Return what replaces each form, in the order of their use."""
    episode = r"(?:[Ee]pisode|EPISODE|[Ee]p|EP|[Gg]ame)\b[ #]{0,3}\d{1,9}(?: ?/ ?\d{1,9})?"
    forms: dict[str, str | Callable[[re.Match[str]], str]] = {
        "ε": "epsilon",
        "│": "|",
        r"(?<=\w) @ (?=\w)": ", ",
        r"(?<![\d.,\[])\d{1,3}(?:,\d{3})+(?![\d,])": _join_digits,  # "12,500"
        r"[$€](?=-?\d)|(?<=\d) ?[$€](?=\s*(?:[,;|)]|\Z))": "",
        # "Epoch:[1/3](20/4292)": the epoch, and the batch within it.
        r"(?i)\b(epoch):? ?\[(\d+)/\d+\] ?\((\d+/\d+)\)": r"\1: \2, step: \3",
        r"(?<=\d)\s{1,4}of\s{1,4}(?=\d)": "/",  # "Episode 3 of 500"
        TD3_ROW.pattern: r"total_timesteps: \1, episode: \2, episode_length: \3, episode_reward: ",
        # What a printed tensor says of itself, and the epoch of Tianshou's best reward.
        r", (?:grad_fn|dtype|device)=[^,)]{1,60}| in #\d+\b": "",
        r"(?i)\bfinished +(?:after|in) +(\d+) +(?:time[ -]?)?steps?\b": r", episode_length: \1,",
        rf"({episode}) +(?:ended|finished|completed?|done)\b[.!,:;]?": r"\1,",
        r"\bwith (?:an? )?((?:total |final )?(?:reward|score)s?)(?: of)?\b:?": r", \1: ",
        r"(?i) ?\((?:over |for )?(?:the )?(?:last|past|previous|recent) ?\d{1,6}"
        r"(?: [a-z]{1,12})?\)(?=\s*[:=])": "",
        # "over the last 100 episodes"
        r"(?i)\b(?:(?:over|of|for|from|in) )?(?:the )?(?:last|past|previous) \d{1,6}\b"
        rf"(?: (?:{COUNTED})s?\b)? ?": "",
        r"\b([Ss]teps?|[Tt]imesteps?|[Ff]rames?)([:= ]+)(\d+(?:\.\d+)?)([kKM])\b": _write_out,
        rf"(?i)\A\s*({episode})\s{{0,4}}[:=]\s{{0,8}}({NUMBER})\s*\Z": r"\1, reward: \2",
        rf"(?i)\b(\d{{1,9}})-?(?:st|nd|rd|th) ({COUNTED})\b": r"\2 \1",  # "3rd episode"
        # Of an evaluation: "at step 12: mean return 3.5", "at 12: 3.5".
        rf"(?i)\A(?:after|at) ({COUNTED}) (?=\d)": r"\1: ",
        rf"\Aat (\d{{1,12}}): ?({NUMBER})\Z": r"step: \1, reward: \2",
        # "120 episodes | 9000 steps"
        rf"(?i)(\A|[|,;(\[]\s*|\bdone )(\d{{1,12}}) ((?:{COUNTED})s?)"
        r"(?=\s*(?:[|,;:)\]]|\Z))": r"\1\3: \2",
    }
    return {re.compile(pattern): text for pattern, text in forms.items()}


@cache
def _sentences() -> dict[re.Pattern[str], str]:
    """Return what replaces the words of sentences about a step, in the order of their use."""
    forms = {
        rf"(?i)\A\W{{0,4}}(?:after|at) (\d{{1,12}}) "
        rf"((?:{COUNTED})s?)\b[,:]?(?: the)?\b": r"\2: \1, ",
        rf"(?i)\bsurvived (?:for )?(\d{{1,9}}) (?:{COUNTED})s?\b": r"steps survived: \1,",
        rf"(?i)({NUMBER}) (?:at|after) (\d{{1,12}}) ((?:{COUNTED})s?)\b": r"\1, \3: \2",
        rf"(?i)\A(\W{{0,6}}[a-z][\w ./-]{{1,60}}?) (?:at|for|of|in|after) (?:the )?"
        rf"((?:{COUNTED})s? \d{{1,12}})(?: ?/ ?\d+)?"
        rf"(?: is| was|[:=]| =)? *(?={NUMBER})": r"\2, \1: ",
        rf"(?i)(?<=[a-z]) (?:is|was|of) (?={NUMBER}(?!\w))": ": ",
    }
    return {re.compile(pattern): text for pattern, text in forms.items()}


def write_pairs(text: str) -> tuple[str, bool]:
    """Return a row with its words written as pairs, and True if they are those of a sentence."""
    for form, replacement in _forms().items():
        text = form.sub(replacement, text)
    pairs = text
    for sentence, replacement in _sentences().items():
        pairs = sentence.sub(replacement, pairs)
    return pairs, pairs != text
