"""Made logs of language-model trainers: their keys, with the values of a healthy run.

Keys are those of the frameworks' sources and of logs people posted; values rise, fall and scatter
as in such logs. A log is bare columns over `ROWS` rows: key -> float64 [ROWS].
"""

import numpy as np

from rlvitals.types import Log, Series

ROWS = 200
SECONDS = 60.0  # a step takes so long


class Maker:
    """Values of a run: `t` goes 0 to 1 over it, learning is fast first and slow later."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.t = np.linspace(0.0, 1.0, ROWS)
        self.learned = self.t**0.8

    def level(self, value, scatter=0.1):
        """Stand at a level, with relative scatter."""
        return value * (1 + scatter * self.rng.standard_normal(ROWS))

    def noise(self, size):
        """Scatter around zero."""
        return size * self.rng.standard_normal(ROWS)

    def course(self, first, last, scatter=0.03):
        """Go from one level to another as learning goes."""
        line = first + (last - first) * self.learned
        return line + scatter * abs(last - first) * self.rng.standard_normal(ROWS)

    def share(self, first, last, scatter=0.02):
        """Go from one share to another, within 0 and 1."""
        return np.clip(self.course(first, last, 0) + self.noise(scatter), 0.0, 1.0)

    def warm_up(self, value):
        """Rise to a learning rate over 10 rows and stay."""
        return np.minimum(np.arange(1, ROWS + 1) / 10, 1.0) * value

    def counted(self, per_row):
        """Count up."""
        return np.cumsum(np.full(ROWS, per_row))


def verl_actor(m):
    return {
        "actor/entropy": m.course(0.45, 0.22),
        "actor/pg_loss": m.noise(0.01),
        "actor/pg_clipfrac": np.abs(m.level(6e-4, 0.3)),
        "actor/ppo_kl": m.noise(2e-4),
        "actor/pg_clipfrac_lower": np.abs(m.level(5e-6, 0.5)),
        "actor/grad_norm": np.abs(m.level(0.13, 0.15)),
        "actor/lr": m.warm_up(1e-6),
        "perf/mfu/actor": m.level(0.31, 0.02),
        "perf/max_memory_allocated_gb": m.level(44.0, 0.001),
        "perf/throughput": m.level(1900.0, 0.03),
        "perf/time_per_step": m.level(SECONDS, 0.03),
        "perf/total_num_tokens": m.level(2.2e6, 0.03),
        "timing_s/gen": m.level(30.0, 0.05),
        "timing_s/update_actor": m.level(16.0, 0.03),
        "timing_s/step": m.level(SECONDS, 0.03),
        "timing_per_token_ms/gen": m.level(0.02, 0.05),
        "training/global_step": m.counted(1.0),
        "training/epoch": np.floor(m.counted(1.0) / 30),
        "response_length/mean": m.course(330.0, 610.0),
        "response_length/max": np.full(ROWS, 1024.0),
        "response_length/min": m.level(60.0, 0.2),
        "response_length/clip_ratio": m.share(0.02, 0.05, 0.005),
        "response/aborted_ratio": np.zeros(ROWS),
        "prompt_length/mean": m.level(102.0, 0.02),
        "prompt_length/max": m.level(220.0, 0.1),
        "prompt_length/min": m.level(60.0, 0.05),
        "prompt_length/clip_ratio": np.zeros(ROWS),
    }


def verl_grpo(m):
    score = m.share(0.12, 0.71)
    advantages = m.noise(0.02)
    return {
        **verl_actor(m),
        "actor/kl_loss": m.course(0.0002, 0.03),
        "actor/kl_coef": np.full(ROWS, 0.001),
        "critic/score/mean": score,
        "critic/score/max": np.ones(ROWS),
        "critic/score/min": np.zeros(ROWS),
        "critic/rewards/mean": score,
        "critic/rewards/max": np.ones(ROWS),
        "critic/rewards/min": np.zeros(ROWS),
        "critic/advantages/mean": advantages,
        "critic/advantages/max": np.full(ROWS, 1.79),
        "critic/advantages/min": np.full(ROWS, -1.79),
        "critic/returns/mean": advantages,
        "num_turns/mean": np.full(ROWS, 2.0),
        "training/rollout_probs_diff_mean": m.level(0.004, 0.1),
        "training/rollout_probs_diff_max": np.clip(m.level(0.6, 0.2), 0, 1),
        "training/rollout_probs_diff_std": m.level(0.012, 0.1),
        "training/rollout_actor_probs_pearson_corr": np.full(ROWS, 0.999),
        "rollout_corr/kl": m.noise(2e-4) + 4e-4,
        "rollout_corr/k3_kl": np.abs(m.level(5e-4, 0.2)),
        "rollout_corr/chi2_token": np.abs(m.level(2e-3, 0.3)),
        "rollout_corr/rollout_is_mean": m.level(1.0, 0.001),
        "rollout_corr/rollout_is_eff_sample_size": np.clip(m.level(0.99, 0.002), 0, 1),
        "val-core/openai/gsm8k/acc/mean@1": m.share(0.4, 0.78),
        "val-aux/openai/gsm8k/reward/std@1": np.zeros(ROWS),
    }


def verl_ppo(m):
    score = m.share(0.1, 0.55)
    return {
        **verl_actor(m),
        "actor/kl_loss": np.zeros(ROWS),  # 0.7 and later write it whether or not it is used
        "actor/reward_kl_penalty": m.course(0.0, 0.06) + m.noise(1e-3),
        "actor/reward_kl_penalty_coeff": np.full(ROWS, 0.001),
        "critic/score/mean": score,
        "critic/score/max": np.ones(ROWS),
        "critic/score/min": np.zeros(ROWS),
        "critic/rewards/mean": score - 0.01,
        "critic/advantages/mean": m.noise(1e-3),
        "critic/advantages/max": m.level(3.5, 0.1),
        "critic/advantages/min": m.level(-3.5, 0.1),
        "critic/returns/mean": 0.8 * score,
        "critic/values/mean": 0.8 * score + m.noise(0.02),
        "critic/vf_explained_var": m.course(-0.2, 0.55),
        "critic/vf_loss": np.abs(m.course(0.9, 0.12)),
        "critic/vf_clipfrac": m.share(0.25, 0.08, 0.01),
        "critic/vpred_mean": 0.8 * score + m.noise(0.02),
        "critic/grad_norm": np.abs(m.level(40.0, 0.2)),
        "critic/lr": m.warm_up(1e-5),
    }


def openrlhf_actor(m):
    return {
        "policy_loss": m.noise(0.01),
        "ppo_clip_ratio": np.abs(m.level(1e-3, 0.3)),
        "ppo_kl": m.noise(3e-4),
        "vllm_kl": m.noise(2e-4),
        "response_length": m.course(400.0, 700.0),
        "total_length": m.course(520.0, 820.0),
        "truncated": m.share(0.02, 0.04, 0.005),
        "actor_lr": m.warm_up(5e-7),
        "actor_grad_norm": np.abs(m.level(0.4, 0.2)),
        "rollout/response_length_mean": m.course(400.0, 700.0),
        "rollout/truncated_rate": m.share(0.02, 0.04, 0.005),
        "rollout/num_samples": np.full(ROWS, 1024.0),
        "timing/make_experience": m.level(8.0, 0.05),
        "timing/ppo_train": m.level(20.0, 0.05),
        "timing/broadcast": m.level(2.0, 0.05),
        "timing/generation": m.level(30.0, 0.05),
        "timing/step_total": m.level(SECONDS, 0.05),
    }


def openrlhf_ppo(m):
    score = m.course(-0.8, 2.4)
    return {
        **openrlhf_actor(m),
        "kl": m.course(0.0, 0.05) + m.noise(1e-3),
        "logprobs_diff": m.course(0.0, 0.05),
        "reward": score,
        "return": score - 0.3,
        "rollout/reward_mean": score,
        "rollout/reward_std": m.level(1.1, 0.05),
        "critic_loss": np.abs(m.course(1.5, 0.3)),
        "values": m.course(-0.8, 1.9),
        "critic_lr": m.warm_up(9e-6),
        "critic_grad_norm": np.abs(m.level(3.0, 0.2)),
    }


def openrlhf_grpo(m):
    reward = m.share(0.2, 0.65)
    return {
        **openrlhf_actor(m),
        "kl": np.zeros(ROWS),  # no reference model
        "logprobs_diff": np.zeros(ROWS),
        "reward": reward,
        "return": m.noise(1e-3),  # the group's mean is taken off
        "group_reward_std": m.share(0.33, 0.25),
        "rollout/reward_mean": reward,
        "rollout/reward_std": m.share(0.4, 0.47),
        "entropy_loss": m.course(0.5, 0.3),
        "dynamic_filtering_pass_rate": 100 * m.share(0.6, 0.45),
        "eval/eval_aime_pass4": m.share(0.3, 0.5),
        "eval/eval_aime_pass1": m.share(0.1, 0.3),
    }


def prime_rl(m):
    agent = "train/agg/all/default"
    return {
        "loss/mean": m.noise(1e-3),
        "entropy/all/mean": m.course(0.4, 0.25),
        "mismatch_kl/all/mean": np.abs(m.level(1e-3, 0.2)),
        "mismatch_kl/all/max": np.abs(m.level(2.0, 0.3)),
        "is_masked/mean": np.abs(m.level(3e-4, 0.3)),
        "is_masked_low/mean": np.abs(m.level(1e-4, 0.3)),
        "is_masked_high/mean": np.abs(m.level(2e-4, 0.3)),
        "optim/lr": m.warm_up(1e-6),
        "optim/grad_norm": np.abs(m.level(0.2, 0.2)),
        "perf/throughput": m.level(21000.0, 0.02),
        "perf/throughput_per_gpu": m.level(2600.0, 0.02),
        "perf/mfu": m.level(38.0, 0.02),
        "perf/peak_memory": m.level(66.0, 0.001),
        "time/step": m.level(SECONDS, 0.05),
        "time/forward_backward": m.level(40.0, 0.05),
        "time/wait_for_batch": np.abs(m.level(15.0, 0.2)),
        "progress/tokens": m.level(1.2e6, 0.02),
        "progress/total_tokens": m.counted(1.2e6),
        "off_policy/mean": np.abs(m.level(1.4, 0.1)),
        "off_policy/max": np.full(ROWS, 3.0),
        "off_policy/dropped": np.zeros(ROWS),
        f"{agent}/reward/mean": m.share(0.2, 0.7),
        f"{agent}/reward/max": np.ones(ROWS),
        f"{agent}/reward/min": np.zeros(ROWS),
        f"{agent}/num_output_tokens/mean": m.course(900.0, 1500.0),
        f"{agent}/num_turns/mean": m.level(2.0, 0.01),
        f"{agent}/is_truncated/mean": m.share(0.03, 0.05, 0.005),
        f"{agent}/has_error/mean": np.abs(m.level(0.002, 0.5)),
        f"{agent}/solved_none": m.share(0.4, 0.15),
        f"{agent}/solved_all": m.share(0.05, 0.4),
        f"{agent}/rewards/correct_answer/mean": m.share(0.2, 0.7),
        "train/agg/effective/default/reward/mean": m.share(0.45, 0.55),
        "eval/aime2025/all/default/avg@16": m.share(0.1, 0.3),
    }


def prime_rl_old(m):
    """Names of 0.3 and 0.4."""
    return {
        "loss/mean": m.noise(1e-3),
        "entropy/mean": m.course(0.4, 0.25),
        "mismatch_kl/mean": np.abs(m.level(1e-3, 0.2)),
        "optim/lr": m.warm_up(1e-6),
        "optim/grad_norm": np.abs(m.level(0.2, 0.2)),
        "perf/mfu": m.level(38.0, 0.02),
        "time/step": m.level(SECONDS, 0.05),
        "reward/mean": m.share(0.2, 0.7),
        "reward/hendrycks-math": m.share(0.2, 0.7),
        "seq_len/mean": m.course(900.0, 1500.0),
        "seq_len/max": m.course(2000.0, 3000.0),
        "seq_len/min": m.level(200.0, 0.1),
        "is_truncated/mean": m.share(0.03, 0.05, 0.005),
        "batch/solve_none": m.share(0.4, 0.15),
        "batch/solve_all": m.share(0.05, 0.4),
        "batch/off_policy_level/mean": np.abs(m.level(1.4, 0.1)),
        "error/mean": np.abs(m.level(0.002, 0.5)),
        "progress/total_tokens": m.counted(1.2e6),
    }


def verifiers(m):
    return {
        "loss": m.noise(1e-3),
        "grad_norm": np.abs(m.level(0.2, 0.2)),
        "learning_rate": m.warm_up(1e-6),
        "epoch": m.counted(0.01),
        "importance_ratio": m.level(1.0, 0.002),
        "entropy": m.course(0.4, 0.25),
        "mismatch_kl": np.abs(m.level(1e-3, 0.2)),
        "reward": m.share(0.2, 0.7),
        "reward/std": m.share(0.4, 0.45),
        "reward/correct_answer": m.share(0.2, 0.7),
        "reward/num_turns": m.level(2.0, 0.01),
        "reward/total_tool_calls": m.level(1.0, 0.01),
        "reward/calculator_calls": m.level(1.0, 0.01),
        "advantage/absmean": m.share(0.3, 0.3),
        "tokens/completion": m.course(300.0, 400.0),
        "tokens/masked_fraction": m.share(0.1, 0.1),
        "timing/generation": m.level(20.0, 0.1),
        "wall_clock/generate_s": m.level(30.0, 0.1),
    }


def areal(m):
    update = "ppo_actor/update"
    return {
        "ppo_actor/task_reward/avg": m.share(0.45, 0.78),
        "ppo_actor/task_reward/min": np.zeros(ROWS),
        "ppo_actor/task_reward/max": np.ones(ROWS),
        "ppo_actor/final_reward/avg": m.noise(0.01),
        "ppo_actor/kl_rewards/avg": np.zeros(ROWS),  # kl_ctl 0
        "ppo_actor/advantages/avg": m.noise(0.01),
        "ppo_actor/advantages/min": m.level(-2.5, 0.1),
        "ppo_actor/advantages/max": m.level(2.5, 0.1),
        "ppo_actor/no_eos_ratios/avg": m.share(0.05, 0.06, 0.01),
        "ppo_actor/seq_len/avg": m.course(420.0, 560.0),
        "ppo_actor/prompt_len/avg": m.level(110.0, 0.02),
        "ppo_actor/correct_seq_len/avg": m.course(400.0, 520.0),
        "ppo_actor/incorrect_seq_len/avg": m.course(450.0, 640.0),
        f"{update}/actor_loss/avg": m.noise(0.01),
        f"{update}/clip_ratio/avg": np.abs(m.level(2e-3, 0.3)),
        f"{update}/dual_clip_ratio/avg": np.zeros(ROWS),
        f"{update}/importance_weight/avg": m.level(1.0, 1e-3),
        f"{update}/approx_kl/avg": m.noise(3e-4),
        f"{update}/entropy/avg": m.course(0.35, 0.2),
        f"{update}/behave_imp_weight/avg": m.level(1.0, 2e-3),
        f"{update}/behave_imp_weight/max": m.level(3.0, 0.2),
        f"{update}/behave_approx_kl/avg": m.noise(2e-4) - 5e-4,
        f"{update}/compute_logp/kl_div_dual/avg": np.abs(m.level(1e-3, 0.2)),
        f"{update}/version_stats/sample_staleness_theta_avg": np.abs(m.level(1.6, 0.1)),
        f"{update}/version_stats/sample_staleness_theta_max": np.full(ROWS, 3.0),
        f"{update}/grad_norm": np.abs(m.level(0.3, 0.2)),
        f"{update}/lr": m.warm_up(1.7e-5),
        f"{update}/update_successful": np.ones(ROWS),
        "rollout/reward": m.share(0.45, 0.78),
        "eval-rollout/reward": m.share(0.5, 0.8),
        "timeperf/rollout": m.level(20.0, 0.1),
        "timeperf/train_step": m.level(35.0, 0.05),
    }


def slime_train(m):
    return {
        "train/loss": m.noise(0.01),
        "train/pg_loss": m.noise(0.01),
        "train/entropy_loss": m.course(0.35, 0.22),
        "train/pg_clipfrac": np.abs(m.level(5e-4, 0.3)),
        "train/ppo_kl": m.noise(1e-4),
        "train/train_rollout_logprob_abs_diff": np.abs(m.level(0.012, 0.05)),
        "train/grad_norm": np.abs(m.level(0.2, 0.2)),
        "train/lr-pg_0": np.full(ROWS, 1e-6),
        "rollout/response_lengths": m.course(2000.0, 3100.0),
        "rollout/response_len/mean": m.course(2000.0, 3100.0),
        "rollout/response_len/max": np.full(ROWS, 8192.0),
        "rollout/response_len/min": m.level(300.0, 0.1),
        "rollout/total_lengths": m.course(2150.0, 3250.0),
        "rollout/truncated": m.share(0.05, 0.08, 0.01),
        "rollout/truncated_ratio": m.share(0.05, 0.08, 0.01),
        "rollout/log_probs": m.course(-0.35, -0.22),
        "rollout/repetition_frac": np.abs(m.level(0.002, 0.5)),
        "perf/rollout_time": m.level(40.0, 0.05),
        "perf/actor_train_time": m.level(15.0, 0.05),
        "perf/step_time": m.level(SECONDS, 0.05),
        "perf/tokens_per_gpu_per_sec": m.level(240.0, 0.05),
    }


def slime_grpo(m):
    return {
        **slime_train(m),
        "train/kl_loss": m.course(0.0, 0.01) + m.noise(2e-4),
        "rollout/kl": np.zeros(ROWS),
        "rollout/raw_reward": m.share(0.3, 0.68),
        "rollout/rewards": m.noise(1e-6),
        "rollout/advantages": m.noise(1e-6),
        "rollout/returns": m.noise(1e-6),
        "rollout/zero_std/count_0": np.round(m.level(12.0, 0.2)),
        "rollout/zero_std/count_1": np.round(m.level(14.0, 0.2)),
        "eval/aime": m.share(0.15, 0.35),
        "eval/aime-truncated_ratio": m.share(0.2, 0.15, 0.01),
    }


def slime_ppo(m):
    return {
        **slime_train(m),
        "rollout/kl": m.course(0.0, 0.02) + m.noise(3e-4),
        "rollout/raw_reward": m.share(0.3, 0.68),
        "rollout/rewards": m.share(0.3, 0.68),
        "rollout/advantages": m.noise(0.01),
        "rollout/returns": m.share(0.3, 0.66),
        "rollout/values": m.share(0.28, 0.64),
        "train/critic-value_loss": np.abs(m.course(0.3, 0.12)),
        "train/critic-value_clipfrac": m.share(0.1, 0.03, 0.005),
        "train/critic-grad_norm": np.abs(m.level(2.0, 0.2)),
    }


def trl_grpo(m):
    return {
        "loss": m.noise(0.02),
        "grad_norm": np.abs(m.level(0.15, 0.2)),
        "learning_rate": m.warm_up(1e-6),
        "epoch": m.counted(0.005),
        "reward": m.share(0.3, 0.72),
        "reward_std": m.share(0.45, 0.4),
        "frac_reward_zero_std": m.share(0.1, 0.3),
        "rewards/accuracy_reward/mean": m.share(0.3, 0.72),
        "rewards/accuracy_reward/std": m.share(0.45, 0.42),
        "completions/mean_length": m.course(380.0, 520.0),
        "completions/min_length": m.level(120.0, 0.1),
        "completions/max_length": m.level(900.0, 0.05),
        "completions/clipped_ratio": m.share(0.02, 0.04, 0.005),
        "clip_ratio/low_mean": np.zeros(ROWS),
        "clip_ratio/low_min": np.zeros(ROWS),
        "clip_ratio/high_mean": np.zeros(ROWS),
        "clip_ratio/high_max": np.zeros(ROWS),
        "clip_ratio/region_mean": np.zeros(ROWS),
    }


def unsloth(m):
    return {
        **trl_grpo(m),
        "num_tokens": m.counted(10000.0),
        "completions/mean_terminated_length": m.course(370.0, 510.0),
        "completions/min_terminated_length": m.level(120.0, 0.1),
        "completions/max_terminated_length": m.level(880.0, 0.05),
        "completion_length": m.course(380.0, 520.0),
        "kl": np.zeros(ROWS),  # beta 0
    }


def ms_swift(m):
    return {
        **trl_grpo(m),
        "kl": m.course(0.0, 0.02),
        "entropy/mean": m.course(0.5, 0.3),
        "entropy/max": m.course(0.9, 0.6),
        "entropy/min": m.course(0.2, 0.1),
        "num_turns": np.full(ROWS, 1.0),
        "rollout_correction/kl": m.noise(2e-4),
        "rollout_correction/k3_kl": np.abs(m.level(6e-4, 0.2)),
        "rollout_correction/ess": np.clip(m.level(0.98, 0.005), 0, 1),
        "memory(GiB)": np.full(ROWS, 55.34),
        "train_speed(s/it)": m.level(SECONDS, 0.01),
        "MFU": m.level(0.3, 0.01),
    }


def llama_factory(m):
    return {
        "loss": np.abs(m.course(0.69, 0.4)),
        "accuracy": m.share(0.5, 0.75, 0.02),
        "lr": m.warm_up(5e-6),
        "epoch": m.counted(0.015),
        "percentage": m.counted(100.0 / ROWS),
    }


def trainer(m):
    return {
        "loss": np.abs(m.course(1.6, 0.7)),
        "grad_norm": np.abs(m.level(0.8, 0.1)),
        "learning_rate": m.warm_up(2e-5),
        "epoch": m.counted(0.015),
    }


def sft(m):
    return {
        **trainer(m),
        "mean_token_accuracy": m.share(0.62, 0.8, 0.01),
        "entropy": m.course(1.5, 0.8),
        "num_tokens": m.counted(1e5),
        "eval_loss": np.abs(m.course(1.6, 0.85)),
    }


def dpo(m):
    chosen, rejected = m.course(0.0, 0.6), m.course(0.0, -1.8)
    return {
        **trainer(m),
        "rewards/chosen": chosen,
        "rewards/rejected": rejected,
        "rewards/accuracies": m.share(0.5, 0.82),
        "rewards/margins": chosen - rejected,
        "logps/chosen": m.course(-200.0, -195.0),
        "logps/rejected": m.course(-210.0, -235.0),
        "logits/chosen": m.level(0.85, 0.02),
        "logits/rejected": m.level(0.87, 0.02),
    }


def lightning(m):
    return {
        "epoch": np.floor(m.counted(0.05)),
        "train_loss_step": np.abs(m.course(2.3, 0.4)),
        "train_loss_epoch": np.abs(m.course(2.3, 0.4)),
        "val_loss": np.abs(m.course(2.3, 0.5)),
        "lr-AdamW": m.warm_up(1e-3),
        "trainer/global_step": m.counted(50.0),
    }


def log(make, *, prefix="", settings=None, source="tensorboard", seed=0):
    """Make a log; keys of evaluations keep the place that their tracker gives them."""
    steps = np.arange(1, ROWS + 1, dtype=np.int64)
    times = 1.7e9 + SECONDS * steps
    columns = {
        key if key.startswith("eval/") else f"{prefix}{key}": Series(steps, times, values)
        for key, values in make(Maker(seed)).items()
    }
    return Log(source, columns, settings or {}, where=make.__name__)
