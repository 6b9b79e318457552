"""Measure what replies share with their prompts, on a few rollouts of each step.

Words are counted for the first rollout of each of the first 32 prompts of a step: all rollouts
would take longer than the rest of the index, and shares of 32 scatter by less than 0.09. Of the
texts nothing is kept but these numbers.
"""

import re
from collections import defaultdict
from dataclasses import field
from math import log

import numpy as np

from rlvitals.rollouts.sample import Sample
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern

MIN_STEP_PROMPTS = 8  # fewer cannot be told from each other
MAX_OPEN_STEPS = 16  # steps of which words wait in memory; asynchronous files mix a few
MAX_TEXT_CHARACTERS = 8000  # of a prompt and of a reply, that are read
PASSAGE_CHARACTERS = 24  # shorter passages are names and phrases that a reply must repeat
# A word of letters, or a single sign of Chinese, Japanese or Korean.
WORD = lazy_pattern(r"[\u2e80-\ud7ff]|[^\W\d_\u2e80-\ud7ff]+")
LETTERS_OF_SCRIPTS = {
    name: lazy_pattern(pattern)
    for name, pattern in {
        "Latin": r"[A-Za-z\u00c0-\u024f]",
        "Greek": r"[\u0370-\u03ff]",
        "Cyrillic": r"[\u0400-\u052f]",
        "Hebrew": r"[\u0590-\u05ff]",
        "Arabic": r"[\u0600-\u06ff]",
        "Indic": r"[\u0900-\u0dff]",
        "Thai": r"[\u0e00-\u0e7f]",
        "Japanese": r"[\u3040-\u30ff]",
        "Chinese": r"[\u3400-\u9fff]",
        "Korean": r"[\uac00-\ud7af]",
    }.items()
}
BEFORE_ANSWER = lazy_pattern(
    r"(?:answer|solution|ground.?truth|result|label)\W{0,4}(?:is\W{1,4})?$", re.IGNORECASE
)
# Two or more of these are examples: of one letter of four, one of them is the expected answer.
LABELLED = lazy_pattern(
    r"(?:answer|solution|ground.?truth|result|label)\W{0,4}[:=][ \t]*\S", re.IGNORECASE
)


@dataclass(slots=True)
class _Step:
    """Words of a step's rollouts, until all of them can be compared."""

    rows: list[int] = field(default_factory=list)
    prompts: list[frozenset[str]] = field(default_factory=list)
    replies: list[frozenset[str]] = field(default_factory=list)
    hashes: set[int] = field(default_factory=set)


class TextMeasures:
    """Measures samples as they are read; `retrieved` holds (row, value) of the closed steps.

    `retrieved` is how surely a prompt is found again among those of its step by the words of its
    reply: 1 for each time, 0 as by chance. Words that are capitalised in the prompt, and numbers,
    are left out: a template copies them.
    """

    def __init__(self) -> None:
        """Begin without a step."""
        self._steps: dict[int, _Step] = {}
        self.retrieved: list[tuple[int, float]] = []

    def add(self, row: int, step: int, prompt_hash: int, sample: Sample, text: str) -> bool:
        """Take a sample's words where its prompt is new in its step; return whether it is."""
        state = self._steps.get(step)
        if state is None:
            if len(self._steps) >= MAX_OPEN_STEPS:
                self._close(next(iter(self._steps)))
            state = self._steps[step] = _Step()
        if len(state.hashes) >= 32 or prompt_hash in state.hashes:
            return False
        state.hashes.add(prompt_hash)
        prompt_words = WORD.findall(sample.prompt[:MAX_TEXT_CHARACTERS])
        names = {text.lower() for text in prompt_words if text[0].isupper()}
        state.rows.append(row)
        state.prompts.append(frozenset(text.lower() for text in prompt_words) - names)
        reply = WORD.findall(text[:MAX_TEXT_CHARACTERS].lower())
        state.replies.append(frozenset(reply) - names)
        return True

    def close(self) -> None:
        """Compare the rollouts of the steps that are still open."""
        while self._steps:
            self._close(next(iter(self._steps)))

    def _close(self, step: int) -> None:
        state = self._steps.pop(step)
        count = len(state.rows)
        if count < MIN_STEP_PROMPTS:
            return
        prompts_with: dict[str, list[int]] = defaultdict(list)
        for number, vocabulary in enumerate(state.prompts):
            for term in vocabulary:
                prompts_with[term].append(number)
        weight = {term: log(count / len(having)) for term, having in prompts_with.items()}
        size = np.array([sum(map(weight.__getitem__, terms)) for terms in state.prompts])
        if np.count_nonzero(size) < MIN_STEP_PROMPTS:
            return  # prompts without words of their own: a reply cannot lead back to one
        for number, (row, vocabulary) in enumerate(zip(state.rows, state.replies, strict=True)):
            score = np.zeros(count)
            for term in vocabulary & weight.keys():
                score[prompts_with[term]] += weight[term]
            score /= np.sqrt(np.maximum(size, 1.0))
            best = score == score.max()
            hit = 1.0 / best.sum() if best[number] else 0.0
            self.retrieved.append((row, (hit - 1 / count) / (1 - 1 / count)))


