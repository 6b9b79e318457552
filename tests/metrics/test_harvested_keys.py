"""The tables know what the frameworks' sources write (`scripts/harvest_keys.py`)."""

import re
from pathlib import Path

import pytest

from rlvitals import metrics
from rlvitals.metrics import key_grammar
from rlvitals.metrics.catalogue import rollouts, surrogate, throughput
from rlvitals.metrics.frameworks import GENERIC, TABLES, lookup, own_numbers

FOLDER = Path(__file__).parent / "harvested"
LISTS = sorted(FOLDER.glob("*.txt"))
TABLE = {table.framework: table for table in TABLES}
MIN_KNOWN = 0.9  # of a framework's keys that are no timings
MIN_FRAMEWORKS = 14
# A key known as one of these says what sort of number it holds, and is judged by no rule.
NUMBER_KINDS = {
    *(metric.name for metric, _ in own_numbers.KEY_KINDS),
    surrogate.LOSS_WEIGHT.name,
    surrogate.DISTILLATION.name,
    throughput.MACHINE.name,
    throughput.PHASE_TIME.name,
}
UNEXPLAINED = rollouts.STATISTIC.name  # shown under its own name, its meaning unknown
# Share of a framework's keys that have a metric of their own, as reached; less is a key lost.
MIN_NAMED = {
    "agent-lightning": 0.38,
    "areal": 0.65,
    "miles": 0.47,
    "ms-swift": 0.74,
    "nemo-rl": 0.41,
    "open-instruct": 0.65,
    "openrlhf": 0.69,
    "pipeline-rl": 0.48,
    "prime-rl": 0.40,
    "rllm": 0.57,
    "roll": 0.47,
    "skyrl": 0.65,
    "slime": 0.60,
    "tinker": 0.44,
    "trl-dpo": 0.94,
    "trl-grpo": 1.00,
    "verl": 0.41,
}
# Keys of the machinery: what is left when they are taken out measures the training.
MACHINERY_KINDS = {
    metric.name
    for metric in (
        *(rollouts.COUNT, rollouts.LOGGED_SETTING, throughput.DATA_SIZE, throughput.PHASE_RATE),
        *(throughput.PHASE_TIME, throughput.MACHINE),
    )
}
MACHINERY = re.compile(
    r"(?:perf|vllm|checkpoint_engine|dynamic_resource|payload_\w+|concurrency|gate|inference"
    r"|progress|separate_async|delta\w*|transfer|router|gen_fleet|grouping|async/\w*quota\w*"
    r"|\w+/batch_padded\w*|rollout/spec_\w+|training/async/proxy\w*)(?:/|$)"
)
# Share of them with a metric of their own, by the table or by the words of the key, as reached.
MIN_MEASURES = {
    "agent-lightning": 0.88,
    "areal": 0.88,
    "miles": 0.92,
    "ms-swift": 1.00,
    "nemo-rl": 0.95,
    "open-instruct": 0.94,
    "openrlhf": 1.00,
    "pipeline-rl": 0.95,
    "prime-rl": 0.92,
    "rllm": 0.89,
    "roll": 0.90,
    "skyrl": 0.94,
    "slime": 0.93,
    "tinker": 0.92,
    "trl-dpo": 1.00,
    "trl-grpo": 1.00,
    "verl": 0.87,
}
# Metrics that the key alone gives, where no table is the framework's: share of the measures.
MIN_BY_WORDS = {
    "agent-lightning": 0.27,
    "areal": 0.29,
    "miles": 0.50,
    "ms-swift": 0.87,
    "nemo-rl": 0.47,
    "open-instruct": 0.47,
    "openrlhf": 0.75,
    "pipeline-rl": 0.54,
    "prime-rl": 0.34,
    "rllm": 0.41,
    "roll": 0.52,
    "skyrl": 0.55,
    "slime": 0.51,
    "tinker": 0.16,
    "trl-dpo": 0.82,
    "trl-grpo": 0.71,
    "verl": 0.57,
}
MIN_AGREEMENT = 0.85  # of the names by words, with those of the framework's own table
# What a loss's weights and a distillation are called, which their tables list one by one.
LISTED = {surrogate.LOSS_WEIGHT.name, surrogate.DISTILLATION.name}
FAMILIES = [metric.name for metric in metrics.CATALOGUE if metric.family]
BY_KIND = {
    metric.name
    for metric in (rollouts.EXTREME, rollouts.SHARE_OF, rollouts.LENGTH_OF, rollouts.STATISTIC)
}
FIELDS = ("gsm8k", "1", "mean")  # what may stand where the source formats a value into a key


