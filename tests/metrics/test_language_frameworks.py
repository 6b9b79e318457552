"""Language-model trainers: which table reads their logs, which profile, and no false alarm."""

import healthy
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.canonicalize import trace
from rlvitals.metrics.frameworks import TABLES, lookup, own_numbers
from rlvitals.rules.rule import Severity
from rlvitals.types import Log, Profile, Series

TABLE = {table.framework: table for table in TABLES}


def named(framework, key):
    found = lookup.find(TABLE[framework], key)
    return found and found[0]


def measured(framework, key):
    name = lookup.find(TABLE[framework], key)[1]
    return name.metric.name, name.scale, name.estimator


RUNS = [
    (healthy.verl_grpo, "", {"algorithm/adv_estimator": "grpo"}, "verl", Profile.GRPO),
    (healthy.verl_grpo, "", {}, "verl", Profile.GRPO),
    (healthy.verl_ppo, "", {"algorithm/adv_estimator": "gae"}, "verl", Profile.RLHF_PPO),
    (healthy.verl_ppo, "", {}, "verl", Profile.RLHF_PPO),
    (healthy.openrlhf_ppo, "train/", {"advantage_estimator": "gae"}, "openrlhf", Profile.RLHF_PPO),
    (healthy.openrlhf_ppo, "", {}, "openrlhf", Profile.RLHF_PPO),
    (healthy.openrlhf_grpo, "train/", {"algo/advantage/estimator": "reinforce"}, "openrlhf",
     Profile.GRPO),
    (healthy.openrlhf_grpo, "train/", {"algo.advantage.estimator": "group_norm"}, "openrlhf",
     Profile.GRPO),
    (healthy.openrlhf_grpo, "", {}, "openrlhf", Profile.GRPO),
    (healthy.prime_rl, "", {"orchestrator/group_size": 16}, "prime-rl", Profile.GRPO),
    (healthy.prime_rl_old, "", {}, "prime-rl", Profile.GRPO),
    (healthy.verifiers, "train/", {"rollouts_per_example": 16}, "verifiers", Profile.GRPO),
    (healthy.verifiers, "", {}, "verifiers", Profile.GRPO),
    (healthy.areal, "", {"gconfig/n_samples": 4}, "areal", Profile.GRPO),
    (healthy.slime_grpo, "", {"advantage_estimator": "gspo"}, "slime", Profile.GRPO),
    (healthy.slime_ppo, "", {"advantage_estimator": "ppo"}, "slime", Profile.RLHF_PPO),
    (healthy.slime_ppo, "", {}, "slime", Profile.RLHF_PPO),
    (healthy.trl_grpo, "train/", {}, "trl-grpo", Profile.GRPO),
    (healthy.unsloth, "train/", {}, "unsloth", Profile.GRPO),
    (healthy.unsloth, "", {"beta": 0.0}, "unsloth", Profile.GRPO),
    (healthy.ms_swift, "", {}, "ms-swift", Profile.GRPO),
    (healthy.ms_swift, "train/", {}, "ms-swift", Profile.GRPO),
    (healthy.llama_factory, "", {}, "llama-factory", Profile.SUPERVISED),
    (healthy.trainer, "train/", {}, "hf-trainer", Profile.SUPERVISED),
    (healthy.sft, "", {}, "hf-trainer", Profile.SUPERVISED),
    (healthy.dpo, "train/", {}, "trl-dpo", Profile.SUPERVISED),
    (healthy.lightning, "", {}, "lightning", Profile.SUPERVISED),
]  # fmt: skip


def ids(run):
    make, prefix, settings, *_ = run
    return "-".join((make.__name__, prefix.strip("/") or "bare", *map(str, settings.values())))


@pytest.mark.parametrize("run", RUNS, ids=ids)
def test_a_healthy_run_is_read_rightly_and_raises_no_alarm(run):
    make, prefix, settings, framework, profile = run
    log = healthy.log(make, prefix=prefix, settings=settings)
    assert lookup.choose(log.source, log.series, TABLES).framework == framework
    made = trace([log])
    assert made.profile is profile
    done = diagnose(made)
    loud = [(r.name, f.summary) for r, f in done.findings if f.severity is not Severity.NOTE]
    assert loud == []
    assert done.verdict.word is Word.LEARNING


