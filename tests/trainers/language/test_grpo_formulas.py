"""What TRL's GRPO logs, computed by hand for two answers of three tokens: the rules rely on it."""

import math

import pytest
import torch
import trained
from datasets import Dataset

from rlvitals.trainers.language import factory, models
from rlvitals.trainers.language.data import sums_task
from rlvitals.trainers.language.modes import ModesTrainer

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")

# The policy's log-probabilities, those it had when it drew, the reference's, and its entropies. The
# second answer has two tokens: its third is padding, and holds what must not be counted.
NEW = torch.tensor([[-0.5, -1.0, -2.0], [-1.5, -0.2, -4.0]])
OLD = torch.tensor([[-0.9, -1.0, -1.7], [-1.1, -0.2, -1.0]])
REFERENCE = torch.tensor([[-0.6, -1.2, -2.0], [-1.0, -0.3, -2.0]])
ENTROPY = torch.tensor([[0.3, 0.6, 0.9], [1.2, 0.5, 50.0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
ADVANTAGES = torch.tensor([1.0, -2.0])
COUNTED = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]  # row, token


@pytest.fixture
def make(tiny, tmp_path):
    def made(rewards=None, **said):
        config = trained.config(tmp_path, "grpo", training__beta=0.5, **said)
        loaded = models.load(config.model, seed=5, base=tiny)
        return ModesTrainer(
            model=loaded.model, args=factory.arguments(config, tmp_path),
            reward_funcs=rewards or [trained.alternating], mode="grpo",
            train_dataset=Dataset.from_list(sums_task.questions(8, 7)),
            processing_class=loaded.processor,
        )  # fmt: skip

    return made


def logged(trainer, monkeypatch, loss_type):
    """The loss and the metrics of the batch above."""
    said = (NEW.clone().requires_grad_(), ENTROPY, None)
    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", lambda *_, **__: said)
    trainer.loss_type, trainer.current_gradient_accumulation_steps = loss_type, 1
    ids = torch.zeros(2, 3, dtype=torch.long)
    loss = trainer._compute_loss(
        trainer.model.train(),
        {
            "prompt_ids": ids, "prompt_mask": torch.ones_like(ids), "completion_ids": ids,
            "completion_mask": MASK, "advantages": ADVANTAGES, "old_per_token_logps": OLD,
            "ref_per_token_logps": REFERENCE, "num_items_in_batch": MASK.sum(),
        },
    )  # fmt: skip
    return float(loss), {key: value[-1] for key, value in trainer._metrics["train"].items()}


def per_token():
    """Each counted token's loss and KL, in plain arithmetic."""
    for row, token in COUNTED:
        new, old, ref = (float(one[row, token]) for one in (NEW, OLD, REFERENCE))
        ratio, advantage = math.exp(new - old), float(ADVANTAGES[row])
        clipped = min(max(ratio, 0.8), 1.2)
        # k3, weighted by the ratio: `use_bias_correction_kl` is on by default in TRL 1.16.
        kl = (math.exp(ref - new) - (ref - new) - 1.0) * ratio
        yield row, -min(ratio * advantage, clipped * advantage) + 0.5 * kl, kl, ratio


def test_the_loss_and_its_metrics(make, monkeypatch):
    rows = list(per_token())
    loss, found = logged(make(), monkeypatch, "dapo")
    assert loss == pytest.approx(sum(one for _, one, _, _ in rows) / 5, rel=1e-5)
    assert found["kl"] == pytest.approx(sum(kl for *_, kl, _ in rows) / 5, rel=1e-5)
    assert found["entropy"] == pytest.approx((0.3 + 0.6 + 0.9 + 1.2 + 0.5) / 5, rel=1e-5)
    # exp(.4) = 1.49 with a good advantage; exp(-.4) = .67 with a bad one; exp(-.3) = .74 is free.
    assert found["clip_ratio/high_mean"] == pytest.approx(1 / 5)
    assert found["clip_ratio/low_mean"] == pytest.approx(1 / 5)
    assert found["clip_ratio/region_mean"] == pytest.approx(2 / 5)
    assert found["clip_ratio/high_max"] == pytest.approx(1 / 3)
    assert found["clip_ratio/low_min"] == pytest.approx(0.0)


def test_the_loss_by_answers(make, monkeypatch):
    """The first GRPO's: the mean over an answer's tokens, then over answers."""
    rows = list(per_token())
    means = [sum(one for at, one, *_ in rows if at == row) / (3 - row) for row in (0, 1)]
    loss, _ = logged(make(), monkeypatch, "grpo")
    assert loss == pytest.approx(sum(means) / 2, rel=1e-5)


def paid(completions, **_):
    """Two groups of four: one told apart, one that is not; the last answer is not scored."""
    return [1.0, 0.0, 0.0, 3.0, 2.0, 2.0, 2.0, None][: len(completions)]


def test_advantages_and_rewards(make):
    trainer = make([paid])
    rows = [row for row in trainer.train_dataset.to_list()[:2] for _ in range(4)]
    trainer.model.train()
    out = trainer._generate_and_score_completions(rows)
    found = {key: value[-1] for key, value in trainer._metrics["train"].items()}
    mean, std = 1.0, math.sqrt((0 + 1 + 1 + 4) / 3)  # of the first group; std of n - 1
    expected = [(r - mean) / (std + 1e-4) for r in (1.0, 0.0, 0.0, 3.0)] + [0.0] * 4
    assert out["advantages"].tolist() == pytest.approx(expected, abs=1e-5)
    scored = [1.0, 0.0, 0.0, 3.0, 2.0, 2.0, 2.0]
    average = sum(scored) / 7
    spread = math.sqrt(sum((r - average) ** 2 for r in scored) / 6)
    assert found["reward"] == found["rewards/paid/mean"] == pytest.approx(average)
    assert found["reward_std"] == found["rewards/paid/std"] == pytest.approx(spread, rel=1e-5)
    assert found["frac_reward_zero_std"] == pytest.approx(0.5)
    lengths = out["completion_mask"].sum(1).float()
    assert found["completions/mean_length"] == pytest.approx(float(lengths.mean()))
    assert found["completions/max_length"] == float(lengths.max())
    last = [int(ids[int(n) - 1]) for ids, n in zip(out["completion_ids"], lengths, strict=True)]
    ends = (*trainer.eos_token_ids, trainer._tokenizer.pad_token_id)
    cut = [one not in ends for one in last]
    assert found["completions/clipped_ratio"] == pytest.approx(sum(cut) / 8)
