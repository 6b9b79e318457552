"""PSR, NSR and W-REINFORCE: who teaches what, and TRL's trainer as it is relied on."""

import inspect
import math
import os

import forked
import pytest
import torch
from datasets import Dataset
from effort import sampled
from transformers import set_seed
from trl import GRPOTrainer

from rlvitals import UsageError
from rlvitals.trainers.language import factory, models, sample_weights
from rlvitals.trainers.language.config import Config, ModelConfig, SignalConfig, TrainingConfig
from rlvitals.trainers.language.data import sums_task
from rlvitals.trainers.language.modes import TOKEN_LOSSES, ModesTrainer

# The libraries warn of each other's old names.
pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
NAN = float("nan")
TINY = ModelConfig(vlm_name="tiny-lm", lora=False, warm_start_steps=60)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tmp_path_factory.mktemp("tiny") / "base"


@pytest.fixture
def make(base, tmp_path):
    """A function that makes a trainer of a mode, all of them alike but for what is asked."""

    def made(mode="nsr", rewards=None, *, signal=None, **changed):
        said = {"batch_size": 8, "learning_rate": 1e-3, "max_completion_length": 6, "max_steps": 2}
        config = Config(
            training=TrainingConfig(mode=mode, **said | changed),
            model=TINY,
            signal=signal or SignalConfig(num_generations=4),
        )
        torch.set_num_threads(1)
        loaded = models.load(TINY, seed=0, base=base)
        set_seed(0)
        return ModesTrainer(
            model=loaded.model,
            args=factory.arguments(config, tmp_path / "run"),
            reward_funcs=rewards or [alternating],
            train_dataset=Dataset.from_list(sums_task.questions(16, 7)),
            processing_class=loaded.processor,
            mode=mode,
            signal=config.signal,
            correctness="alternating",
        )

    return made


def alternating(completions, **_):
    """Every second sample is right."""
    return [float(at % 2) for at in range(len(completions))]


def drawn(trainer):
    """A batch as the trainer draws it, the same in each mode."""
    rows = [row for row in trainer.train_dataset.to_list()[:2] for _ in range(4)]
    set_seed(3)
    trainer.model.train()
    return trainer._generate_and_score_completions(rows)


def gradient(trainer, batch):
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.zero_grad()
    trainer._compute_loss(trainer.model, batch).backward()
    return {name: one.grad.clone() for name, one in trainer.model.named_parameters()}


def flat(found):
    return torch.cat([one.flatten() for one in found.values()])


# -- what a sample teaches ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "advantages", "filtered"),
    [
        ("psr", [1, 1, 0, 0, 0], [2.0, 0.5, 0, 0, 0]),
        ("nsr", [0, 0, -1, -1, 0], [0, 0, -0.25, -1.5, 0]),
        ("w-reinforce", [0.1, 0.1, -1, -1, 0], [0.2, 0.05, -0.25, -1.5, 0]),
    ],
)
def test_by_hand(mode, advantages, filtered):
    paid = torch.tensor([2.0, 0.5, 0.25, -1.0, NAN])
    found = sample_weights.signal(mode, paid, SignalConfig(reward_threshold=0.5))
    torch.testing.assert_close(found.advantages, torch.tensor(advantages, dtype=torch.float32))
    torch.testing.assert_close(found.filtered, torch.tensor(filtered, dtype=torch.float32))
    assert found.positive.tolist() == [True, True, False, False, False]
    assert found.negative.tolist() == [False, False, True, True, False]


def test_metrics_by_hand():
    paid = torch.tensor([2.0, 0.5, 0.25, -1.0, NAN])

    def told(mode):
        found = sample_weights.signal(mode, paid, SignalConfig(reward_threshold=0.5))
        return {key: round(value, 6) for key, value in sample_weights.metrics(mode, found).items()}

    assert told("psr") == {
        "psr/avg_reward": 0.5, "psr/mean_reward": 0.4375, "psr/positive_samples": 2,
        "psr/positive_ratio": 0.5,
    }  # fmt: skip
    assert told("nsr") == {
        "nsr/avg_reward": -0.35, "nsr/mean_reward": 0.4375, "nsr/negative_samples": 2,
        "nsr/negative_ratio": 0.5,
    }  # fmt: skip
    assert told("w-reinforce") == {
        "w_reinforce/avg_reward": -0.3, "w_reinforce/mean_reward": 0.4375,
        "w_reinforce/positive_samples": 2, "w_reinforce/negative_samples": 2,
        "w_reinforce/pos_neg_ratio": 1,
    }  # fmt: skip


