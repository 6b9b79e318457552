"""GRPO trainers that each have one thing wrong, and what they share with the healthy one."""

import copy

import torch
from datasets import Dataset
from tiny_language import problems
from trl import GRPOConfig, GRPOTrainer


def letters(completions, **_):
    """A reward that an untrained model varies in: how many different characters it wrote."""
    return [float(len(set(c))) for c in completions]


def correct(completions, answer, **_):
    """1 for the right sum."""
    return [float(c.strip() == a) for c, a in zip(completions, answer, strict=True)]


class MaskShifted(GRPOTrainer):
    """The mask begins one token late, and ends one token late."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        batch["completion_mask"] = batch["completion_mask"].roll(1, dims=1)
        return batch


class MaskOverPadding(GRPOTrainer):
    """The loss goes on behind the end of an answer."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        batch["completion_mask"] = torch.ones_like(batch["completion_mask"])
        return batch


class MaskLate(GRPOTrainer):
    """The first token of each answer is not trained."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        self.late = batch["completion_mask"].clone()
        self.late[:, 0] = 0
        return batch

    def _compute_loss(self, model, inputs):
        return super()._compute_loss(model, {**inputs, "tool_mask": self.late})


class NotCentred(GRPOTrainer):
    """The advantages are the rewards, as they are."""

    def _calculate_rewards(self, *args):
        self.paid = super()._calculate_rewards(*args)
        return self.paid

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        batch["advantages"] = self.paid.nansum(dim=1)
        return batch


class CentredOverBatch(NotCentred):
    """The mean of the batch is taken away in place of the group's."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        batch["advantages"] -= batch["advantages"].mean()
        return batch


class GroupsMixed(GRPOTrainer):
    """Samples are not grouped by their prompt."""

    def _generate_and_score_completions(self, inputs):
        return super()._generate_and_score_completions(inputs[::2] + inputs[1::2])


def copied(model):
    """Return a model with the same weights of its own: a deep copy would call the original's."""
    other = type(model)(model.config)
    other.load_state_dict(model.state_dict())
    return other


class DeepCopied(GRPOTrainer):
    """Samples are drawn through a deep copy, whose patched forward calls the trained model."""

    def _generate(self, prompts):
        if not hasattr(self, "twin"):
            self.twin = copy.deepcopy(self.model)
        wrapped, self.model_wrapped = self.model_wrapped, self.twin
        try:
            return super()._generate(prompts)
        finally:
            self.model_wrapped = wrapped


class StaleSampler(GRPOTrainer):
    """Samples are drawn by a copy of the model that nobody updates."""

    def _generate(self, prompts):
        if not hasattr(self, "stale"):
            self.stale = copied(self.model).train()
        trained, self.model = self.model, self.stale
        wrapped, self.model_wrapped = self.model_wrapped, self.stale
        try:
            return super()._generate(prompts)
        finally:
            self.model, self.model_wrapped = trained, wrapped


class OldPolicyIsOff(GRPOTrainer):
    """The old policy's log-probabilities are taken at another temperature."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        batch["old_per_token_logps"] = batch["old_per_token_logps"] / 1.1
        return batch


class ShiftedByOne(GRPOTrainer):
    """Each token has the log-probability of the one before it."""

    def _get_per_token_logps_and_entropies(self, *args, **kwargs):
        logps, *rest = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        return (logps.roll(1, dims=1), *rest)


class OtherReference(GRPOTrainer):
    """The reference is not the model that training begins with."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        with torch.no_grad():
            self.ref_model.lm_head.weight.mul_(1.5)


class NoStep(GRPOTrainer):
    """The optimiser holds copies of the weights."""

    def create_optimizer(self, *args, **kwargs):
        optimizer = super().create_optimizer(*args, **kwargs)
        for group in optimizer.param_groups:
            group["params"] = [p.detach().clone().requires_grad_() for p in group["params"]]
        return optimizer


class Forgotten(GRPOTrainer):
    """One layer has a gradient and no place in the optimiser."""

    def create_optimizer(self, *args, **kwargs):
        optimizer = super().create_optimizer(*args, **kwargs)
        left_out = self.model.model.layers[0].mlp.up_proj.weight
        for group in optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p is not left_out]
        return optimizer


def inverted(completions, answer, **_):
    """Pay the wrong answers."""
    return [1 - paid for paid in correct(completions, answer)]


def trainer(base, out, kind=GRPOTrainer, *, model=None, rewards=(letters,), rows=0, **options):
    """Return a trainer of the tiny model: 8 samples in 2 groups, 3 updates; evaluates on `rows`."""
    folder, tok = base
    more = {"peft_config": options.pop("peft_config", None)}
    held_out = {"eval_dataset": Dataset.from_list(problems(rows, 8))} if rows else {}
    said = {
        "output_dir": str(out),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 6,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "max_steps": 3,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        **options,
    }
    return kind(
        model=model or str(folder),
        args=GRPOConfig(**said),
        reward_funcs=list(rewards),
        train_dataset=Dataset.from_list(problems(64, 7)),
        processing_class=tok,
        **held_out,
        **more,
    )