def keys(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def variants(framework):
    return [t for name, t in TABLE.items() if f"{name}-".startswith(f"{framework}-")]


def metric(framework, key):
    names = [
        found[1].metric.name
        for word in FIELDS
        for table in (*variants(framework), GENERIC)
        if (found := lookup.find(table, key.replace("*", word)))
    ]
    return next((name for name in names if name != UNEXPLAINED), None)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_framework_s_keys_are_known(path):
    metrics = {key: metric(path.stem, key) for key in keys(path)}
    assert len(metrics) > 10
    unknown = [key for key, name in metrics.items() if name is None]
    assert 1 - len(unknown) / len(metrics) >= MIN_KNOWN, unknown
    named = [name for name in metrics.values() if name is not None and name not in NUMBER_KINDS]
    assert round(len(named) / len(metrics), 2) >= MIN_NAMED[path.stem]


def measures(path):
    """Return {key: metric or None} for the keys that are no machinery."""
    known = {key: metric(path.stem, key) for key in keys(path) if not MACHINERY.match(key)}
    return {
        key: name
        for key, name in known.items()
        if name not in MACHINERY_KINDS and not str(name).startswith(("throughput/", "progress/"))
    }


def by_words(key):
    found = (key_grammar.meaning(key.replace("*", word)) for word in FIELDS)
    name = next((name for name in found if name), None)
    return next((family for family in FAMILIES if f"{name}/".startswith(f"{family}/")), name)


def without_own_table(path, known):
    """Return the metrics of keys where the framework's tables are unknown."""
    others = [table for table in TABLES if table not in variants(path.stem)]
    logged = [key.replace("*", FIELDS[0]) for key in keys(path)]
    table = lookup.choose("plain-jsonl", logged, others)

    def metric_of(key):
        found = (lookup.find(t, key.replace("*", FIELDS[0])) for t in (table, GENERIC) if t)
        names = [match[1].metric.name for match in found if match]
        return next((n for n in names if n not in NUMBER_KINDS and n != UNEXPLAINED), by_words(key))

    return {key: metric_of(key) for key in known}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_what_measures_the_training_has_a_metric(path):
    known = measures(path)
    own = {
        key: name if name not in BY_KIND | {None} else by_words(key) for key, name in known.items()
    }
    named = [n for n in own.values() if n and (n not in NUMBER_KINDS or n in LISTED)]
    named += [key for key, n in own.items() if n == rollouts.EXTREME.name]  # of a named metric
    assert round(len(named) / len(own), 2) >= MIN_MEASURES[path.stem], sorted(
        key for key, name in own.items() if not name
    )


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_framework_without_a_table_is_known_by_its_words(path):
    alone = without_own_table(path, measures(path))
    assert round(sum(map(bool, alone.values())) / len(alone), 2) >= MIN_BY_WORDS[path.stem]


def test_names_by_words_agree_with_the_tables():
    pairs = [
        (name, by_words(key))
        for path in LISTS
        for key, name in measures(path).items()
        if name is not None and name not in NUMBER_KINDS and by_words(key) is not None
    ]
    assert len(pairs) > 250
    assert sum(own == words for own, words in pairs) / len(pairs) >= MIN_AGREEMENT


def test_the_lists_are_of_many_frameworks():
    assert len(LISTS) >= MIN_FRAMEWORKS
    for path in LISTS:
        repository, commit, date = path.read_text().splitlines()[0].removeprefix("# ").split()
        assert "/" in repository
        assert len(commit) >= 7
        assert date.startswith("20")


# What a key means, where its name alone would mislead.
MEANINGS = [
    ("tinker", "env/all/reward/total", "outcome/reward"),
    ("tinker", "env/all/correct", "outcome/accuracy"),
    ("tinker", "env/all/format", "reward/component/format"),
    ("tinker", "env/all/by_group/frac_all_bad", "reward/group_all_wrong"),
    ("tinker", "test/env/all/correct", "outcome/eval_accuracy"),
    ("tinker", "optim/kl_sample_train_v1", "policy/sampler_kl_signed"),
    ("tinker-distillation", "teacher_kl", "optimiser/loss"),
    ("tinker-dpo", "test/nll", "language/held_out/test/nll"),
    ("trl-dpo", "count/chosen", "language/count/count/chosen"),
    ("trl-grpo", "self_distillation/loss", "policy/distillation/self_distillation/loss"),
    ("skyrl", "reward/avg_raw_reward", "outcome/reward"),
    ("skyrl", "reward/avg_pass_at_8", "outcome/pass_rate/pass_at_8"),
    ("skyrl", "policy/policy_entropy", "exploration/entropy"),
    ("skyrl", "async/staleness_mean", "optimiser/policy_lag"),
    ("skyrl", "generate/avg_num_tokens", "language/length_mean"),
    ("nemo-rl", "train/reward", "outcome/reward"),
    ("nemo-rl", "train/filtered_reward", "reward/trained_mean"),
    ("nemo-rl", "validation/accuracy", "outcome/eval_accuracy"),
    ("nemo-rl", "train/gen_kl_error", "policy/sampler_kl"),
    ("nemo-rl", "train/baseline_reward/pct_0", "reward/group_all_wrong"),
    ("rllm", "batch/solve_none", "reward/group_all_wrong"),
    ("rllm", "batch/termination_reason/max_turns", "language/stop_reason/max_turns"),
    ("rllm", "advantage/fraction_zero", "policy/advantage_zero_share"),
    ("rllm", "actor/pg_loss", "policy/loss"),
    ("roll", "actor/ratio_mean@sum", "policy/ratio"),
    ("roll", "critic/score/mean", "outcome/score"),
    ("roll", "val_correct/all/mean", "outcome/eval_accuracy"),
    ("roll", "actor/approxkl", "policy/approx_kl"),
    ("open-instruct", "objective/verifiable_correct_rate", "outcome/accuracy"),
    ("open-instruct", "eval/scores", "outcome/eval_reward"),
    ("open-instruct", "tools/search/failure_rate", "language/tool_errors/search"),
    ("open-instruct", "val/sequence_lengths", "language/length_mean"),
    ("open-instruct", "val/stop_rate", "language/stop_reason/stop"),
    ("open-instruct", "eval/rm/chosen_rewards", "language/held_out/rm/chosen_rewards"),
    ("pipeline-rl", "stats/lag", "optimiser/policy_lag"),
    ("pipeline-rl", "rl/ess", "policy/sampler_ess"),
    ("pipeline-rl", "actor/success_mean", "outcome/accuracy"),
    ("agent-lightning", "training/reward", "outcome/reward"),
    ("agent-lightning", "val/reward", "outcome/eval_reward"),
    ("agent-lightning", "training/n_sample_dropped/same_reward", "language/dropped/same_reward"),
    ("miles", "rollout/raw_reward", "outcome/reward"),
    ("miles", "weight_version/mixed_version_ratio", "policy/sampler_mixed_versions"),
    ("miles", "train/train_rollout_kl", "policy/sampler_kl"),
    ("prime-rl", "mismatch_kl/all", "policy/sampler_kl"),
    ("prime-rl", "dispatcher/errored/SandboxError", "language/error/SandboxError"),
    ("verl", "training/off_policy/trajectory_staleness/mean", "optimiser/policy_lag"),
    ("verl", "static/staleness_threshold", "language/setting/static/staleness_threshold"),
    ("verl", "agent_loop/num_preempted/mean", "language/count/agent_loop/num_preempted/mean"),
    # Merged turns are one row: no turns, and no share.
    ("rllm", "batch/merge_compression_ratio", "language/turns_per_row"),
    ("rllm", "batch/steps_per_traj/mean", "language/rows_per_trajectory"),
    ("rllm", "batch/step_response_length/mean", "language/length_mean"),
    ("rllm", "batch/default/fractions/too_hard", "reward/group_share/default/fractions/too_hard"),
    ("rllm", "batch/default/informative", "language/count/batch/default/informative"),
    ("rllm", "rejection_sample/unfiltered_reward_mean", "outcome/reward"),
    ("rllm", "rejection_sample/filtered_reward_mean", "reward/trained_mean"),
    ("skyrl", "reward/mean_positive_reward", "reward/positive_part"),
    ("skyrl", "reward_dropped/avg_raw_reward", "reward/dropped/avg_raw_reward"),
    ("skyrl", "generate/avg_assistant_tokens", "language/policy_tokens_mean"),
    (
        "skyrl",
        "eval/all/generate/avg_num_tokens",
        "language/held_out/all/generate/avg_num_tokens",
    ),
    ("skyrl", "eval/all/avg_score", "outcome/eval_reward"),
    ("skyrl", "eval/alpaca/loss", "optimiser/eval_loss"),
    ("slime", "rollout/correct_length/p25", "language/right_lengths/p25"),
    (
        "miles",
        "multi_turn/wo_obs_response_length/response_length_mean",
        "language/policy_tokens_mean",
    ),
    ("nemo-rl", "train/avg_trajectory_age", "optimiser/policy_lag"),
    ("roll", "actor/tis_total_clipfrac@sum", "policy/sampler_ratio_clipped_share"),
    ("miles", "perf/actor_train_tok_per_s", "throughput/rate/actor_train_tok_per_s"),
    ("skyrl", "reward/num_zero_variance_filtered", "language/dropped/zero_variance"),
    ("verl", "critic/rewards/max", "language/extreme/critic/rewards/max"),
    ("verl", "reward_extra_info/success", "reward/component/success"),
    # What a trainer logs of its evaluations under the names of training.
    ("trl-dpo", "eval_logps/rejected", "language/held_out/logps/rejected"),
    ("trl-dpo", "eval/rewards/chosen", "language/held_out/rewards/chosen"),
    ("trl-dpo", "eval_rewards/margins", "preference/eval_margin"),
    ("trl-grpo", "eval_completions/mean_length", "language/held_out/completions/mean_length"),
    ("trl-grpo", "eval_rewards/format/std", "language/held_out/rewards/format/std"),
    ("trl-grpo", "eval_reward", "outcome/eval_reward"),
    ("unsloth", "eval_kl", "language/held_out/kl"),
    ("language-loop", "fmt", "reward/component/fmt"),
    ("language-loop", "correct", "outcome/accuracy"),
    ("language-loop", "avg_len", "language/length_mean"),
    (
        "tinker",
        "test/env/all/by_group/frac_mixed",
        "language/held_out/env/all/by_group/frac_mixed",
    ),
]


@pytest.mark.parametrize(("framework", "key", "name"), MEANINGS)
def test_a_key_means(framework, key, name):
    assert lookup.find(TABLE[framework], key)[0] == name


@pytest.mark.parametrize(
    ("framework", "logged"),
    [
        ("tinker", ["env/all/reward/total", "optim/lr", "optim/entropy", "progress/batch"]),
        (
            "tinker-distillation",
            ["env/all/reward/total", "optim/lr", "optim/entropy", "teacher_kl"],
        ),
        ("tinker-dpo", ["dpo_loss", "margin", "accuracy", "chosen_reward", "rejected_reward"]),
        ("skyrl", ["reward/avg_raw_reward", "policy/policy_loss", "policy/policy_lr"]),
        ("nemo-rl", ["train/loss", "train/reward", "train/token_mult_prob_error", "train/lr"]),
        ("rllm", ["batch/solve_none", "batch/solve_partial", "actor/pg_loss", "critic/score/mean"]),
        ("roll", ["actor/approxkl@sum", "critic/score/mean", "tokens/response_length/mean"]),
        ("open-instruct", ["objective/verifiable_reward", "val/stop_rate", "loss/policy_avg"]),
        ("pipeline-rl", ["rl/ess", "rl/reward", "stats/lag", "stats/grad_norm"]),
        ("agent-lightning", ["training/reward", "actor/pg_loss", "actor/ppo_kl"]),
        ("miles", ["train/ess_ratio", "train/pg_loss", "rollout/raw_reward"]),
        ("verl", ["actor/pg_loss", "actor/ppo_kl", "critic/score/mean"]),
        ("slime", ["train/pg_loss", "rollout/raw_reward", "train/grad_norm"]),
        ("prime-rl", ["mismatch_kl/all", "entropy/all"]),
        ("language-loop", ["actor_loss", "reward", "fmt", "correct", "kl_ref", "avg_len", "lr"]),
    ],
)
def test_a_log_is_read_by_its_own_table(framework, logged):
    assert lookup.choose("plain-jsonl", logged, TABLES).framework == framework
