"""A language model for one CPU thread, its task, and the storage of recorded runs.

Shared by the `record_*` scripts of language-model runs. Everything is built here: no download.
The model is a Qwen2 of about 130,000 parameters over single characters; the task is `a+b=`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PAD, EOS, BOS, UNKNOWN = "<pad>", "<eos>", "<bos>", "<unk>"
LETTERS = "0123456789+-*=?.,:; abcdefghijklmnopqrstuvwxyz"
PROMPT_TOKENS = 4  # "3+4="
ANSWERS = {"+": int.__add__, "-": int.__sub__}
POSSIBLE_ANSWERS = {"+": range(19), "-": range(-9, 10)}  # of two digits
LARGEST_FILE = 200_000  # bytes: recorded runs are shipped with the tests


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a character, padded on the left as generation needs it."""
    vocabulary = {token: i for i, token in enumerate([PAD, EOS, BOS, UNKNOWN, *LETTERS])}
    characters = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    characters.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=characters,
        pad_token=PAD,
        eos_token=EOS,
        bos_token=BOS,
        unk_token=UNKNOWN,
        padding_side="left",
    )


def config(tok: PreTrainedTokenizerFast) -> Qwen2Config:
    """Two layers of width 64."""
    return Qwen2Config(
        vocab_size=len(tok),
        hidden_size=64,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        use_sliding_window=False,
        pad_token_id=tok.pad_token_id,
        eos_token_id=tok.eos_token_id,
        bos_token_id=tok.bos_token_id,
    )


def untrained(tok: PreTrainedTokenizerFast, seed: int = 0) -> Qwen2ForCausalLM:
    """Return a model with random weights."""
    torch.manual_seed(seed)
    return Qwen2ForCausalLM(config(tok))


def problems(count: int, seed: int, offset: int = 0, operator: str = "+") -> list[dict[str, str]]:
    """Sums or differences of two digits.

    An `offset` of 100 asks for answers that no warm start has ever seen.
    """
    dice = random.Random(seed)
    pairs = [(dice.randint(0, 9), dice.randint(0, 9)) for _ in range(count)]
    return [
        {"prompt": f"{a}{operator}{b}=", "answer": str(ANSWERS[operator](a, b) + offset)}
        for a, b in pairs
    ]


def warm_start(  # noqa: PLR0913
    model: Qwen2ForCausalLM,
    tok: PreTrainedTokenizerFast,
    *,
    steps: int = 500,
    wrong: float = 0.5,
    ending: str = EOS,
    operator: str = "+",
) -> float:
    """Teach the form of an answer with a share of `wrong` labels, so that RL has room.

    `ending` follows every answer; anything but `EOS` gives a model that cannot stop.
    Returns the last loss in nats a token.
    """
    dice = random.Random(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    loss = torch.tensor(0.0)
    for _ in range(steps):
        rows = problems(64, dice.randint(0, 10**9), operator=operator)
        answers = [
            row["answer"] if dice.random() > wrong else str(dice.choice(POSSIBLE_ANSWERS[operator]))
            for row in rows
        ]
        texts = [row["prompt"] + a + ending for row, a in zip(rows, answers, strict=True)]
        batch = tok(texts, return_tensors="pt", padding=True, padding_side="right")
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        labels[:, :PROMPT_TOKENS] = -100
        loss = model(**batch, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


def warm_folder(
    folder: Path,
    *,
    steps: int = 500,
    wrong: float = 0.5,
    ending: str = EOS,
    operator: str = "+",
) -> tuple[Path, PreTrainedTokenizerFast]:
    """Save a warm-started model and its tokenizer in `folder`, once."""
    tok = tokenizer()
    if not (folder / "config.json").exists():
        model = untrained(tok)
        warm_start(model, tok, steps=steps, wrong=wrong, ending=ending, operator=operator)
        model.save_pretrained(folder)
        tok.save_pretrained(folder)
    return folder, tok


def keep_run(work: Path, target: Path, settings: Mapping[str, object]) -> None:
    """Copy the trainer's `trainer_state.json` files from `work`, checkpoints' too, to `target`."""
    for source in sorted(work.rglob("trainer_state.json")):
        target_file = target / source.relative_to(work)
        target_file.parent.mkdir(parents=True, exist_ok=True)
        target_file.write_bytes(source.read_bytes())
        if target_file.stat().st_size > LARGEST_FILE:
            problem = f"{target_file} holds {target_file.stat().st_size} bytes: log fewer steps"
            raise ValueError(problem)
    (target / "settings.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def newest_rows(run: Path) -> list[dict[str, Any]]:
    """Return the log of a kept run: its own, or that of its last checkpoint."""
    states = [json.loads(path.read_text()) for path in run.rglob("trainer_state.json")]
    states.sort(key=lambda state: int(state["global_step"]))
    rows: list[dict[str, Any]] = states[-1]["log_history"]
    return [row for row in rows if "train_runtime" not in row]


def first_to_last(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """Mean of the first and of the last five values of a metric, `-` where it is not logged."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return "-"
    first, last = values[:5], values[-5:]
    return f"{sum(first) / len(first):.3g} > {sum(last) / len(last):.3g}"


def write_summary(out: Path, columns: Mapping[str, str]) -> None:
    """`SUMMARY.md`: a line a run, first five to last five of each of `columns` (title: key)."""
    lines = [
        "Mean of the first five logged values > mean of the last five.",
        "",
        f"| run | fault | rows | {' | '.join(columns)} |",
        "|---" * (len(columns) + 3) + "|",
    ]
    for settings_file in sorted(out.glob("*/settings.json")):
        run = settings_file.parent
        rows = newest_rows(run)
        fault = json.loads(settings_file.read_text())["fault"]
        cells = [first_to_last(rows, key) for key in columns.values()]
        lines.append(f"| {run.name} | {fault} | {len(rows)} | {' | '.join(cells)} |")
    (out / "SUMMARY.md").write_text("\n".join(lines) + "\n")


def record_named(runs: Sequence[Any], record: Callable[[Any, Path, Path], None], page: str) -> int:
    """Record the runs named on the command line: `record(run, out, folder of base models)`."""
    parser = argparse.ArgumentParser(description=page.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", help="every run not yet in OUT")
    parser.add_argument("--list", action="store_true", help="names and faults")
    options = parser.parse_args()
    if options.list:
        sys.stdout.writelines(f"{run.name:28s} {run.fault}\n" for run in runs)
        return 0
    unknown = set(options.names) - {run.name for run in runs}
    if options.out is None or unknown or not (options.names or options.all):
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "give OUT and NAME")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as bases:
        for run in runs:
            missing = not (options.out / run.name / "settings.json").exists()
            if run.name in options.names or (options.all and missing):
                record(run, options.out, Path(bases))
                sys.stdout.write(f"recorded {run.name}\n")
                sys.stdout.flush()
    return 0
