"""RLHF by PPO, on a model that is made in a moment: what is drawn, paid, learned and left alone."""

import copy
import math

import numpy as np
import pytest
import rlhf_parts
import torch
from datasets import Dataset
from effort import sampled
from tokenizers.processors import TemplateProcessing

from rlvitals.trainers.language.rlhf import prompts
from rlvitals.trainers.language.rlhf.controllers import Adaptive
from rlvitals.trainers.language.rlhf.policy import ValueHead
from rlvitals.trainers.language.rlhf.prompts import Order
from rlvitals.trainers.language.rlhf.scoring import RewardModel, Scorer


@pytest.mark.parametrize("lora", [False, True], ids=["weights", "adapters"])
def test_nothing_has_moved_at_the_first_minibatch(lora):
    ppo = rlhf_parts.page(lora=lora, num_mini_batches=2, forward_batch_size=3, temperature=0.5)
    drawn, batch, _ = ppo.collect_rollout()
    assert batch.kl.abs().max() < 1e-5  # the reference is the policy
    seen, _ = ppo.update(drawn, batch)
    ratio = (seen[0].logprobs - batch.rows(seen[0].rows).logprobs).exp()
    assert (ratio - 1).abs().max() < 1e-5
    assert (seen[-1].logprobs - batch.rows(seen[-1].rows).logprobs).abs().max() > 1e-4
    _, later, _ = ppo.collect_rollout()
    assert (later.kl * later.mask).abs().max() > 1e-4  # and stays where it was


def test_what_is_drawn_is_what_the_policy_says_at_its_temperature():
    """The log-probability of the likeliest first token is that of its frequency."""
    ppo = rlhf_parts.page(rows=1, batch_size=800, response_length=1, temperature=0.5)
    drawn, batch, _ = ppo.collect_rollout()
    first = drawn.tokens[:, -1]
    commonest = int(first.mode().values)
    said = float(batch.logprobs[first == commonest][0].exp())
    share = float((first == commonest).float().mean())
    assert share == pytest.approx(said, abs=4 * math.sqrt(said * (1 - said) / 800))


def test_prompts_of_other_lengths_change_no_response():
    """Padding on the left is no part of a prompt: the same numbers as without."""
    ppo = rlhf_parts.page()
    alone, attention = prompts.tokens(ppo.tokenizer, ["3+4="])
    padded, wide = prompts.tokens(ppo.tokenizer, ["3+4=", "3+4=1234567+"])
    one = ppo.policy.read(alone, attention).logits[0, -1]
    other = ppo.policy.read(padded, wide).logits[0, -1]
    assert torch.allclose(one, other, atol=1e-5)


def begins(tokenizer):
    """A tokenizer that begins every text with a token, as Llama's does."""
    made = copy.deepcopy(tokenizer)
    end = made.eos_token
    made.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{end} $A", special_tokens=[(end, made.eos_token_id)]
    )
    made.chat_template = "{{ eos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    return made


def test_a_conversation_begins_once():
    tokenizer = begins(rlhf_parts.page().tokenizer)
    plain, _ = prompts.tokens(tokenizer, ["3+4="])
    talk, _ = prompts.tokens(tokenizer, [[{"role": "user", "content": "3+4="}]])
    assert plain.tolist() == talk.tolist()
    assert (talk == tokenizer.eos_token_id).sum() == 1


def test_a_response_ends_with_its_first_end_token():
    ppo = rlhf_parts.page(batch_size=256, response_length=40)
    with torch.no_grad():
        ppo.policy.lm.get_input_embeddings().weight[ppo.tokenizer.eos_token_id] *= 3
    drawn, batch, texts = ppo.collect_rollout()
    responses = drawn.tokens[:, drawn.queries :]
    assert 0 < drawn.finished.sum() < 256
    for tokens, mask, ended in zip(responses, drawn.mask, drawn.finished, strict=True):
        length = int(mask.sum())
        ends = (tokens == ppo.tokenizer.eos_token_id).nonzero()
        assert mask[:length].all()
        assert length == (int(ends[0]) + 1 if ended else len(tokens))
    assert batch.finished.sum() == drawn.finished.sum()
    assert not any("<eos>" in one for one in texts.completions)


