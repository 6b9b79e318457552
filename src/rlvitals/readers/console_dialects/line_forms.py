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

from rlvitals.startup.fast_dataclass import dataclass

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


COUNTED = "episode|game|(?:time)?step|frame|iteration|epoch|update|generation|trial|round|matche?"


@dataclass(frozen=True, slots=True)
class _Form:
    """A form, what replaces it, and the texts one of which a line in it holds."""

    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    hints: tuple[str, ...]  # in lower case


def _form(pattern: str, replacement: str | Callable[[re.Match[str]], str], *hints: str) -> _Form:
    return _Form(re.compile(pattern), replacement, hints)


@cache
def _forms() -> tuple[_Form, ...]:
    """Return the forms in the order of their use."""
    episode = r"(?:[Ee]pisode|EPISODE|[Ee]p|EP|[Gg]ame)\b\.?[ #]{0,3}\d{1,9}(?: ?/ ?\d{1,9})?"
    return (
        *_sign_forms(),
        *_result_forms(episode),
        _form(
            r"(?i)\b(iter(?:ation)?|epoch|episode|update|step)\[(\d+/\d+)\]", r"\1: \2,", "["
        ),  # "Iter[3/50]"
        *_windows(),
        _form(
            r"\b([Ss]teps?|[Tt]imesteps?|[Ff]rames?)([:= ]+)(\d+(?:\.\d+)?)([kKM])\b",
            lambda match: (
                f"{match[1]}{match[2]}{float(match[3]) * (1e6 if match[4] == 'M' else 1e3):.0f}"
            ),
            *("step", "frame"),
        ),
        _form(
            rf"(?i)\A\s*({episode})\s{{0,4}}[:=]\s{{0,8}}({NUMBER})(?=\s*(?:\(|\Z))",
            r"\1, reward: \2",
            *("ep", "game"),
        ),
        *_game_forms(),
        *_counted_forms(),
    )


def _sign_forms() -> tuple[_Form, ...]:
    """Return the forms of signs, of numbers, and of a step's number at its word."""
    return (
        _form("ε", "epsilon", "ε"),
        _form("│", "|", "│"),
        _form(r"(?<=\w) @ (?=\w)", ", ", " @ "),
        # "epoch=0 phase=dense reward=-6.5": a word between pairs
        _form(r"(=[A-Za-z][\w.-]{0,30})\s+(?=[A-Za-z_]\w{0,40}=)", r"\1, ", "="),
        # "ep12", "episode_12: ", "E0012", "<Episode 12>"
        _form(r"\A\W{0,4}E(?=\d{3,9}\b)", "episode ", "e"),
        _form(
            rf"(?i)\A(\W{{0,4}}(?:{COUNTED}|ep))[_.]?(?=\d)", r"\1 ", "ep", "gen", "iter", "game"
        ),
        _form(rf"(?i)<((?:{COUNTED}) \d{{1,9}}(?:/\d+)?)>", r"\1,", "<"),
        # "Training: episode 3"
        _form(rf"(?i)\A\W{{0,4}}[a-z]{{1,20}}[:!] (?=(?:{COUNTED}) \d)", "", ": ", "! "),
        _form(
            r"(?<![\d.,\[])\d{1,3}(?:,\d{3})+(?![\d,])",
            lambda match: match[0].replace(",", ""),
            ",",
        ),  # "12,500"
        _form(r"[$€](?=-?\d)|(?<=\d) ?[$€](?=\s*(?:[,;|)]|\Z))", "", "$", "€"),
        # "Epoch:[1/3](20/4292)": the epoch, and the batch within it.
        _form(r"(?i)\b(epoch):? ?\[(\d+)/\d+\] ?\((\d+/\d+)\)", r"\1: \2, step: \3", "](", "] ("),
        _form(r"(?<=\d)\s{1,4}of\s{1,4}(?=\d)", "/", "of"),  # "Episode 3 of 500"
        # "Total reward for this episode (3): 12"
        _form(rf"(?i)\b({COUNTED}) \((\d{{1,12}})\)(?=\s*[:=])", r"\1 \2", "("),
        _form(
            TD3_ROW.pattern,
            r"total_timesteps: \1, episode: \2, episode_length: \3, episode_reward: ",
            "total t",
        ),
        # What a printed tensor says of itself, and the epoch of Tianshou's best reward.
        _form(
            r", (?:grad_fn|dtype|device)=[^,)]{1,60}| in #\d+\b", "", "_fn=", "type=", "ice=", "n #"
        ),
    )


