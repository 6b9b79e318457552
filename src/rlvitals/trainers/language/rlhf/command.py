"""`rlvitals train rlhf`: its flags, and what they come to."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rlvitals.trainers import schema
from rlvitals.trainers.language.rlhf.config import Config

ABOUT = "RLHF by PPO: a causal language model against a reward model or reward functions."
QUICKLY = "train a tiny model on sums: half a minute"
ALIASES = MappingProxyType({
    "model.vlm_name": ("--model-name",),
    "checkpointing.keep": ("--save-total-limit",),
    "rlhf.lr": ("--learning-rate",),
    "rlhf.kl_coef": ("--init-kl-coef",),
})  # fmt: skip
# Between the flags and the defaults: what is made here, and what teaches it. A large model wants
# another learning rate, and an adapter.
TINY = MappingProxyType({
    "model.vlm_name": "tiny-lm", "model.lora": False, "data.dataset_name": "sums",
    "rlhf.lr": 3e-4, "rlhf.response_length": 6,
    "rlhf.temperature": 1.0,
})  # fmt: skip
SOURCE = "for the tiny model"
LARGE = MappingProxyType({"data.dataset_name": "sums"})
QUICK = MappingProxyType({"rlhf.total_episodes": 1280, "checkpointing.save_steps": 10})


def add_flags(parser: ArgumentParser, algorithm: str, options: Sequence[str]) -> None:
    """Give a parser the flags."""
    del algorithm, options
    schema.add_flags(parser, Config, aliases=ALIASES, below=TINY, source=SOURCE)


def configure(algorithm: str, chosen: Mapping[str, Any]) -> Config:
    """Return what the flags come to. Raises UsageError."""
    del algorithm
    said = schema.said(chosen, Config)
    if chosen["quick_test"]:
        said = {**QUICK, **said}
    file: Path | None = chosen["config"]
    held = (schema.content(file) if file else {}).get("model")
    name = said.get("model.vlm_name") or (held.get("vlm_name") if isinstance(held, dict) else None)
    tiny = name in {None, TINY["model.vlm_name"]}
    return schema.load(Config, file, said, below=TINY if tiny else LARGE)


def train(config: Config, chosen: Mapping[str, Any]) -> tuple[Path, str] | None:
    """Train; returns the run's folder and where its pictures are wanted, None for nowhere."""
    del chosen
    from rlvitals.trainers.language.rlhf.program import Training

    training = Training(config)
    training.run()
    wanted = config.monitoring.plots_dir
    return (training.folder, wanted) if wanted and training.first else None
