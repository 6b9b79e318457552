"""What tests of the RLHF page share: a tiny policy, some prompts, rewards of all kinds."""

import torch
from accelerate import Accelerator
from datasets import Dataset
from peft import LoraConfig
from transformers import Qwen2Config, Qwen2ForSequenceClassification

from rlvitals.trainers.language.data import sums_task
from rlvitals.trainers.language.rlhf.config import RLHFConfig
from rlvitals.trainers.language.rlhf.controllers import Fixed
from rlvitals.trainers.language.rlhf.policy import Policy
from rlvitals.trainers.language.rlhf.ppo import PPO
from rlvitals.trainers.language.rlhf.scoring import Scorer
from rlvitals.trainers.language.tiny import lm

SMALL = {"batch_size": 8, "response_length": 4, "temperature": 1.0, "lr": 1e-3, "seed": 0}
LORA = {"r": 2, "lora_dropout": 0.5, "target_modules": ["q_proj", "v_proj"]}


def short(completions, **_):
    """Pay for short completions."""
    return [1.0 - len(one) / 4 for one in completions]


def page(reward=short, *, lora=False, rows=32, **said):
    """A page of PPO with a model that has learned nothing."""
    model, tokenizer = lm.make(0)
    config = RLHFConfig(**{**SMALL, **said})
    torch.manual_seed(0)
    adapter = LoraConfig(**LORA) if lora else None
    return PPO(
        Policy(model, adapter), tokenizer, Dataset.from_list(sums_task.questions(rows, 0)),
        Scorer([reward], [1.0]), config, controller=Fixed(config.kl_coef),
        accelerator=Accelerator(cpu=True),
    )  # fmt: skip


def weights(ppo):
    """Everything that learns, in one vector."""
    return torch.cat([one.detach().flatten() for one in ppo.learning])


def reward_model(folder):
    """A folder with a small sequence classifier and its tokenizer."""
    _, tokenizer = lm.make(0)
    torch.manual_seed(3)
    Qwen2ForSequenceClassification(
        Qwen2Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_labels=1,
            num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            pad_token_id=tokenizer.pad_token_id,
        )
    ).save_pretrained(folder)  # fmt: skip
    tokenizer.save_pretrained(folder)
    return folder