def test_a_score_is_paid_with_the_last_token_and_kl_with_each():
    ppo = rlhf_parts.page(gamma=1.0, lam=1.0, kl_coef=0.3, missing_eos_penalty=0.5)
    ppo.iterate()  # so that the reference is another policy
    drawn, batch, texts = ppo.collect_rollout()
    assert torch.equal(batch.raw_scores, texts.scored.total)
    assert torch.equal(batch.raw_scores - batch.scores, 0.5 * (1 - batch.finished))
    paid = -0.3 * batch.kl.flip(1).cumsum(1).flip(1) + batch.scores[:, None]
    assert torch.allclose(batch.returns, paid * drawn.mask, atol=1e-5)


def test_advantages_are_whitened_over_the_tokens_that_are_learned_from():
    """Not over padding, nor over the responses that have no score."""
    ppo = rlhf_parts.page(some, batch_size=64, response_length=40)
    with torch.no_grad():
        ppo.policy.lm.get_input_embeddings().weight[ppo.tokenizer.eos_token_id] *= 3
    _, batch, _ = ppo.collect_rollout()
    learned = batch.learned_mask.bool()
    assert 0 < learned.sum() < batch.mask.sum() < batch.mask.numel()
    assert float(batch.advantages[learned].mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(batch.advantages[learned].var()) == pytest.approx(1.0, abs=1e-3)
    assert not batch.advantages[~learned].any()


def test_rewards_are_divided_by_the_deviation_of_those_that_are_learned_from():
    ppo = rlhf_parts.page(some, gamma=1.0, lam=1.0, kl_coef=0.3, whiten_rewards=True)
    ppo.iterate()
    _, batch, _ = ppo.collect_rollout()
    paid = -0.3 * batch.kl
    ends = batch.mask.sum(1).long() - 1
    paid[torch.arange(8), ends] += batch.scores.nan_to_num()
    paid = paid / paid[batch.learned_mask.bool()].std()
    to_go = paid.flip(1).cumsum(1).flip(1)
    assert torch.allclose(batch.returns, to_go * batch.mask, atol=1e-4)


def test_a_step_moves_a_value_by_its_learning_rate_at_the_most():
    """However wide a model is: summed over 64 hidden numbers it would be some fifty times that."""
    ppo = rlhf_parts.page(lr=0.0, value_lr=0.05, num_ppo_epochs=1, lr_schedule="constant")
    moved = []
    for _ in range(3):
        drawn, batch, _ = ppo.collect_rollout()
        ppo.update(drawn, batch)
        ppo.counters.updates += 1
        now = ppo._read(drawn)[1]
        moved.append(float((now - batch.values)[batch.mask.bool()].abs().max()))
    assert 0.01 < max(moved) < 0.05 + 0.05  # of the weights and of the bias


def test_a_large_hidden_state_is_read_like_a_small_one():
    head = ValueHead(16)
    with torch.no_grad():
        head.weight.normal_()
    hidden = torch.randn(3, 2, 16)
    assert head(hidden).shape == (3, 2)
    assert torch.allclose(head(hidden), head(100 * hidden), atol=1e-4)


@pytest.mark.parametrize("whiten", [False, True])
def test_at_first_what_is_expected_is_what_is_paid_on_average(whiten):
    ppo = rlhf_parts.page(some_known, whiten_rewards=whiten, gamma=1.0, lam=1.0)
    drawn, batch, _ = ppo.collect_rollout()
    known = torch.isfinite(batch.scores)
    paid = batch.returns[known, 0]  # the returns of all tokens of a response are alike
    assert torch.allclose(batch.values, paid.mean() * drawn.mask, atol=1e-6)
    if not whiten:
        assert paid.tolist() == batch.scores[known].tolist()
    ppo.update(drawn, batch)
    _, later, _ = ppo.collect_rollout()
    assert later.values[:, 0].std() > 0


@pytest.mark.soak
def test_a_policy_learns_to_stop_early_at_a_price():
    means = {}
    for kl_coef in (0.0, 1.0):
        ppo = rlhf_parts.page(batch_size=32, num_mini_batches=2, kl_coef=kl_coef, lr=4e-3)
        told = [ppo.iterate().numbers for _ in range(9)]
        assert told[0]["objective/scores"] < 0.2
        means[kl_coef] = told[-1]
    assert means[0.0]["objective/scores"] > 0.6
    assert means[1.0]["objective/kl"] < 0.5 * means[0.0]["objective/kl"]


def test_the_price_answers_to_the_kl_of_an_update_and_all_its_responses():
    ppo = rlhf_parts.page(lr=1e-2)
    ppo.controller = Adaptive(0.2, target=1e-3, horizon=100)
    first, second, third = (ppo.iterate().numbers for _ in range(3))
    assert (first["objective/kl_coef"], first["objective/kl"]) == (0.2, pytest.approx(0, abs=1e-5))
    assert second["objective/kl_coef"] == pytest.approx(0.2 * (1 - 0.2 * 8 / 100))
    assert abs(second["objective/kl"]) > 2e-3
    up = 0.2 if second["objective/kl"] > 0 else -0.2
    price = second["objective/kl_coef"] * (1 + up * 8 / 100)
    assert third["objective/kl_coef"] == pytest.approx(price)


def test_update_is_reported_with_its_texts():
    update = rlhf_parts.page().iterate()
    table = update.table
    assert {len(column) for column in table.values()} == {8}
    assert list(table) == ["prompt", "completion", "reward", "ended", "short"]
    assert table["reward"] == table["short"] == rlhf_parts.short(table["completion"])
    assert update.numbers["rewards/short/mean"] == update.numbers["env/reward_mean"]
    assert update.numbers["rewards/short/none_share"] == 0.0
    seconds = {k for k in update.numbers if k.startswith("time/ppo/")}
    assert seconds == {
        f"time/ppo/{name}" for name in (
            "generate", "compute_rewards", "forward_pass", "compute_advantages", "optimize_step",
            "calc_stats", "total",
        )
    }  # fmt: skip


def some_known(completions, **_):
    """All but the first have a score."""
    return [None, *(2.0 + len(set(one)) for one in completions[1:])]


# -- what can go wrong ----------------------------------------------------------------------------


def same(completions, **_):
    return [0.5] * len(completions)


def none(completions, **_):
    return [None] * len(completions)


def nan(completions, **_):
    return [float("nan")] * len(completions)


def some(completions, **_):
    return [None, 1.0, float("nan"), float("inf")] * (len(completions) // 4)


@pytest.mark.parametrize("reward", [same, none, nan, some])
def test_rewards_that_say_little_or_nothing(reward):
    ppo = rlhf_parts.page(reward, whiten_rewards=True)
    for _ in range(3):
        told = ppo.iterate().numbers
        assert all(math.isfinite(value) for value in told.values())
    assert torch.isfinite(rlhf_parts.weights(ppo)).all()
    share = {"same": 0.0, "none": 1.0, "nan": 1.0, "some": 0.75}[reward.__name__]
    assert told["rewards/total/none_share"] == share
    assert ("objective/scores" in told) is (share < 1)


@pytest.mark.parametrize("reward", [none, nan])
def test_without_any_score_nothing_is_learned(reward):
    ppo = rlhf_parts.page(reward)
    before = rlhf_parts.weights(ppo)
    told = ppo.iterate().numbers
    assert torch.equal(rlhf_parts.weights(ppo), before)
    assert told["skipped_minibatches"] == 4
    assert ppo.counters.steps == 0


def test_a_response_without_a_score_has_no_gradient():
    """Whatever its values and advantages: only the responses with a score are learned from."""
    ppo = rlhf_parts.page(some)
    drawn, batch, _ = ppo.collect_rollout()
    rows = torch.arange(8)
    count = float(batch.learned_mask.sum())
    grads = []
    for lead in (1.0, 50.0):
        lost = ~torch.isfinite(batch.scores)
        batch.advantages[lost] *= lead
        batch.returns[lost] += lead
        ppo._backward(drawn, batch, rows, count)
        grads.append(torch.cat([one.grad.flatten().clone() for one in ppo.learning]))
        ppo.optimizer.zero_grad()
    assert torch.equal(*grads)


def test_all_cut_off():
    told = rlhf_parts.page(response_length=1, missing_eos_penalty=2.0).iterate().numbers
    assert told["tokens/truncated_share"] > 0.5
    assert told["objective/scores"] < told["env/reward_mean"] - 1.0
    assert all(math.isfinite(value) for value in told.values())


def test_one_sample():
    told = rlhf_parts.page(batch_size=1, response_length=1, whiten_rewards=True).iterate().numbers
    assert all(math.isfinite(value) for value in told.values())
    assert told["env/reward_std"] == told["val/ratio_var"] == 0.0


def test_empty_completions():
    ppo = rlhf_parts.page()
    ppo.ends = list(range(len(ppo.tokenizer)))  # whatever comes first ends the response
    update = ppo.iterate()
    assert update.numbers["tokens/responses_len_mean"] == 1.0
    assert update.numbers["tokens/truncated_share"] == 0.0
    assert all(math.isfinite(value) for value in update.numbers.values())


def test_a_wild_minibatch_is_skipped_and_an_update_ends_where_it_went_far():
    ppo = rlhf_parts.page(ratio_threshold=1e-6)
    before = rlhf_parts.weights(ppo)
    assert ppo.iterate().numbers["skipped_minibatches"] == 4
    assert torch.equal(rlhf_parts.weights(ppo)[:-1], before[:-1])  # the last is what is expected
    ppo = rlhf_parts.page(target_kl=1e-6, num_ppo_epochs=20, lr=1e-2)
    told = ppo.iterate().numbers
    assert told["stopped_early"] == 1.0
    assert 1 <= ppo.counters.steps < 20


def test_nothing_is_computed_after_an_update_went_too_far(monkeypatch):
    ppo = rlhf_parts.page(target_kl=1e-6, num_ppo_epochs=20, lr=1e-2)
    passes, backward = [], ppo._backward
    monkeypatch.setattr(ppo, "_backward", lambda *rows: passes.append(rows) or backward(*rows))
    ppo.iterate()
    assert len(passes) == ppo.counters.steps + 1  # the last one only showed how far it went


def test_a_gradient_that_is_no_number_changes_nothing():
    ppo = rlhf_parts.page()
    drawn, batch, _ = ppo.collect_rollout()
    batch.returns[0, 0] = math.nan
    before = rlhf_parts.weights(ppo)
    _, went = ppo.update(drawn, batch)
    assert went["skipped_minibatches"] == 4
    assert torch.equal(rlhf_parts.weights(ppo), before)


# -- settings -------------------------------------------------------------------------------------

CHANGES = {
    "num_ppo_epochs": 2, "num_mini_batches": 2, "lr": 2e-3, "value_lr": 0.1,
    "lr_schedule": "constant",
    "max_grad_norm": 0.1, "response_length": 6, "temperature": 0.7, "missing_eos_penalty": 1.0,
    "kl_coef": 1.0, "kl_estimator": "k3", "gamma": 0.5, "lam": 0.5, "whiten_rewards": True,
    "cliprange": 0.01, "cliprange_value": 0.001, "vf_coef": 1.0, "target_kl": 1e-9,
    "ratio_threshold": 0.5, "seed": 1, "batch_size": 16, "total_episodes": 24,
}  # fmt: skip


def uneven(completions, **_):
    return [len(set(one)) / 4 for one in completions]


def trained(**said):
    ppo = rlhf_parts.page(uneven, **{"total_episodes": 48, **said})
    for _ in range(2):
        ppo.iterate()
    return rlhf_parts.weights(ppo)


@pytest.fixture(scope="module")
def plain():
    return trained()


@pytest.mark.parametrize("name", sampled(CHANGES, 3))
def test_every_setting_changes_what_is_learned(name, plain):
    found = trained(**{name: CHANGES[name]})
    assert found.shape == plain.shape
    assert not torch.equal(found, plain)


def test_parts_of_a_minibatch_make_its_gradient(plain):
    assert torch.allclose(trained(forward_batch_size=3), plain, atol=1e-5)


# -- parts ----------------------------------------------------------------------------------------


def test_every_row_comes_once_before_any_comes_again():
    order = Order(5, np.random.default_rng(0))
    taken = [order.take(3) for _ in range(5)]
    flat = [one for few in taken for one in few]
    assert sorted(flat[:5]) == sorted(flat[5:10]) == sorted(flat[10:]) == [*range(5)]
    assert flat[:5] != flat[5:10]
    assert len(Order(2, np.random.default_rng(0)).take(7)) == 7


def test_weights_sum_up_and_none_leaves_the_others():
    def one(**_):
        return [1.0, None, None]

    def two(**_):
        return [1.0, 2.0, None]

    found = Scorer([one, two], [1.0, 0.5])("abc", "abc", [[1]] * 3, {})
    assert found.total[:2].tolist() == [1.5, 1.0]
    assert math.isnan(found.total[2])
    assert found.parts == {"one": [1.0, None, None], "two": [1.0, 2.0, None]}


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    return rlhf_parts.reward_model(tmp_path_factory.mktemp("reward_model"))


def test_a_reward_model_scores_prompt_and_completion(reward_model):
    made = RewardModel(str(reward_model))
    both = made(prompts=["1+2=", "1+2="], completions=["3", "44"])
    alone = made(prompts=["1+2="], completions=["3"])
    assert both[0] == pytest.approx(alone[0], abs=1e-5)  # whatever is beside it
    assert both[0] != pytest.approx(both[1], abs=1e-3)
    made = RewardModel(str(reward_model), at_once=2)
    parts = made(prompts=["1+2="] * 3, completions=["3", "44", "3"])
    assert parts == pytest.approx([*both, both[0]], abs=1e-5)


def test_a_reward_model_reads_a_conversation_by_its_own_template(reward_model):
    made = RewardModel(str(reward_model))
    talk = [{"role": "user", "content": "1+2="}], [{"role": "assistant", "content": "3"}]
    plain = made(prompts=["1+2="], completions=["3"])
    made.tokenizer.chat_template = None
    assert made(prompts=[talk[0]], completions=[talk[1]]) == pytest.approx(plain, abs=1e-6)
    made.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}+{% endfor %}"
    templated = made(prompts=["1+2=+"], completions=["3+"])
    assert templated != pytest.approx(plain, abs=1e-4)
    assert made(prompts=[talk[0]], completions=[talk[1]]) == pytest.approx(templated, abs=1e-6)
    made.tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role[0] }}9{{ m.content }}{% endfor %}"
    )
    marked = made(prompts=["u91+2=a9"], completions=["3"])
    assert made(prompts=[talk[0]], completions=[talk[1]]) == pytest.approx(marked, abs=1e-6)
    assert marked != pytest.approx(plain, abs=1e-4)
    made.tokenizer = begins(made.tokenizer)
    plain = made(prompts=["1+2="], completions=["3"])
    assert made(prompts=[talk[0]], completions=[talk[1]]) == pytest.approx(plain, abs=1e-6)


def test_a_conversation_is_asked_by_its_template_and_answered_by_a_message():
    told = {}

    def heard(prompts, completions, answer, **_):
        told.update(prompts=prompts, completions=completions, answer=answer)
        return [1.0] * len(completions)

    rows = [
        {"prompt": [{"role": "user", "content": f"{i}+1="}], "answer": str(i)} for i in range(8)
    ]
    ppo = rlhf_parts.page(heard)
    ppo.rows = Dataset.from_list(rows)
    ppo.order = Order(8, np.random.default_rng(0))
    update = ppo.iterate()
    for i, (prompt, completion) in enumerate(
        zip(told["prompts"], told["completions"], strict=True)
    ):
        assert prompt[0]["content"] == f"{told['answer'][i]}+1="
        assert completion[0]["role"] == "assistant"
        assert update.table["prompt"][i] == f"{told['answer'][i]}+1="
        assert update.table["completion"][i] == completion[0]["content"]
