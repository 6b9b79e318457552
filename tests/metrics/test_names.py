"""The frameworks' tables: what each key means, with the sign and scale its source gives it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from rlvitals.metrics import CATALOGUE, frameworks
from rlvitals.metrics.frameworks import GENERIC, TABLES, lookup

TABLE = {table.framework: table for table in TABLES}
SETTINGS = {metric.name for metric in CATALOGUE if metric.kind == "setting"}
# Readers decide the source of a log; these are the ones tables may claim.
READERS = {
    "sb3-csv", "sb3-json", "sb3-monitor", "rllib", "trainer-state", "scheduler-csv",
    "tensorboard", "csv", "jsonl", "lightning", "trl-completions",
    "sacred", "sb3-evaluations", "numpy", "headerless-csv",
}  # fmt: skip


def named(framework, key):
    found = lookup.find(TABLE[framework], key)
    return found and found[0]


def how(framework, key):
    return lookup.find(TABLE[framework], key)[1]


def test_every_table_file_is_listed():
    for path in Path(frameworks.__file__).parent.glob("*.py"):
        if "\nNAMES = Table(" in path.read_text():
            module = import_module(f"rlvitals.metrics.frameworks.{path.stem}")
            assert any(module.NAMES is table for table in TABLES), path.name


def test_frameworks_are_unique():
    assert len(TABLE) == len(TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.framework)
def test_tables_speak_of_the_catalogue(table):
    known = set(map(id, CATALOGUE))
    for name in (*table.keys.values(), *(family.name for family in table.families)):
        assert id(name.metric) in known
        assert name.scale in (1.0, -1.0, 0.01, 0.001)  # a sign; per cent; thousandths
        assert name.window >= 1
    assert all(not name.metric.family for name in table.keys.values())
    for family in table.families:  # what the group holds is the member's part of the name
        assert re.compile(family.pattern).groups == int(family.name.metric.family), family.pattern
    assert set(table.settings.values()) <= SETTINGS
    assert set(table.sources) <= READERS
    assert table.read_from, "a table says which source says so"


# The rows of kind metric in the checklist of the five guides: framework, key, canonical name.
GUIDES = [
    # 1: the PPO scheduler
    ("scheduler", "approx_kl", "policy/approx_kl"),
    ("scheduler", "clipfrac", "policy/clip_fraction"),
    ("scheduler", "entropy", "exploration/entropy"),
    ("scheduler", "temperature", "exploration/temperature"),
    ("scheduler", "pg_grad_norm", "optimiser/grad_norm"),
    ("generic", "current_temperature", "exploration/temperature"),
    ("scheduler", "balance_penalty", "scheduler/balance_penalty"),
    ("scheduler", "action_replica_2", "policy/action_count/2"),
    ("scheduler", "Actions/Replica_0", "policy/action_count/0"),
    ("scheduler", "temp_current_temperature", "exploration/temperature"),
    ("scheduler", "temp_qps_pressure_ema", "scheduler/qps_pressure"),
    ("scheduler", "temp_latency_pressure_ema", "scheduler/latency_pressure"),
    ("scheduler", "temp_is_pulsing", "exploration/is_pulsing"),
    ("scheduler", "reward", "reward/step"),
    ("scheduler", "reward_mean", "outcome/reward"),
    ("scheduler", "absolute_score", "reward/absolute"),
    ("scheduler", "delta_score", "reward/delta"),
    # 2: GRPO, PSR, NSR, W-REINFORCE
    ("trl-grpo", "psr/positive_samples", "language/positive_samples"),
    ("trl-grpo", "psr/positive_ratio", "language/positive_share"),
    ("trl-grpo", "psr/avg_reward", "language/filtered_reward"),
    ("trl-grpo", "nsr/negative_samples", "language/negative_samples"),
    ("trl-grpo", "nsr/negative_ratio", "language/negative_share"),
    ("trl-grpo", "nsr/avg_reward", "language/filtered_reward"),
    ("trl-grpo", "w_reinforce/positive_samples", "language/positive_samples"),
    ("trl-grpo", "w_reinforce/negative_samples", "language/negative_samples"),
    ("trl-grpo", "w_reinforce/pos_neg_ratio", "language/pos_neg_ratio"),
    ("trl-grpo", "w_reinforce/avg_reward", "language/filtered_reward"),
    ("trl-grpo", "train/loss", "optimiser/loss"),
    ("trl-grpo", "train/learning_rate", "optimiser/learning_rate"),
    ("trl-grpo", "train/grad_norm", "optimiser/grad_norm"),
    ("trl-grpo", "train/epoch", "progress/epoch"),
    # 3: metrics and telemetry, plain names
    ("generic", "policy_loss", "policy/loss"),
    ("generic", "value_loss", "value/loss"),
    ("generic", "entropy", "exploration/entropy"),
    ("generic", "approx_kl", "policy/approx_kl"),
    ("generic", "grad_norm", "optimiser/grad_norm"),
    ("generic", "win_rate", "outcome/success_rate"),
    ("generic", "success_rate", "outcome/success_rate"),
    ("generic", "avg_return", "outcome/return"),
    ("generic", "avg_reward", "outcome/reward"),
    ("generic", "episode_length", "outcome/episode_length"),
    ("generic", "score", "outcome/score"),
    ("generic", "win_rate_ema", "outcome/win_rate_ema"),
    ("generic", "clip_fraction", "policy/clip_fraction"),
    ("generic", "sps", "throughput/steps_per_second"),
    ("generic", "updates_per_second", "throughput/updates_per_second"),
    ("generic", "current_lr", "optimiser/learning_rate"),
    ("generic", "clip_epsilon", "policy/clip_range"),
    ("generic", "train_reward_margins", "preference/margin"),
    ("generic", "val_reward_margins", "preference/eval_margin"),
    # 4: TRL's old PPO trainer
    ("trl-ppo-old", "env/reward_mean", "outcome/reward"),
    ("trl-ppo-old", "env/reward_std", "reward/std"),
    ("trl-ppo-old", "env/reward_dist", "reward/distribution"),
    ("trl-ppo-old", "objective/kl", "policy/kl_to_reference"),
    ("trl-ppo-old", "objective/kl_coef", "policy/kl_coef"),
    ("trl-ppo-old", "ppo/mean_non_score_reward", "reward/non_score_per_token"),
    ("trl-ppo-old", "objective/entropy", "exploration/entropy_sequence"),
    ("trl-ppo-old", "ppo/policy/entropy", "exploration/entropy"),
    ("trl-ppo-old", "ppo/policy/clipfrac", "policy/clip_fraction_effective"),
    ("trl-ppo-old", "ppo/policy/approxkl", "policy/approx_kl"),
    ("trl-ppo-old", "ppo/policy/ratio", "policy/ratio"),
    ("trl-ppo-old", "ppo/policy/advantages_mean", "policy/advantage_mean"),
    ("trl-ppo-old", "ppo/policy/advantages", "policy/advantage_distribution"),
    ("trl-ppo-old", "ppo/val/mean", "value/mean"),
    ("trl-ppo-old", "ppo/val/var", "value/var"),
    ("trl-ppo-old", "ppo/val/error", "value/error"),
    ("trl-ppo-old", "ppo/val/var_explained", "value/mse_explained_variance"),
    ("trl-ppo-old", "ppo/val/clipfrac", "value/clip_fraction"),
    ("trl-ppo-old", "ppo/returns/mean", "value/return_mean"),
    ("trl-ppo-old", "ppo/returns/var", "value/return_var"),
    ("trl-ppo-old", "ppo/loss/policy", "policy/loss"),
    ("trl-ppo-old", "ppo/loss/value", "value/loss"),
    ("trl-ppo-old", "ppo/loss/total", "optimiser/loss"),
    ("trl-ppo-old", "tokens/queries_len_mean", "language/query_length_mean"),
    ("trl-ppo-old", "tokens/responses_len_mean", "language/length_mean"),
    ("trl-ppo-old", "tokens/responses_len_std", "language/length_std"),
    ("trl-ppo-old", "objective/logprobs", "language/logprobs"),
    ("trl-ppo-old", "objective/ref_logprobs", "language/ref_logprobs"),
    # 5: TRL's newer PPO trainer
    ("trl-ppo", "eps", "throughput/episodes_per_second"),
    ("trl-ppo", "objective/kl", "policy/kl_to_reference"),
    ("trl-ppo", "objective/entropy", "exploration/entropy_sequence"),
    ("trl-ppo", "objective/non_score_reward", "reward/non_score"),
    ("trl-ppo", "objective/rlhf_reward", "outcome/rlhf_reward"),
    ("trl-ppo", "objective/scores", "outcome/score"),
    ("trl-ppo", "policy/approxkl_avg", "policy/approx_kl"),
    ("trl-ppo", "policy/clipfrac_avg", "policy/clip_fraction_effective"),
    ("trl-ppo", "loss/policy_avg", "policy/loss"),
    ("trl-ppo", "loss/value_avg", "value/loss"),
    ("trl-ppo", "val/clipfrac_avg", "value/clip_fraction"),
    ("trl-ppo", "policy/entropy_avg", "exploration/entropy"),
    ("trl-ppo", "val/ratio", "policy/ratio"),
    ("trl-ppo", "val/ratio_var", "policy/ratio_var"),
    ("trl-ppo", "val/num_eos_tokens", "language/eos_tokens"),
    ("trl-ppo", "lr", "optimiser/learning_rate"),
    ("trl-ppo", "episode", "progress/episode"),
    ("trl-ppo", "objective/kl_coef", "policy/kl_coef"),
]


@pytest.mark.parametrize(("framework", "key", "canonical"), GUIDES)
def test_every_metric_of_the_guides_is_known(framework, key, canonical):
    assert named(framework, key) == canonical


def test_the_hyperparameters_of_the_guides_are_known():
    wanted = {
        "current_lr": "learning_rate", "clip_epsilon": "clip_range", "batch_size": "batch_size",
        "epochs": "n_epochs", "entropy_coefficient": "entropy_coef", "gamma": "gamma",
        "value_coefficient": "value_coef", "lambda": "gae_lambda", "seed": "seed",
    }  # fmt: skip
    assert {key: GENERIC.settings.get(key) for key in wanted} == wanted
    assert TABLE["trl-ppo"].settings["cliprange"] == "clip_range"
    assert TABLE["scheduler"].settings["clip_ratio"] == "clip_range"
    assert TABLE["trl-ppo-old"].settings["init_kl_coef"] == "kl_coef"
    assert {lookup.setting(TABLE["rllib"], key) for key in ("lr", "config/lr")} == {"learning_rate"}
    assert TABLE["sb3"].settings["clip_range_vf"] == "clip_range_value"


def test_kl_keeps_its_estimator():
    found = {
        ("sb3", "train/approx_kl"): "k3",
        ("scheduler", "Training/ApproxKL"): "k1 clamped",
        ("scheduler", "approx_kl"): "k1 clamped",
        ("trl-ppo", "policy/approxkl_avg"): "k2",
        ("trl-ppo-old", "policy/approxkl"): "k2",
        ("trl-grpo", "kl"): "k3",
        ("rllib", "info/learner/default_policy/learner_stats/kl"): "exact",
        ("generic", "approx_kl"): "",
    }
    assert {pair: how(*pair).estimator for pair in found} == found


def test_signs_are_turned_where_a_framework_logs_the_negative():
    turned = {
        (table.framework, key.replace("/update", "").replace("grpo_", "ppo_"))
        for table in TABLES
        for key, name in table.keys.items()
        if name.scale == -1.0
    }
    assert turned == {
        ("sb3", "train/entropy_loss"),
        ("sb3", "train/actor_loss"),
        ("sb3", "train/policy_objective"),
        ("skrl", "Loss / Entropy loss"),
        *(
            ("acme", f"{label}{key}")
            for label in ("", "learner/", "Learner/")
            for key in ("entropy", "Entropy", "loss_policy_entropy", "LossPolicyEntropy")
        ),
        ("areal", "ppo_actor/approx_kl/avg"),
        ("areal", "ppo_actor/behave_approx_kl/avg"),
        ("baselines", "loss_pol_entpen"),
        ("baselines", "surrgain"),
        ("brax", "training/entropy_loss"),
        ("rlkit", "Log Pis Mean"),
        ("rlkit", "trainer/Log Pis Mean"),
        ("sample-factory", "train/exploration_loss"),
        ("tf-agents", "Losses/entropy_regularization_loss"),
        ("torchrl", "loss_entropy"),
    }


@pytest.mark.parametrize(
    ("framework", "key"),
    [
        ("sb3", "rollout/ep_rew_mean"),
        ("sb3", "rollout/success_rate"),
        ("rllib", "episode_reward_mean"),
        ("rllib", "env_runners/episode_return_mean"),
    ],
)
def test_moving_averages_of_100_episodes_say_so(framework, key):
    assert how(framework, key).window == 100


def test_numbers_that_differ_keep_different_names():
    pairs = [
        # Per step, per episode, reward model, filtered and signed.
        [named("generic", "avg_reward"), named("generic", "avg_return"),
         named("trl-ppo", "objective/scores"), named("trl-grpo", "psr/avg_reward")],
        # To the policy before the update, to the reference per sequence, and per token.
        [named("trl-ppo", "policy/approxkl_avg"), named("trl-ppo", "objective/kl"),
         named("trl-grpo", "kl")],
        # |ratio - 1| > eps counts twice what the gradient loses.
        [named("sb3", "train/clip_fraction"), named("trl-grpo", "clip_ratio/region_mean")],
        # Per sequence and per token.
        [named("trl-ppo", "objective/non_score_reward"),
         named("trl-ppo-old", "ppo/mean_non_score_reward")],
        # Per decision, per sequence, per batch.
        [named("trl-ppo", "policy/entropy_avg"), named("trl-ppo", "objective/entropy"),
         named("rllib", "info/learner/policy_entropy")],
        # Residual variance, squared error.
        [named("sb3", "train/explained_variance"), named("trl-ppo-old", "ppo/val/var_explained")],
        # Before and after clipping.
        [named("trl-grpo", "grad_norm"), named("rllib", "info/learner/grad_gnorm")],
        # Serving requests, collecting steps.
        [named("scheduler", "throughput"), named("sb3", "time/fps")],
    ]  # fmt: skip
    for different in pairs:
        assert None not in different
        assert len(set(different)) == len(different), different


SB3_KEYS = """
rollout/ep_len_mean rollout/ep_rew_mean rollout/success_rate rollout/exploration_rate time/fps
time/iterations time/episodes time/time_elapsed time/total_timesteps train/approx_kl
train/clip_fraction train/clip_range train/clip_range_vf train/entropy_loss
train/explained_variance train/learning_rate train/loss train/n_updates
train/policy_gradient_loss train/policy_loss train/value_loss train/std train/actor_loss
train/critic_loss train/ent_coef train/ent_coef_loss eval/mean_reward eval/mean_ep_length
eval/success_rate
""".split()  # noqa: SIM905 - words read best as words

GRPO_KEYS = """
loss grad_norm learning_rate epoch step_time num_tokens entropy reward reward_std
frac_reward_zero_std rewards/accuracy/mean rewards/accuracy/std completions/mean_length
completions/min_length completions/max_length completions/mean_terminated_length
completions/min_terminated_length completions/max_terminated_length completions/clipped_ratio
clip_ratio/low_mean clip_ratio/low_min clip_ratio/high_mean clip_ratio/high_max
clip_ratio/region_mean kl policy_loss entropy_coef aux_loss cispo_clip_ratio vespo/phi_seq_mean
tools/call_frequency tools/failure_frequency sampling/sampling_logp_difference/mean
sampling/sampling_logp_difference/max sampling/importance_sampling_ratio/min
sampling/importance_sampling_ratio/mean sampling/importance_sampling_ratio/max
eval_loss eval_reward eval/reward eval_rewards/accuracy/mean train_runtime train_loss
""".split()  # noqa: SIM905 - words read best as words

NEW_RLLIB_KEYS = """
env_runners/episode_return_mean env_runners/episode_return_min env_runners/episode_return_max
env_runners/episode_len_mean env_runners/num_env_steps_sampled_lifetime
num_env_steps_sampled_lifetime learners/default_policy/policy_loss
learners/default_policy/vf_loss learners/default_policy/vf_loss_unclipped
learners/default_policy/vf_explained_var learners/default_policy/entropy
learners/default_policy/mean_kl_loss learners/default_policy/curr_kl_coeff
learners/default_policy/total_loss learners/default_policy/default_optimizer_learning_rate
learners/default_policy/gradients_default_optimizer_global_norm training_iteration time_total_s
""".split()  # noqa: SIM905 - words read best as words


@pytest.mark.parametrize(
    ("framework", "keys"),
    [("sb3", SB3_KEYS), ("trl-grpo", GRPO_KEYS), ("rllib", NEW_RLLIB_KEYS)],
)
def test_every_key_that_a_framework_logs_is_known(framework, keys):
    assert [key for key in keys if named(framework, key) is None] == []


def test_reward_functions_are_members_of_the_component_family():
    assert named("trl-grpo", "rewards/format_reward/mean") == "reward/component/format_reward"
    assert named("trl-grpo", "train/rewards/a/b/mean") == "reward/component/a/b"
    assert named("scheduler", "reward_logistic_penalty") == "reward/component/logistic_penalty"


@pytest.mark.parametrize(
    ("keys", "framework"),
    [
        (["objective/kl", "objective/scores", "policy/approxkl_avg", "lr"], "trl-ppo"),
        (["objective/kl", "env/reward_mean", "ppo/policy/approxkl"], "trl-ppo-old"),
        (["reward", "reward_std", "completions/mean_length", "kl"], "trl-grpo"),
        (["train/reward", "train/frac_reward_zero_std", "train/loss"], "trl-grpo"),
        (["Training/ApproxKL", "Reward/Total", "Actions/Replica_0"], "scheduler"),
        (["rollout/ep_rew_mean", "train/approx_kl", "time/fps"], "sb3"),
        (["avg_return", "win_rate_ema", "sps", "value_loss"], "generic"),
        (["env_runners/episode_return_mean", "learners/default_policy/vf_loss"], "rllib"),
    ],
)
def test_a_log_of_no_certain_source_gets_the_table_that_knows_most(keys, framework):
    assert lookup.choose("tensorboard", keys, TABLES).framework == framework


def test_canonical_names_are_known_as_they_are():
    assert named("generic", "value/return_var") == "value/return_var"
    assert named("generic", "reward/component/format") == "reward/component/format"


def test_no_table_knows_nonsense():
    assert all(lookup.find(table, "weights/layer_3/bias") is None for table in TABLES)


def test_spinning_up_s_kl_is_signed_and_needs_its_own_columns():
    row = ("Epoch", "AverageEpRet", "EpLen", "VVals", "LossPi", "LossV", "KL", "ClipFrac")
    table = lookup.choose("csv", row, TABLES)
    assert table is not None
    assert table.framework == "spinning-up"
    name, how = lookup.find(table, "KL")
    assert (name, how.estimator) == ("policy/kl_signed", "k1")


@pytest.mark.parametrize("key", ["average-episode-return", "Episode Return", "mean_return"])
def test_plain_names_are_known_however_they_are_spelt(key):
    assert lookup.find(GENERIC, key)[0] == "outcome/return"
    assert lookup.find(TABLE["verl"], "Actor/PG Loss") is None


def test_spinning_up_logs_the_range_of_returns():
    assert named("spinning-up", "MinEpRet") == "outcome/return_min"
    assert named("spinning-up", "MaxTestEpRet") == "outcome/eval_return_max"
    assert named("spinning-up", "TestEpLen") == "outcome/eval_episode_length"


def test_baselines_off_policy_learners_are_told_by_their_rows():
    ddpg = ["rollout/return", "rollout/return_history", "train/loss_critic", "total/steps"]
    her = ["epoch", "test/success_rate", "train/success_rate", "stats_o/mean"]
    for keys in (ddpg, her):
        assert lookup.choose("csv", keys, TABLES).framework == "baselines-off-policy"
    assert named("baselines-off-policy", "train/loss_critic") == "value/loss"
    assert named("baselines-off-policy", "test/success_rate") == "outcome/eval_success_rate"


def test_baselines_kl_is_half_the_squared_log_ratio():
    row = ("eprewmean", "eplenmean", "loss/approxkl", "loss/clipfrac", "misc/total_timesteps")
    table = lookup.choose("csv", row, TABLES)
    assert table is not None
    assert table.framework == "baselines"
    assert lookup.find(table, "loss/approxkl")[1].estimator == "k2"
    assert lookup.find(table, "eprewmean")[0] == "outcome/return"


def test_old_ppo2_rows_are_those_of_baselines():
    names = "approxkl clipfrac eprewmean explained_variance fps loss nupdates policy_entropy"
    row = [*names.split(), "policy_loss", "time_elapsed", "total_timesteps", "value_loss"]
    table = lookup.choose("console", row, TABLES)
    assert table.framework == "baselines"
    assert lookup.find(table, "approxkl")[1].estimator == "k2"


def test_plain_columns_of_a_reward_are_not_those_of_the_scheduler():
    for row in (["reward", "entropy"], ["total_reward", "crash"], ["reward", "lr", "temperature"]):
        table = lookup.choose("csv", row, TABLES)
        assert table is None or table.framework != "scheduler"
    row = ["reward", "entropy", "selected_replica"]
    assert lookup.choose("csv", row, TABLES).framework == "scheduler"


def test_a_name_that_is_epsilon_to_some_and_episodes_per_second_to_others_is_not_guessed():
    assert named("generic", "eps") is None
    assert named("trl-ppo", "eps") == "throughput/episodes_per_second"