def copied_share(prompt: str, reply: str) -> float:
    """Return the share of a reply's passages of 24 characters that stand in its prompt.

    NaN for a reply that is shorter.
    """
    last = len(reply) - PASSAGE_CHARACTERS
    if last < 0:
        return float("nan")
    step = max(PASSAGE_CHARACTERS, last // 40)  # spread evenly over the reply
    starts = range(0, last + 1, step)
    text = prompt[:MAX_TEXT_CHARACTERS]
    return sum(reply[n : n + PASSAGE_CHARACTERS] in text for n in starts) / len(starts)


def states_answer(prompt: str, answer: str) -> bool:
    """Return whether a prompt states the answer after a word such as "answer" or "solution".

    Prompts with examples, which have several such words with a value, do not.
    """
    text, answer = prompt[:MAX_TEXT_CHARACTERS], answer.strip()
    if len(LABELLED.findall(text)) > 1:
        return False
    position = text.find(answer) if answer else -1
    while position >= 0:
        end = position + len(answer)
        is_word = not text[end : end + 1].isalnum()
        # Its label stands in the 24 characters before an answer.
        label = text[max(0, position - 24) : position]
        if is_word and BEFORE_ANSWER.search(label):
            return True
        position = text.find(answer, position + 1)
    return False


def gives_answer(reply: str, answer: str) -> bool:
    """Return whether a reply ends by giving the expected answer, alone and marked as its answer.

    In a box, in tags, behind four number signs or behind a word such as "answer", at the end of a
    line. A number with a unit, or the same one written otherwise, is left out.
    """
    answer = answer.strip()
    position = reply.rfind(answer) if answer else -1
    if position < max(0, len(reply) - 300):  # characters in which a reply states its answer
        return False
    label, ending = reply[max(0, position - 24) : position], reply[position + len(answer) :]
    marks = (
        r"(?:\\boxed\{|<answer>\s*|#{4}\s*|(?:answer|solution|result)\W{0,4}(?:is\W{1,4})?)[$*]*$"
    )
    is_alone = re.match(r"[}$*).]*\s*(?:</answer>|<\||\n|$)", ending, re.IGNORECASE) is not None
    return is_alone and re.search(marks, label, re.IGNORECASE) is not None


def changes_script(prompt: str, reply: str) -> bool:
    """Return whether a tenth of a reply's letters are of scripts that its prompt does not use."""
    prompt, reply = prompt[:MAX_TEXT_CHARACTERS], reply[:MAX_TEXT_CHARACTERS]
    if prompt.isascii() and reply.isascii():
        return False
    in_prompt, in_reply = (
        {name: len(pattern.findall(text)) for name, pattern in LETTERS_OF_SCRIPTS.items()}
        for text in (prompt, reply)
    )
    limit = 0.05 * sum(in_prompt.values())  # of letters: the prompt uses that script
    letter_count = sum(count for name, count in in_reply.items() if in_prompt[name] <= limit)
    # Of a reply's letters: mathematics uses a few Greek ones.
    return letter_count > 0.1 * sum(in_reply.values())