def test_nothing_paid_teaches_nothing_and_counts_as_neither():
    found = sample_weights.signal("w-reinforce", torch.full((4,), NAN), SignalConfig())
    assert not found.is_learned.any()
    told = sample_weights.metrics("w-reinforce", found)
    assert told["w_reinforce/positive_samples"] == told["w_reinforce/negative_samples"] == 0
    assert math.isnan(told["w_reinforce/pos_neg_ratio"])
    assert math.isnan(told["w_reinforce/mean_reward"])


def test_a_total_leaves_out_what_was_not_paid():
    paid = torch.tensor([[1.0, NAN], [NAN, NAN], [2.0, 3.0]])
    found = sample_weights.total(paid, torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(found, torch.tensor([1.0, NAN, 3.5]), equal_nan=True)


# -- the gradient ------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", sampled(["kept", "all"], 2))
@pytest.mark.parametrize(("mode", "filtered"), [("psr", 0), ("nsr", 1)])
def test_the_text_of_a_filtered_sample_changes_no_bit_of_the_gradient(
    make, mode, filtered, normalise
):
    trainer = make(mode, signal=SignalConfig(num_generations=4, normalise=normalise))
    batch = drawn(trainer)
    before = gradient(trainer, batch)
    other = {**batch, "completion_ids": batch["completion_ids"].clone()}
    other["completion_ids"][filtered, 0] += 1
    assert not torch.equal(other["completion_ids"], batch["completion_ids"])
    after = gradient(trainer, other)
    assert all(torch.equal(before[name], after[name]) for name in before)
    # While that of a sample that is kept does.
    kept = {**batch, "completion_ids": batch["completion_ids"].clone()}
    kept["completion_ids"][1 - filtered, 0] += 1
    assert not torch.equal(flat(gradient(trainer, kept)), flat(before))


def test_with_grpo_a_wrong_sample_pushes(make):
    """What the modes leave out: without it the test above could not fail."""
    trainer = make("grpo")
    batch = drawn(trainer)
    assert (batch["advantages"] != 0).all()


def test_lambda_weighs_the_positive_gradient_exactly(make):
    said = {"num_generations": 4, "normalise": "all"}
    found = {}
    for mode in ("psr", "nsr", "w-reinforce"):
        trainer = make(mode, signal=SignalConfig(**said, lambda_psr=0.25))
        found[mode] = flat(gradient(trainer, drawn(trainer)))
    mixed = 0.25 * found["psr"] + found["nsr"]
    torch.testing.assert_close(found["w-reinforce"], mixed, rtol=1e-4, atol=1e-7)
    positive = found["w-reinforce"] - found["nsr"]
    ratio = float(positive @ found["psr"] / (found["psr"] @ found["psr"]))
    assert ratio == pytest.approx(0.25, abs=1e-4)


def test_kept_is_the_mean_over_the_tokens_that_are_learned_from(make):
    found, tokens = {}, {}
    for normalise in ("kept", "all"):
        trainer = make("nsr", signal=SignalConfig(num_generations=4, normalise=normalise))
        batch = drawn(trainer)
        found[normalise] = flat(gradient(trainer, batch))
        tokens[normalise] = int(batch["num_items_in_batch"])
    lengths = batch["completion_mask"].sum(1)
    assert tokens["all"] == int(lengths.sum())
    assert tokens["kept"] == int(lengths[::2].sum())
    share = tokens["all"] / tokens["kept"]
    torch.testing.assert_close(found["kept"], share * found["all"], rtol=1e-4, atol=1e-7)


def test_where_nothing_is_filtered_kept_is_all(make):
    """A lambda of 0 leaves the positive ones without a gradient, and in the mean."""
    for lambda_psr in (0.1, 0.0):
        said = {"num_generations": 4, "lambda_psr": lambda_psr, "normalise": "kept"}
        batch = drawn(make("w-reinforce", signal=SignalConfig(**said)))
        assert batch["num_items_in_batch"] == batch["completion_mask"].sum()


def test_all_filtered_is_a_gradient_of_zero(make):
    trainer = make(
        "psr", [none_right], signal=SignalConfig(threshold_on="total", num_generations=4)
    )
    assert not flat(gradient(trainer, drawn(trainer))).any()


def none_right(completions, **_):
    return [0.0] * len(completions)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_process_learns_from_its_own_samples(make):
    """The first has only right ones, the second only wrong ones."""

    def alternating(completions, **_):
        return [float(os.environ["RANK"] == "0") for _ in completions]

    def advantages(_):
        signal = SignalConfig(num_generations=4, normalise="kept")
        batch = drawn(make("psr", [alternating], signal=signal))
        own = int(batch["completion_mask"].sum())
        return batch["advantages"].tolist(), int(batch["num_items_in_batch"]), own

    (right, counted, own), (wrong, as_counted, _) = forked.ranks(advantages)
    assert (right, wrong) == ([1.0] * 8, [0.0] * 8)
    assert counted == as_counted == own  # the tokens of the first, for both


# -- what goes with it -------------------------------------------------------------------------


def test_a_training_logs_the_modes_metrics_and_tells_of_each_generation(make):
    told = []
    trainer = make("nsr", max_steps=3)
    trainer._on_batch = told.append
    trainer.train()
    rows = [row for row in trainer.state.log_history if "nsr/negative_ratio" in row]
    assert [row["nsr/negative_ratio"] for row in rows] == [0.5, 0.5, 0.5]
    assert [row["nsr/avg_reward"] for row in rows] == [-0.25] * 3
    assert [one.step for one in told] == [0, 1, 2]
    assert told[0].rewards == {"alternating": [0.0, 1.0] * 4}
    assert list(trainer._logs["advantages"]) == [-1.0, 0.0] * 4


def test_what_is_compared_must_be_paid(make):
    with pytest.raises(UsageError, match="nothing pays that"):
        make("nsr", [none_right])
    assert make("nsr", [none_right], signal=SignalConfig(threshold_on="total", num_generations=4))
    assert make("grpo", [none_right])


def test_a_mean_over_kept_tokens_needs_a_loss_over_tokens(make):
    kept = SignalConfig(num_generations=4, normalise="kept")
    with pytest.raises(UsageError, match="no mean over the tokens"):
        make("psr", loss_type="grpo", signal=kept)
    assert make("w-reinforce", loss_type="grpo", signal=kept)
    assert make("psr", loss_type="grpo")


# -- TRL, as it is relied on -------------------------------------------------------------------


def test_the_two_overridden_methods_are_as_they_were():
    assert list(inspect.signature(GRPOTrainer._calculate_rewards).parameters) == [
        "self", "inputs", "prompts", "completions", "completion_ids_list",
    ]  # fmt: skip
    scoring = GRPOTrainer._generate_and_score_completions
    assert list(inspect.signature(scoring).parameters) == ["self", "inputs"]
    text = inspect.getsource(scoring)
    assert text.count("self._calculate_rewards(") == 1
    assert 'self._logs["advantages"].extend(all_process_advantages.tolist())' in text
    own = {name for name in vars(ModesTrainer) if name in dir(GRPOTrainer)}
    assert {"_calculate_rewards", "_generate_and_score_completions"} == {
        name for name in own if not name.startswith("__")
    }


@pytest.mark.parametrize("loss", TOKEN_LOSSES)
def test_these_losses_divide_by_the_tokens_of_the_batch(make, loss):
    trainer = make("grpo", loss_type=loss)
    batch = drawn(trainer)
    one = flat(gradient(trainer, batch))
    half = flat(gradient(trainer, {**batch, "num_items_in_batch": 2 * batch["num_items_in_batch"]}))
    torch.testing.assert_close(one, 2 * half)
