"""Checkpoints of an RLHF training: a Hugging Face model, and the state to resume."""

from pathlib import Path

import rlvitals
from rlvitals.trainers.language.rlhf.ppo import PPO
from rlvitals.trainers.language.tiny.base import quiet

RANK_FOLDER = "rank-{}"  # a process's random streams


def save(ppo: PPO, folder: Path) -> None:
    """Write a checkpoint's files: the first process the model and the counters, each its streams.

    Another program finds a model, or an adapter, with its tokenizer.
    """
    if ppo.accelerator.is_main_process:
        save_model(ppo, folder)
        ppo.state().save(folder)
    rank_folder = folder / RANK_FOLDER.format(ppo.accelerator.process_index)
    rank_folder.mkdir()
    rlvitals.State().save(rank_folder)


def save_model(ppo: PPO, folder: Path) -> None:
    """Write the model, or the adapters, with the tokenizer."""
    with quiet():
        ppo.policy.lm.save_pretrained(folder)
        ppo.tokenizer.save_pretrained(folder)


def load(ppo: PPO, folder: Path) -> tuple[str, ...]:
    """Load a checkpoint; return sentences for state that is not restored bit for bit.

    Raises BadCheckpoint where it does not fit.
    """
    lm = ppo.policy.lm
    try:
        if ppo.policy.has_adapters:
            import peft

            weights = peft.load_peft_weights(str(folder), device=str(ppo.accelerator.device))
            peft.set_peft_model_state_dict(lm, weights)
        else:
            with quiet():
                saved_model = type(lm).from_pretrained(folder, dtype=lm.dtype)
            lm.load_state_dict(saved_model.state_dict())
    except (RuntimeError, ValueError, OSError) as error:
        raise rlvitals.BadCheckpoint(
            f"its model does not fit: {error}",
            where=str(folder),
            hint="the settings it was saved with",
        ) from None
    notes = ppo.state().load(folder)
    rank_folder = folder / RANK_FOLDER.format(ppo.accelerator.process_index)
    if rank_folder.is_dir():
        return (*notes, *rlvitals.State().load(rank_folder))
    ppo.seed_streams()  # one process more than there were: else it would draw what the first does
    return notes