def _result_forms(episode: str) -> tuple[_Form, ...]:
    """Return the forms of what an episode, by its pattern, ended with: steps and a reward."""
    return (
        _form(
            r"(?i)\b(?:finished +(?:after|in)|took|lasted(?: for)?) +(\d+) +(?:time[ -]?)?steps?\b",
            r", episode_length: \1,",
            *("finished", "took", "lasted"),
        ),
        # "and received 3.5 reward", "got 12 points in episode 3"
        _form(
            rf"(?i)\b(?:and )?(?:received|got|earned|obtained|scored|gained) (?:an? )?({NUMBER})"
            r" ((?:total )?(?:reward|score|point))s?\b",
            r", \2: \1,",
            *("reward", "score", "point"),
        ),
        _form(
            rf"({episode}) +(?i:ended|finished|completed?|done)\b[.!,:;]?",
            r"\1,",
            *("ended", "finished", "complete", "done"),
        ),
        _form(
            r"\bwith (?:an? )?((?:total |final )?(?:reward|score)s?)(?: of)?\b:?",
            r", \1: ",
            "with ",
        ),
    )


def _windows() -> tuple[_Form, ...]:
    """Return the forms of the window of an average: "(last 100)", "over the last 100 episodes"."""
    return (
        _form(
            r"(?i) ?\((?:(?:avg|averaged?|mean) )?(?:over |for |of |on )?(?:the )?"
            r"(?:(?:last|past|previous|recent) ?\d{1,6}(?: [a-z]{1,12})?"
            rf"|\d{{1,6}}[ -]?(?:eps?|{COUNTED})s?)\)(?=\s*[:=])",
            "",
            "(",
        ),
        _form(
            rf"(?i)\(\d{{1,6}}[ -](?:ep|episode|game)s? (mean|avg|average)[ :=]{{1,3}}({NUMBER})\)",
            r"(\1: \2)",
            "(",
        ),
        # "mean return over 16 rollouts 3.5", "reward of 20 episodes: 3.5": what was averaged
        _form(
            rf"(?i)(?<=[a-z]) (?:averaged )?(?:over|of|for|from|in|across|on) (?:the )?\d{{1,6}}"
            rf" (?:{COUNTED}|rollout|run|seed|env(?:ironment)?|trajector(?:y|ie)|sample)s?"
            rf"(?= ?[:=]? {{1,4}}{NUMBER}(?!\w))",
            "",
            *(" over ", " of ", " for ", " from ", " in ", " across ", " on "),
        ),
        _form(
            r"(?i)\b(?:(?:over|of|for|from|in) )?(?:the )?(?:last|past|previous) \d{1,6}\b"
            rf"(?: (?:{COUNTED})s?\b)? ?",
            "",
            *("last ", "past ", "previous "),
        ),
    )


def _game_forms() -> tuple[_Form, ...]:
    """Return the forms of games won, lost and drawn: "80 wins", "W:80 L:15 D:5", "W/L 80/15"."""
    between = r"[\s,|/-]{1,3}"
    return (
        _form(
            r"(?i)(?<![\w.:=])(\d{1,9}) (wins|losses|draws|ties)\b",
            r", \2: \1",
            *("wins", "losses"),
        ),
        _form(
            rf"\b(W) ?[:=] ?(\d+){between}(L) ?[:=] ?(\d+)(?:{between}([DT]) ?[:=] ?(\d+))?",
            _write_games,
            *("w:", "w=", "w :", "w ="),
        ),
        _form(
            r"(?i)\b(w(?:ins?)?)/([ld]\w{0,5})(?:/([ld]\w{0,5}))?[ :=]{1,3}"
            r"(\d{1,9}) ?/ ?(\d{1,9})(?: ?/ ?(\d{1,9}))?",
            _write_games,
            *("w/", "win/", "wins/"),
        ),
    )