@pytest.mark.parametrize("make", [healthy.sft, healthy.dpo, healthy.trl_grpo, healthy.unsloth])
def test_a_trainer_state_is_read_by_the_trainer_that_wrote_it(make):
    expected = {"sft": "hf-trainer", "dpo": "trl-dpo", "trl_grpo": "trl-grpo", "unsloth": "unsloth"}
    log = healthy.log(make, source="trainer-state")
    assert lookup.choose(log.source, log.series, TABLES).framework == expected[make.__name__]


def test_lightning_s_own_file_speaks_its_table_whatever_the_user_called_things():
    log = Log("lightning", {"train_loss": series(50, 1.0), "val_acc": series(50, 1.0)})
    made = trace([log])
    assert made.measured["outcome/eval_accuracy"].framework == "lightning"
    assert made.measured["optimiser/loss"].framework == "generic"


def test_lightning_s_own_file_yields_to_the_framework_that_logged_it():
    keys = ("rollout/ep_rew_mean", "rollout/ep_len_mean", "train/value_loss", "epoch")
    made = trace([Log("lightning", {key: series(50, 1.0) for key in keys})])
    assert made.measured["outcome/return"].framework == "sb3"


def test_a_sampler_compared_with_the_trainer_is_reinforcement_learning():
    keys = ("loss/mean", "mismatch_kl/all/mean", "optim/grad_norm", "optim/lr", "perf/mfu")
    assert trace([Log("console", {key: series(5, 1.0) for key in keys})]).profile is Profile.GRPO


# What a log holds and the catalogue has no name for, on purpose.
UNNAMED = {
    "verl_grpo": {"val-aux/openai/gsm8k/reward/std@1"},
    "openrlhf_ppo": {"logprobs_diff"},
    "openrlhf_grpo": {"logprobs_diff"},
    "lightning": {"train_loss_epoch", "trainer/global_step"},
}


@pytest.mark.parametrize("make", sorted({run[0] for run in RUNS}, key=lambda make: make.__name__))
def test_what_a_framework_logs_is_named(make):
    assert set(trace([healthy.log(make)]).unmapped) == UNNAMED.get(make.__name__, set())


def test_a_trainer_state_of_verifiers_is_told_from_trl_s():
    chosen = [
        lookup.choose("trainer-state", healthy.log(make).series, TABLES).framework
        for make in (healthy.verifiers, healthy.trl_grpo)
    ]
    assert chosen == ["verifiers", "trl-grpo"]


