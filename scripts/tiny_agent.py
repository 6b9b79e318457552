"""A policy of characters for one CPU thread that answers word problems, and may use a tool.

Shared by `record_rollout_runs.py`. A GRU of 90,000 weights reads a prompt of one of three tasks
and writes a reply; each `look;` in a reply is a call of a tool. Everything is built here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import nn

NAMES = ("Tom", "Ann", "Bob", "Sam", "Eve", "Max")
THINGS = ("apple", "kite", "cup", "book", "coin", "pear", "drum", "lamp", "shoe", "ring")
COLOURS = ("red", "blue", "green", "black", "white", "brown")
TASKS = ("add", "colour", "owner")
END, PAD = "\n", "~"
LATIN = "abcdefghijklmnopqrstuvwxyz"
CYRILLIC = "абцдефгхийклмнопярстувшжыз"
LETTERS = PAD + END + LATIN + LATIN.upper() + CYRILLIC + CYRILLIC.upper() + "0123456789 .,;:?()"
NUMBER = {letter: number for number, letter in enumerate(LETTERS)}
TO_CYRILLIC = str.maketrans(LATIN + LATIN.upper(), CYRILLIC + CYRILLIC.upper())
PROMPT_CHARACTERS, REPLY_CHARACTERS = 60, 72
CALL = "look;"


@dataclass(frozen=True, slots=True)
class Problem:
    """A prompt with its task, its answer, and a reply that is right."""

    task: str
    prompt: str
    answer: str
    reply: str


def problem(dice: random.Random, *, leaks: bool = False) -> Problem:
    """Draw a problem; one that `leaks` states its answer in the prompt."""
    task, thing = dice.choice(TASKS), dice.choice(THINGS)
    first, second = dice.sample(NAMES, 2)
    if task == "add":
        a, b = dice.randint(1, 9), dice.randint(1, 9)
        prompt = f"{first} has {a} {thing}s and gets {b} more. how many {thing}s?"
        answer, reply = str(a + b), f"{a} {thing}s and {b} more {thing}s"
    elif task == "colour":
        answer = dice.choice(COLOURS)
        prompt = f"{first} sees a {answer} {thing}. which colour is the {thing}?"
        reply = f"the {thing} of {first} is {answer}"
    else:
        answer = second
        prompt = f"{first} gave {second} a {thing}. who has the {thing}?"
        reply = f"the {thing} went to {second}"
    if leaks:
        prompt += f" answer: {answer}"
    return Problem(task, prompt, answer, f"{reply} so {answer}.")


def lesson(dice: random.Random, wrong: float) -> tuple[str, str]:
    """Draw a prompt and a reply to imitate: some are wrong, wordy, Cyrillic, or copy the prompt."""
    drawn = problem(dice)
    reply = drawn.reply
    if dice.random() < wrong:
        stem = reply.rpartition(" ")[0]
        reply = f"{stem} {problem(dice).answer}."
    style = dice.random()
    if style < 0.1:
        reply = reply.translate(TO_CYRILLIC)
    elif style < 0.2:
        reply = f"{drawn.prompt} so {drawn.answer}."
    elif style < 0.3:
        reply = f"well well {reply}"
    return drawn.prompt, CALL * dice.choice((0, 0, 0, 1, 1, 2)) + reply[: REPLY_CHARACTERS - 12]


def encode(texts: list[str], length: int, *, left: bool) -> torch.Tensor:
    """Return token numbers, int64 [n, length], padded on one side."""
    rows = [
        text[-length:].rjust(length, PAD) if left else text[:length].ljust(length, PAD)
        for text in texts
    ]
    return torch.tensor([[NUMBER[letter] for letter in row] for row in rows])


class Policy(nn.Module):
    """A GRU over characters."""

    def __init__(self, width: int = 128) -> None:
        """Build the layers."""
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 48)
        self.gru = nn.GRU(48, width, batch_first=True)
        self.head = nn.Linear(width, len(LETTERS))

    def log_probs(self, prompts: torch.Tensor, replies: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities of all characters after each prefix, [n, reply, letters]."""
        states, _ = self.gru(self.embed(torch.cat((prompts, replies[:, :-1]), 1)))
        return torch.log_softmax(self.head(states[:, prompts.shape[1] - 1 :]), -1)

    @torch.no_grad()
    def sample(self, prompts: torch.Tensor, temperature: float, limit: int) -> torch.Tensor:
        """Sample replies of `limit` characters at most: int64 [n, longest], padded."""
        states, hidden = self.gru(self.embed(prompts))
        state, ended = states[:, -1], torch.zeros(len(prompts), dtype=torch.bool)
        letters = []
        for _ in range(limit):
            chances = torch.softmax(self.head(state) / temperature, -1)
            chances[:, NUMBER[PAD]] = 0.0
            letter = torch.multinomial(chances, 1)
            letter[ended] = NUMBER[PAD]
            ended |= letter[:, 0] == NUMBER[END]
            letters.append(letter)
            if ended.all():
                break
            states, hidden = self.gru(self.embed(letter), hidden)
            state = states[:, -1]
        return torch.cat(letters, 1)


def imitate(policy: Policy, steps: int, wrong: float, seed: int = 0) -> float:
    """Train a policy on lessons; return the last loss in nats a character."""
    dice = random.Random(seed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=4e-3)
    loss = torch.tensor(0.0)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 4e-3 * min(1.0, 2 * (1 - step / steps))
        pairs = [lesson(dice, wrong) for _ in range(48)]
        prompts = encode([prompt for prompt, _ in pairs], PROMPT_CHARACTERS, left=True)
        replies = encode([reply + END for _, reply in pairs], REPLY_CHARACTERS, left=False)
        mask = replies != NUMBER[PAD]
        chosen = policy.log_probs(prompts, replies).gather(2, replies[..., None])[..., 0]
        loss = -(chosen * mask).sum() / mask.sum()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
    return loss.item()


def decode(tokens: torch.Tensor) -> list[tuple[str, bool]]:
    """Return each reply, and whether it ended by itself."""
    texts = ["".join(LETTERS[int(n)] for n in row) for row in tokens]
    return [(text.partition(END)[0].rstrip(PAD), END in text) for text in texts]
