"""Write what a loop prints about a row as `key: value` pairs, where it uses other words.

`Episode 3 finished after 20 timesteps with reward 20`     the guides of Gym
`Episode 50 | Avg Reward (last 50): 12.3 | ε: 0.9`         a window beside the name
`Total T: 1000 Episode Num: 5 Episode T: 200 Reward: 1.2`  TD3: `main.py`
`Ep 10: 23.0`                                              the reward without its name
"""

import re

NUMBER = r"[-+]?\d{1,40}(?:\.\d{0,40})?(?:e[-+]?\d{1,3})?"
EPISODE = r"(?:[Ee]pisode|EPISODE|[Ee]p|EP|[Gg]ame)\b[ #]{0,3}\d{1,9}(?: ?/ ?\d{1,9})?"
TD3_ROW = re.compile(r"\bTotal T: ?(\d+) +Episode Num: ?(\d+) +Episode T: ?(\d+) +Reward: ?")
FINISHED = re.compile(r"\bfinished (?:after|in) (\d+) (?:time[ -]?)?steps?\b", re.IGNORECASE)
WITH_REWARD = re.compile(r"\bwith (?:an? )?((?:total |final )?(?:reward|score)s?)(?: of)?\b")
ENDED = re.compile(rf"({EPISODE}) (?:ended|finished|completed?|done)\b[.!,:;]?")
WINDOW = re.compile(
    r" ?\((?:over |for )?(?:the )?(?:last|past|previous|recent) ?\d{1,6}(?: [a-z]{1,12})?\)"
    r"(?=\s*[:=])",
    re.IGNORECASE,
)
UNNAMED = re.compile(rf"({EPISODE})\s{{0,4}}[:=]\s{{0,8}}({NUMBER})\s*")
THOUSANDS = re.compile(r"\b([Ss]teps?|[Tt]imesteps?|[Ff]rames?)([:= ]+)(\d+(?:\.\d+)?)([kKM])\b")
# "[TEST] Episode 3 - Reward: 5", "Eval | episode 3 | reward 5": no row of training.
EVALUATION = re.compile(
    r"\W{0,3}(?:\[(?:test|eval|evaluation|validation)\]|(?:test|eval|evaluation|validation) ?[|:])"
    r"\s*",
    re.IGNORECASE,
)
SIGNS = str.maketrans({"ε": "epsilon", "│": "|"})


def write_pairs(text: str) -> str:
    """Return a printed row with its words written as `key: value` pairs; other text is kept."""
    text = TD3_ROW.sub(
        r"total_timesteps: \1, episode: \2, episode_length: \3, episode_reward: ",
        text.translate(SIGNS),
    )
    text = ENDED.sub(r"\1,", FINISHED.sub(r", episode_length: \1,", text))
    text = WITH_REWARD.sub(r", \1: ", text)
    text = THOUSANDS.sub(_write_out, WINDOW.sub("", text))
    unnamed = UNNAMED.fullmatch(text.strip())
    return f"{unnamed[1]}, reward: {unnamed[2]}" if unnamed else text


def _write_out(match: re.Match[str]) -> str:
    """Write "step 20k" as "step 20000"."""
    factor = 1e6 if match[4] == "M" else 1e3
    return f"{match[1]}{match[2]}{float(match[3]) * factor:.0f}"