# Framework, key, canonical name, scale, estimator of KL.
MEANINGS = [
    ("verl", "actor/ppo_kl", "policy/kl_signed", 1, "k1"),
    ("verl", "actor/pg_clipfrac", "policy/clip_fraction_effective", 1, ""),
    ("verl", "actor/pg_clipfrac_lower", "policy/dual_clip_fraction", 1, ""),
    ("verl", "actor/entropy_loss", "exploration/entropy", 1, ""),
    ("verl", "actor/kl_loss", "policy/kl_loss", 1, ""),
    ("verl", "actor/reward_kl_penalty", "policy/kl_to_reference_per_token", 1, "k1"),
    ("verl", "critic/kl", "policy/kl_to_reference_per_token", 1, "k1"),
    ("verl", "critic/score/mean", "outcome/score", 1, ""),
    ("verl", "critic/rewards/mean", "outcome/rlhf_reward", 1, ""),
    ("verl", "train/lr(1e-3)", "optimiser/learning_rate", 0.001, ""),
    ("verl", "rollout_corr/kl", "policy/sampler_kl_signed", 1, "k1"),
    ("verl", "rollout_corr/k3_kl", "policy/sampler_kl", 1, "k3"),
    ("verl", "mismatch/mismatch_k3_kl", "policy/sampler_kl", 1, "k3"),
    ("verl", "training/rollout_probs_diff_mean", "policy/sampler_prob_difference_mean", 1, ""),
    ("verifiers", "train/mismatch_kl", "policy/sampler_kl", 1, "k3"),
    ("verifiers", "importance_ratio", "policy/sampler_ratio_mean", 1, ""),
    ("openrlhf", "train/ppo_kl", "policy/kl_signed", 1, "k1"),
    ("openrlhf", "train/ppo_clip_ratio", "policy/clip_fraction_effective", 1, ""),
    ("openrlhf", "kl", "policy/kl_to_reference_per_token", 1, ""),
    ("openrlhf", "return", "reward/shaped", 1, ""),
    ("openrlhf", "entropy_loss", "exploration/entropy", 1, ""),
    ("openrlhf", "dynamic_filtering_pass_rate", "language/kept_share", 0.01, ""),
    ("prime-rl", "mismatch_kl/all/mean", "policy/sampler_kl", 1, "k3"),
    ("prime-rl", "is_masked/mean", "policy/masked_share", 1, ""),
    ("prime-rl", "seq_len/all/mean", "language/sequence_length_mean", 1, ""),
    ("prime-rl", "perf/throughput", "throughput/tokens_per_second", 1, ""),
    ("areal", "ppo_actor/update/approx_kl/avg", "policy/kl_signed", -1, "k1"),
    ("areal", "ppo_actor/update/behave_approx_kl/avg", "policy/sampler_kl_signed", -1, "k1"),
    ("areal", "ppo_actor/kl_rewards/avg", "reward/non_score_per_token", 1, ""),
    ("areal", "ppo_actor/task_reward/avg", "reward/trained_mean", 1, ""),
    ("areal", "rollout/reward", "outcome/reward", 1, ""),
    ("slime", "train/ppo_kl", "policy/kl_signed", 1, "k1"),
    ("slime", "train/entropy_loss", "exploration/entropy", 1, ""),
    ("slime", "train/train_rollout_logprob_abs_diff", "policy/sampler_logp_difference_mean", 1, ""),
    ("slime", "rollout/raw_reward", "outcome/reward", 1, ""),
    ("slime", "rollout/rewards", "reward/shaped", 1, ""),
    ("unsloth", "train/kl", "policy/kl_to_reference_per_token", 1, "k3"),
    ("ms-swift", "reward_std", "reward/group_std", 1, ""),
    ("trl-grpo", "reward_std", "reward/std", 1, ""),
    ("trl-dpo", "rewards/chosen", "preference/chosen_reward", 1, ""),
    ("trl-dpo", "accuracy", "preference/accuracy", 1, ""),
    ("hf-trainer", "train/train_loss", "optimiser/run_loss", 1, ""),
    ("lightning", "lr-AdamW", "optimiser/learning_rate", 1, ""),
]


@pytest.mark.parametrize(("framework", "key", "canonical", "scale", "estimator"), MEANINGS)
def test_a_key_keeps_sign_scale_and_estimator(framework, key, canonical, scale, estimator):
    assert measured(framework, key) == (canonical, scale, estimator)


