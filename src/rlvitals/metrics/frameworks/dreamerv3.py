"""DreamerV3: `metrics.jsonl`, `scores.jsonl`, TensorBoard; as commit e3f02248 of 2026 writes them.

The step counts environment frames: steps of the agent times the environment's action repeat.
"train/..." are means over the gradient steps since the last row. Until 2023 (v1) names end in
"_mean"; in 2024 (v2) in "_loss" and "/mean".
"""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, throughput, value
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_GRADIENT_STEPS = "mean over the gradient steps since the last row"
SURROGATE = "-(log pi x advantage) - actent x entropy, of imagined steps"
ADVANTAGE = "of imagined steps, divided by the range of returns"

IMAGINED_ENTROPY = Name(exploration.ENTROPY, f"positive, of imagined steps, {OVER_GRADIENT_STEPS}")
IMAGINED_ENTROPY_SHARE = Name(
    exploration.ENTROPY_SHARE, f"of imagined steps, {OVER_GRADIENT_STEPS}"
)
UNCLIPPED_GRAD_NORM = Name(optimiser.GRAD_NORM, "before the adaptive clipping")
MEAN_LOSS_PART = Name(optimiser.LOSS_PART, OVER_GRADIENT_STEPS)
IMAGINED_CRITIC_LOSS = Name(
    optimiser.LOSS_PART,
    "critics: cross-entropy of the two-hot returns, with the pull to the slow critic;"
    f" {OVER_GRADIENT_STEPS}",
)

NAMES = Table(
    "dreamerv3",
    "DreamerV3",
    keys={
        # embodied/run/train.py, logfn: one row an episode
        "episode/score": Name(outcome.RETURN, "each episode of the workers as it ends"),
        "episode/length": Name(outcome.EPISODE_LENGTH, "each episode, in steps of the agent"),
        "fps/policy": Name(throughput.STEPS_PER_SECOND, "steps of the agent since the last row"),
        "fps/train": Name(throughput.LEARNER_RATE, "replayed steps since the last row"),
        # dreamerv3/agent.py, imag_loss and loss; embodied/jax/opt.py
        "train/loss/policy": Name(policy.LOSS, f"{SURROGATE}, {OVER_GRADIENT_STEPS}"),
        "train/ent/action": IMAGINED_ENTROPY,
        "train/rand/action": IMAGINED_ENTROPY_SHARE,
        "train/adv": Name(policy.ADVANTAGE_MEAN, ADVANTAGE),
        "train/adv_std": Name(policy.ADVANTAGE_STD, ADVANTAGE),
        "train/val": Name(value.MEAN, "of imagined states, in units of the return"),
        "train/opt/loss": Name(optimiser.LOSS, f"all parts, weighted, {OVER_GRADIENT_STEPS}"),
        "train/opt/grad_norm": UNCLIPPED_GRAD_NORM,
        "train/opt/updates": Name(optimiser.UPDATES, "mean since the last row"),
        # v2
        "train/actor_loss": Name(policy.LOSS, f"{SURROGATE}, {OVER_GRADIENT_STEPS}"),
        "train/ent/action/mean": IMAGINED_ENTROPY,
        "train/rand/action/mean": IMAGINED_ENTROPY_SHARE,
        "train/adv/mean": Name(policy.ADVANTAGE_MEAN, ADVANTAGE),
        "train/adv/std": Name(policy.ADVANTAGE_STD, ADVANTAGE),
        "train/val/mean": Name(value.MEAN, "of imagined states, in units of the return"),
        "train/opt_loss": Name(optimiser.LOSS, f"all parts, weighted, {OVER_GRADIENT_STEPS}"),
        "train/opt_grad_norm": UNCLIPPED_GRAD_NORM,
        "train/opt_grad_steps": Name(optimiser.UPDATES, "mean since the last row"),
        # v1: three optimisers
        "train/actor_opt_loss": Name(policy.LOSS, f"{SURROGATE}, {OVER_GRADIENT_STEPS}"),
        "train/policy_entropy_mean": IMAGINED_ENTROPY,
        "train/policy_randomness_mean": IMAGINED_ENTROPY_SHARE,
        "train/adv_mean": Name(policy.ADVANTAGE_MEAN, ADVANTAGE),
        "train/model_opt_loss": Name(optimiser.LOSS, f"of the world model, {OVER_GRADIENT_STEPS}"),
        "train/model_opt_grad_norm": Name(
            optimiser.GRAD_NORM, "of the world model, before clipping"
        ),
        "train/model_opt_grad_steps": Name(optimiser.UPDATES, "mean since the last row"),
    },
    families=(
        Family(r"train/loss/(value|repval)", IMAGINED_CRITIC_LOSS),
        Family(r"train/loss/(.+)", MEAN_LOSS_PART),
        Family(r"train/((?:replay_)?critic)_loss", IMAGINED_CRITIC_LOSS),
        Family(r"train/extr_critic_(critic)_opt_loss", IMAGINED_CRITIC_LOSS),
        Family(r"train/(dyn|rep|reward|cont|image|vector)_loss(?:_mean)?", MEAN_LOSS_PART),
    ),
    settings={
        "task": "env_id",
        "seed": "seed",
        "run/steps": "total_steps",
        "run/envs": "n_envs",
        "batch_size": "minibatch_size",  # sequences of batch_length steps
        "replay/size": "buffer_size",
        "agent/opt/lr": "learning_rate",
        "agent/imag_loss/actent": "entropy_coef",
        "agent/imag_loss/lam": "gae_lambda",
        "actent": "entropy_coef",
        "method": "algorithm",
    },
    step_unit="frames",
    read_from="danijar/dreamerv3 e3f02248: embodied/run/train.py (logfn, train), dreamerv3/agent.py"
    " (loss, imag_loss, repl_loss), embodied/jax/opt.py (__call__), dreamerv3/main.py"
    " (make_logger); 251910d3 (v2); 5dcf303b (v1): dreamerv3/agent.py, jaxutils.py (Optimizer)",
)
