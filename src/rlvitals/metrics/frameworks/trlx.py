"""trlX's AcceleratePPOTrainer: `losses/...`, `policy/...`, `rollout_scores/...`.

One row per optimiser step, the mean over its micro batches; statistics of the rollouts stand in
the row of the step before which they were sampled, `reward/...` and `metrics/...` in those of an
evaluation. "policy/sqrt_kl" and "policy/kl_per_token" are square roots: no KL is read.
"""

from rlvitals.metrics.catalogue import optimiser, outcome, policy, reward, throughput, value
from rlvitals.metrics.frameworks.key import OVER_RESPONSE_TOKENS, Family, Name, Table

NAMES = Table(
    "trlx",
    "trlX",
    keys={
        # modeling_ppo.py, loss
        "losses/total_loss": Name(optimiser.LOSS, "policy loss + vf_coef * value loss"),
        "losses/policy_loss": Name(policy.LOSS, f"clipped surrogate, {OVER_RESPONSE_TOKENS}"),
        "losses/value_loss": Name(
            value.LOSS, f"half the clipped squared error, {OVER_RESPONSE_TOKENS}"
        ),
        "values/mean": Name(value.PREDICTION_MEAN, OVER_RESPONSE_TOKENS),
        "values/values_error": Name(value.ERROR, f"squared error, {OVER_RESPONSE_TOKENS}"),
        "values/clipfrac": Name(value.CLIP_FRACTION, OVER_RESPONSE_TOKENS),
        "old_values/mean": Name(value.MEAN, f"before the update, {OVER_RESPONSE_TOKENS}"),
        "returns/mean": Name(value.RETURN_MEAN, OVER_RESPONSE_TOKENS),
        "policy/approx_kl": Name(
            policy.APPROX_KL, "k3, mean over tokens and padding", estimator="k3"
        ),
        "policy/clipfrac": Name(
            policy.CLIP_FRACTION_EFFECTIVE,
            f"clipped loss above the plain one, {OVER_RESPONSE_TOKENS}",
        ),
        "ratio": Name(policy.RATIO, OVER_RESPONSE_TOKENS),
        # accelerate_ppo_trainer.py, make_experience
        "rollout_scores/mean": Name(outcome.SCORE, "mean over the samples of a rollout"),
        "rollout_scores/std": Name(reward.SCORE_STD, "over the samples of a rollout"),
        "kl_ctl_value": Name(policy.KL_COEF, "the controller's value"),
        # accelerate_base_trainer.py, evaluate and learn
        "reward/mean": Name(outcome.EVAL_REWARD, "mean over the evaluation's prompts"),
        "learning_rate_group_0": Name(optimiser.LEARNING_RATE, "of the first parameter group"),
    },
    families=(Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds")),),
    settings={
        "method/init_kl_coef": "kl_coef",
        "method/target": "kl_target",
        "method/horizon": "kl_horizon",
        "method/ppo_epochs": "n_epochs",
        "method/cliprange": "clip_range",
        "method/cliprange_value": "clip_range_value",
        "method/vf_coef": "value_coef",
        "method/gamma": "gamma",
        "method/lam": "gae_lambda",
        "optimizer/kwargs/lr": "learning_rate",
        "optimizer/kwargs/weight_decay": "weight_decay",
        "train/total_steps": "total_steps",
        "train/batch_size": "batch_size",
        "train/seed": "seed",
        "model/model_path": "model",
    },
    marks=(("rollout_scores/mean",), ("losses/policy_loss", "old_values/mean")),
    read_from="CarperAI/trlx 3340c2f3: trlx/models/modeling_ppo.py (PPOConfig.loss),"
    " trlx/trainer/accelerate_ppo_trainer.py (make_experience),"
    " accelerate_base_trainer.py (evaluate, learn)",
)