MEMBERS = [
    ("verl", "val-core/openai/gsm8k/acc/mean@8", "outcome/eval_task/openai/gsm8k/acc/mean@8"),
    ("verl", "val-aux/aime/reward/best@4/mean", "outcome/eval_task/aime/reward/best@4/mean"),
    ("verl", "val-core/aime/acc/mean_at_8", "outcome/eval_task/aime/acc/mean_at_8"),
    ("verl", "data/timing_s/gen", "throughput/phase_time/gen"),
    ("verl", "val/test_score/openai/gsm8k", "outcome/eval_task/openai/gsm8k"),
    ("verl", "timing_s/update_actor", "throughput/phase_time/update_actor"),
    ("verl", "actor/perf/max_memory_allocated_gb", "throughput/memory/max_memory_allocated"),
    ("openrlhf", "eval/eval_aime_pass4", "outcome/eval_task/aime_pass4"),
    ("openrlhf", "train/timing/broadcast", "throughput/phase_time/broadcast"),
    ("prime-rl", "reward/wordle/mean", "outcome/task_reward/wordle"),
    ("prime-rl", "reward/wordle", "outcome/task_reward/wordle"),
    ("prime-rl", "reward/all/mean", "outcome/reward"),
    ("prime-rl", "train/agg/all/solver/reward/mean", "outcome/reward"),
    ("prime-rl", "train/agg/effective/solver/reward/mean", "reward/trained_mean"),
    ("prime-rl", "train/wordle/all/solver/reward/mean", "outcome/task_reward/wordle"),
    ("prime-rl", "train/agg/all/solver/rewards/fmt/mean", "reward/component/fmt"),
    ("prime-rl", "eval/aime/all/solver/avg@8", "outcome/eval_task/aime/all/solver/avg@8"),
    ("slime", "rollout/zero_std/count_0.0", "reward/group_zero_std_count/0.0"),
    ("slime", "eval/aime", "outcome/eval_task/aime"),
    ("slime", "passrate/pass@8", "outcome/pass_rate/pass@8"),
    ("slime", "perf/actor_train_time", "throughput/phase_time/actor_train"),
    ("areal", "timeperf/rollout", "throughput/phase_time/rollout"),
    ("ms-swift", "MFU", "throughput/mfu/MFU"),
]


@pytest.mark.parametrize(("framework", "key", "canonical"), MEMBERS)
def test_patterns_name_members_and_numbers_under_many_keys(framework, key, canonical):
    assert named(framework, key) == canonical


@pytest.mark.parametrize(
    ("framework", "key"),
    [
        ("verl", "val-aux/aime/reward/std@8"),
        ("verl", "val-aux/num_turns/mean"),
        ("slime", "eval/step"),
        ("slime", "eval/aime-truncated_ratio"),
        ("prime-rl", "eval/aime/policy_version"),
        # The first is per token; the longest of every batch counts as unfinished in the second.
        ("areal", "ppo_actor/final_reward/avg"),
        ("areal", "ppo_actor/no_eos_ratios/avg"),
        ("ms-swift", "entropy/max"),
        ("ms-swift", "rewards/chosen"),
    ],
)
def test_a_pattern_takes_nothing_that_means_something_else(framework, key):
    name = named(framework, key)
    assert name is None or name.startswith(own_numbers.UNJUDGED)  # judged by no rule


def test_per_cent_becomes_a_share():
    made = trace([healthy.log(healthy.prime_rl)])
    assert 0.3 < made["throughput/mfu/perf"].values.mean() < 0.5
    made = trace([healthy.log(healthy.openrlhf_grpo)])
    assert 0.4 < made["language/kept_share"].values.mean() < 0.7


@pytest.mark.parametrize(
    ("make", "metric"),
    [
        (healthy.verl_ppo, "policy/kl_loss"),
        (healthy.openrlhf_grpo, "policy/kl_to_reference_per_token"),
        (healthy.unsloth, "policy/kl_to_reference_per_token"),
        (healthy.areal, "reward/non_score_per_token"),
    ],
)
def test_zeros_that_stand_for_what_is_not_used_are_no_measurement(make, metric):
    log = healthy.log(make)
    assert metric not in trace([log])
    key = next(k for k in log.series if named_in(log, k) == metric)
    log.series[key].values[-1] = 0.01
    assert metric in trace([log])


def named_in(log, key):
    found = lookup.find(lookup.choose(log.source, log.series, TABLES), key)
    return found and found[0]


def test_a_log_of_plain_names_is_no_framework_s():
    plain = ["reward", "return", "policy_loss", "kl", "entropy_loss", "values", "loss", "acc"]
    chosen = lookup.choose("csv", ["avg_return", "value_loss", *plain], TABLES)
    assert chosen.framework not in {"openrlhf", "trl-dpo", "lightning", "slime", "prime-rl"}