def _write_games(match: re.Match[str]) -> str:
    """Write "W/D/L 80/5/15" as "wins: 80, draws: 5, losses: 15"."""
    counts = [text for text in match.groups() if text and text.isdigit()]
    letters = [text[0].lower() for text in match.groups() if text and not text.isdigit()]
    names = {"w": "wins", "l": "losses", "d": "draws", "t": "draws"}
    pairs = (f"{names[letter]}: {n}" for letter, n in zip(letters, counts, strict=False))
    return f", {', '.join(pairs)}"


def _counted_forms() -> tuple[_Form, ...]:
    """Return the forms in which the number stands before or after what it counts."""
    return (
        # "3rd episode"
        _form(
            rf"(?i)\b(\d{{1,9}})-?(?:st|nd|rd|th) ({COUNTED})\b",
            r"\2 \1",
            *("st ", "nd ", "rd ", "th "),
        ),
        # Of an evaluation: "at step 12: mean return 3.5", "at 12: 3.5".
        _form(
            rf"(?i)\A(?:after|at) (?:(?:{COUNTED}) )?(\d{{1,12}})(?: (?:{COUNTED})s?)?: ?"
            rf"({NUMBER})\Z",
            r"step: \1, reward: \2",
            *("after ", "at "),
        ),
        _form(rf"(?i)\A(?:after|at) ({COUNTED}) (?=\d)", r"\1: ", "after ", "at "),
        _form(
            rf"(?i)\A(?:played|completed|finished) (?=\d{{1,12}} (?:{COUNTED})s?\b)",
            "",
            *("played ", "completed ", "finished "),
        ),
        # "120 episodes | 9000 steps"
        _form(
            rf"(?i)(\A|[|,;(\[]\s*|\bdone )(\d{{1,12}}) ((?:{COUNTED})s?)"
            r"(?=\s*(?:[|,;:)\]]|\Z)|\. )",
            r"\1\3: \2",
            *("episode", "game", "step", "frame", "iteration", "epoch", "update", "generation"),
        ),
    )


@cache
def _sentences() -> tuple[_Form, ...]:
    """Return the forms of sentences about a step, in the order of their use."""
    return (
        _form(
            rf"(?i)\A\W{{0,4}}(?:after|at) (\d{{1,12}}) ((?:{COUNTED})s?)\b[,:]?(?: the)?\b",
            r"\2: \1, ",
            *("after ", "at "),
        ),
        _form(
            rf"(?i)\bsurvived (?:for )?(\d{{1,9}}) (?:{COUNTED})s?\b",
            r"steps survived: \1,",
            "survived",
        ),
        # "Test return at 1000: 3.5", "Reward after 20 episodes: 3.5"
        _form(
            rf"(?i)\A(\W{{0,6}}[a-z][\w ./-]{{1,60}}?) (?:at|after) (\d{{1,12}})"
            rf"(?: (?:{COUNTED})s?)? ?[:=] ?(?={NUMBER}\Z)",
            r"step: \2, \1: ",
            *(" at ", " after "),
        ),
        _form(
            rf"(?i)({NUMBER}) (?:at|after) (\d{{1,12}}) ((?:{COUNTED})s?)\b",
            r"\1, \3: \2",
            *(" at ", " after "),
        ),
        _form(
            rf"(?i)\A(\W{{0,6}}[a-z][\w ./-]{{1,60}}?) (?:at|for|of|in|after) (?:the |this )?"
            rf"((?:{COUNTED})s? \d{{1,12}}(?!\d))(?: ?/ ?\d+(?!\d))?"
            rf"(?: is| was|[:=]| =)? *(?={NUMBER})",
            r"\2, \1: ",
            *(" at ", " for ", " of ", " in ", " after "),
        ),
        _form(
            rf"(?i)(?<=[a-z]) (?:is|was|of) (?={NUMBER}(?!\w))", ": ", *(" is ", " was ", " of ")
        ),
    )


def write_pairs(text: str) -> tuple[str, bool]:
    """Return a row with its words written as pairs, and True if they are those of a sentence."""
    text = _rewrite(text, _forms())
    pairs = _rewrite(text, _sentences())
    return pairs, pairs != text


def _rewrite(text: str, forms: tuple[_Form, ...]) -> str:
    lower = text.lower()
    for form in forms:
        for hint in form.hints:
            if hint in lower:
                text = form.pattern.sub(form.replacement, text)
                break
    return text