def test_a_hand_written_loss_is_no_trainer_s_mean_of_the_run():
    chosen = lookup.choose("csv", ["epoch", "train_loss", "learning_rate"], TABLES)
    assert lookup.find(chosen, "train_loss")[0] == "optimiser/loss"


@pytest.mark.parametrize(
    ("make", "settings", "profile"),
    [
        (healthy.verl_grpo, {"mode": "nsr"}, Profile.NSR),
        (healthy.verl_grpo, {"algorithm/adv_estimator": "rloo"}, Profile.GRPO),
        (healthy.openrlhf_grpo, {"advantage_estimator": "dr_grpo"}, Profile.GRPO),
        (healthy.slime_grpo, {"advantage_estimator": "reinforce_plus_plus"}, Profile.GRPO),
        (healthy.trl_grpo, {}, Profile.GRPO),
    ],
)
def test_the_profile_follows_the_estimator(make, settings, profile):
    log = healthy.log(make, settings=settings)
    del_contrast = {k: s for k, s in log.series.items() if k != "frac_reward_zero_std"}
    assert trace([Log(log.source, del_contrast, log.settings)]).profile is profile


def test_a_trainer_of_language_models_may_be_supervised():
    columns = {"train/loss": series(50, 1.0), "train/lr": series(50, 1.0)}
    sft = {**columns, "val/loss": series(50, 1.0), "train/global_tokens": series(50, 1.0)}
    assert trace([Log("jsonl", sft)]).profile is Profile.SUPERVISED
    pairs = ("loss", "acc", "chosen_reward", "reject_reward", "lr", "grad_norm")
    made = trace([Log("tensorboard", {f"train/{key}": series(50, 1.0) for key in pairs})])
    assert made.measured["preference/accuracy"].framework == "openrlhf"
    assert made.profile is Profile.SUPERVISED


def test_rules_speak_these_names():
    log = healthy.log(healthy.verl_grpo)
    cut = log.series["response_length/clip_ratio"].values
    cut[:] = np.clip(np.linspace(0.0, 1.6, healthy.ROWS), 0, 0.95)
    for key in ("critic/score/mean", "critic/rewards/mean"):
        log.series[key].values[:] = np.linspace(0.6, 0.05, healthy.ROWS)
    found = {rule.name: finding for rule, finding in diagnose(trace([log])).findings}
    assert found["responses-truncated"].severity is Severity.ERROR


def test_optimiser_steps_of_slime_stand_on_its_rollouts():
    rollouts, updates = 100, 400
    log = Log(
        "tensorboard",
        {
            "rollout/raw_reward": series(rollouts, 4 * healthy.SECONDS),
            "train/pg_loss": series(updates, healthy.SECONDS),
        },
    )
    made = trace([log])
    assert made.step_unit == "rollouts"
    assert made["policy/loss"].steps.max() == made["outcome/reward"].steps.max()


def series(count, seconds):
    steps = np.arange(1, count + 1, dtype=np.int64)
    return Series(steps, 1.7e9 + seconds * steps, np.linspace(0.1, 0.5, count))


SETTINGS = [
    (healthy.verl_ppo, {"actor_rollout_ref/actor/clip_ratio": 0.2, "algorithm/lam": 0.95,
                        "actor_rollout_ref/rollout/n": 8, "data/train_batch_size": 1024,
                        "data/max_response_length": 512, "trainer/total_training_steps": 300},
     {"clip_range": 0.2, "gae_lambda": 0.95, "num_generations": 8, "prompt_batch_size": 1024,
      "max_completion_length": 512, "total_steps": 300}),
    (healthy.openrlhf_ppo, {"eps_clip": 0.2, "init_kl_coef": 0.01, "lambd": 0.95,
                            "rollout_batch_size": 128, "train_batch_size": 64},
     {"clip_range": 0.2, "kl_coef": 0.01, "gae_lambda": 0.95, "prompt_batch_size": 128,
      "minibatch_size": 64}),
    (healthy.openrlhf_ppo, {"actor/eps_clip": 0.2, "algo/kl/init_coef": 0.01,
                            "rollout/n_samples_per_prompt": 4},
     {"clip_range": 0.2, "kl_coef": 0.01, "num_generations": 4}),
    (healthy.prime_rl, {"orchestrator/group_size": 16, "trainer/optim/lr": 1e-6, "max_steps": 500,
                        "orchestrator/max_off_policy_steps": 8},
     {"num_generations": 16, "learning_rate": 1e-6, "total_steps": 500, "max_policy_lag": 8}),
    (healthy.areal, {"actor/eps_clip": 0.4, "gconfig/n_samples": 4, "actor/kl_ctl": 0.0,
                     "rollout/max_head_offpolicyness": 2, "actor/optimizer/lr": 1.7e-5},
     {"clip_range": 0.4, "num_generations": 4, "kl_coef": 0.0, "max_policy_lag": 2,
      "learning_rate": 1.7e-5}),
    (healthy.slime_grpo, {"eps_clip": 0.2, "n_samples_per_prompt": 8, "clip_grad": 1.0,
                          "rollout_max_response_len": 8192, "advantage_estimator": "grpo"},
     {"clip_range": 0.2, "num_generations": 8, "max_grad_norm": 1.0,
      "max_completion_length": 8192, "algorithm": "grpo"}),
]  # fmt: skip


@pytest.mark.parametrize(("make", "given", "canonical"), SETTINGS)
def test_settings_get_their_canonical_names(make, given, canonical):
    assert dict(trace([healthy.log(make, settings=given)]).settings) == canonical


def test_a_log_that_says_whose_names_it_has_is_read_so_without_marks():
    keys = {"epoch": series(50, 1.0), "val_loss": series(50, 1.0)}
    unsaid, said = trace([Log("rlvitals", keys)]), Log("rlvitals", keys, framework="lightning")
    assert unsaid.measured["optimiser/eval_loss"].framework != "lightning"
    assert trace([said]).measured["optimiser/eval_loss"].framework == "lightning"


def test_what_a_log_says_yields_to_names_that_are_clearly_another_s():
    keys = ("rollout/ep_rew_mean", "rollout/ep_len_mean", "train/value_loss", "epoch")
    log = Log("rlvitals", {key: series(50, 1.0) for key in keys}, framework="lightning")
    assert trace([log]).measured["outcome/return"].framework == "sb3"


def test_a_family_s_name_leaves_the_choice_of_its_tables_to_their_marks():
    keys = {"rewards/margins": series(50, 1.0), "loss": series(50, 1.0)}
    assert lookup.choose("rlvitals", keys, TABLES, "trl").framework == "trl-dpo"


def test_a_table_of_evaluations_alone_is_of_preference_training():
    keys = ("loss", "eval_loss", "eval_rewards/accuracies", "eval_rewards/margins")
    named = trace([Log("trainer-state", {key: series(50, 0.5) for key in keys})])
    assert {"preference/eval_accuracy", "preference/eval_margin"} <= named.series.keys()


def test_a_name_that_nobody_has_leaves_the_choice_to_the_keys():
    keys = {"rollout/ep_rew_mean": series(50, 1.0), "train/approx_kl": series(50, 1.0)}
    assert lookup.choose("rlvitals", keys, TABLES, "pytorch").framework == "sb3"


def test_the_rows_of_trlx_are_those_of_a_ppo_with_a_critic():
    keys = (
        *("losses/total_loss", "losses/policy_loss", "losses/value_loss", "policy/approx_kl"),
        *("policy/clipfrac", "values/clipfrac", "old_values/mean", "returns/mean", "ratio"),
        *("rollout_scores/mean", "rollout_scores/std", "kl_ctl_value", "reward/mean"),
        *("learning_rate_group_0", "time/forward"),
    )
    made = trace([Log("wandb", {key: series(50, 1.0) for key in keys})])
    assert {measured.framework for measured in made.measured.values()} == {"trlx"}
    assert made.profile is Profile.RLHF_PPO
    assert {"outcome/score", "outcome/eval_reward", "policy/kl_coef", "value/loss"} <= {
        *made.series
    }
    assert not made.unmapped
