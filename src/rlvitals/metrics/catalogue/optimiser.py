"""Optimiser metrics: total loss, gradient norm, learning rate, updates."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric, share_metric
from rlvitals.types import Profile

LOSS = Metric(
    name="optimiser/loss",
    title="Training loss",
    unit="loss",
    kind="health",
    meaning="The number the optimiser minimises. In supervised training it should fall; in RL it"
    " is no score: on-policy GRPO's is near zero by construction, PSR's is minus the share of"
    " positive tokens, NSR's the share of negative ones.",
    formula="PPO: policy loss + value_coef * value loss - entropy_coef * entropy",
    better="depends",
    see_also=("policy/loss", "value/loss", "outcome/return"),
)

LOSS_PART = Metric(
    name="optimiser/loss_part",
    title="Part of the training loss",
    unit="loss",
    kind="health",
    meaning="One of several losses that are minimised together, beside the policy's and the"
    " critic's: of a world model, of curiosity, of imitation, of symmetry.",
    better="depends",
    see_also=("optimiser/loss",),
    family=True,
)

EVAL_LOSS = Metric(
    name="optimiser/eval_loss",
    title="Evaluation loss",
    unit="loss",
    kind="outcome",
    meaning="The loss on held-out data; rising while the training loss falls is over-fitting.",
    better="down",
    see_also=("optimiser/loss",),
)

RUN_LOSS = Metric(
    name="optimiser/run_loss",
    title="Mean loss of the whole run",
    unit="loss",
    kind="health",
    meaning="The training loss averaged over all steps, written once at the end: not the last.",
    see_also=("optimiser/loss",),
)

ROUTER_LOSS = Metric(
    name="optimiser/router_loss",
    title="Router balance loss",
    unit="loss",
    kind="health",
    meaning="The auxiliary loss that keeps a mixture-of-experts model's experts evenly used.",
    better="steady",
    see_also=("optimiser/loss",),
)

GRAD_NORM = Metric(
    name="optimiser/grad_norm",
    title="Gradient norm",
    unit="norm",
    kind="health",
    meaning="Length of the gradient before clipping. Spikes are unstable batches; always above"
    " the clip limit means clipping sets the step size; zero means nothing is learnt.",
    formula="L2 norm over all parameters",
    better="steady",
    healthy=Band(low=0.0, high_from="max_grad_norm"),
    possible=NOT_NEGATIVE,
    healthy_in={Profile.SCHEDULER_PPO: Band(low=0.0, high=1.0, high_from="max_grad_norm")},
    see_also=("optimiser/clipped_grad_norm", "optimiser/learning_rate"),
)

CLIPPED_GRAD_NORM = Metric(
    name="optimiser/clipped_grad_norm",
    title="Gradient norm after clipping",
    unit="norm",
    kind="health",
    meaning="Length of the gradient that is applied: sitting exactly at the limit, every update"
    " is clipped. An explosion cannot show here.",
    formula="min(L2 norm, max_grad_norm)",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("optimiser/grad_norm",),
)

WEIGHT_NORM = Metric(
    name="optimiser/weight_norm",
    title="Weight norm",
    unit="norm",
    kind="health",
    meaning="Length of all weights together; steady growth goes with loss of plasticity.",
    formula="L2 norm over all parameters",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("optimiser/grad_norm",),
)

LEARNING_RATE = Metric(
    name="optimiser/learning_rate",
    title="Learning rate in force",
    unit="1",
    kind="health",
    meaning="The learning rate of this update, as its schedule gives it.",
    better="steady",
    healthy=Band(low=0.0),
    see_also=("learning_rate",),
)

UPDATES = Metric(
    name="optimiser/updates",
    title="Updates",
    unit="updates",
    kind="performance",
    meaning="Updates so far. What counts as one differs: SB3's PPO counts epochs, DQN and SAC"
    " gradient steps.",
    better="up",
    see_also=("throughput/updates_per_second",),
)

TARGET_UPDATES = Metric(
    name="optimiser/target_updates",
    title="Target network updates",
    unit="updates",
    kind="performance",
    meaning="How often the target network has been refreshed so far.",
    better="up",
    see_also=("optimiser/updates",),
)

POLICY_LAG = Metric(
    name="optimiser/policy_lag",
    title="Updates between sampling and learning",
    unit="updates",
    kind="health",
    meaning="How many updates old the policy was that collected the batch: 0 for PPO, small for"
    " IMPALA and APPO.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("policy/ratio",),
)

CRITIC_GRAD_NORM = Metric(
    name="optimiser/critic_grad_norm",
    title="Gradient norm of the critic",
    unit="norm",
    kind="health",
    meaning="Length of the gradient of a critic that is a model of its own, before clipping.",
    formula="L2 norm over the critic's parameters",
    better="steady",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("optimiser/grad_norm", "value/loss"),
)

GRAD_NORM_MAX = Metric(
    name="optimiser/grad_norm_max",
    title="Largest gradient norm",
    unit="norm",
    kind="health",
    meaning="The longest gradient before clipping since the previous point: one bad minibatch"
    " that a mean over the update hides.",
    formula="max of the L2 norm over gradient steps",
    better="steady",
    possible=NOT_NEGATIVE,
    see_also=("optimiser/grad_norm",),
)

CRITIC_LEARNING_RATE = Metric(
    name="optimiser/critic_learning_rate",
    title="Learning rate of the critic",
    unit="1",
    kind="health",
    meaning="The learning rate of a critic that is a model of its own.",
    better="steady",
    healthy=Band(low=0.0),
    see_also=("optimiser/learning_rate",),
)

POLICY_LAG_MAX = Metric(
    name="optimiser/policy_lag_max",
    title="Updates between sampling and learning, most",
    unit="updates",
    kind="health",
    meaning="How many updates old the oldest sample of the batch was.",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("optimiser/policy_lag", "max_policy_lag"),
)

POLICY_LAG_SHARE = share_metric(
    "optimiser/policy_lag_share",
    "Samples of an older policy",
    "Share of the batch that was sampled by an older policy than the one that is updated.",
    "samples or groups that are an update or more old / all",
    "optimiser/policy_lag",
    better="depends",
)

UPDATE_SUCCESS = Metric(
    name="optimiser/update_success",
    title="Updates that were applied",
    unit="share",
    kind="health",
    meaning="Share of optimiser steps that were not skipped, as for a gradient that is not finite.",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("optimiser/grad_norm",),
)

LOSS_SCALE = Metric(
    name="optimiser/loss_scale",
    title="Loss scale",
    unit="ratio",
    kind="health",
    meaning="What mixed precision multiplies the loss by so that small gradients survive float16."
    " It is halved whenever a gradient overflows: halved again and again, updates are skipped one"
    " after the other.",
    formula="s <- s / 2 on overflow, 2 s after some thousand steps without one",
    better="steady",
    possible=NOT_NEGATIVE,
    see_also=("optimiser/grad_norm", "optimiser/update_success"),
)

EXPERT_IMBALANCE = Metric(
    name="optimiser/expert_imbalance",
    title="Load of the busiest expert",
    unit="ratio",
    kind="health",
    meaning="How far the busiest expert of a mixture is above its fair share of tokens.",
    formula="max over experts of load / mean load, less 1",
    better="down",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("optimiser/router_loss",),
)

METRICS = (
    LOSS,
    LOSS_PART,
    EVAL_LOSS,
    RUN_LOSS,
    ROUTER_LOSS,
    GRAD_NORM,
    CLIPPED_GRAD_NORM,
    WEIGHT_NORM,
    LEARNING_RATE,
    UPDATES,
    TARGET_UPDATES,
    POLICY_LAG,
    CRITIC_GRAD_NORM,
    GRAD_NORM_MAX,
    CRITIC_LEARNING_RATE,
    POLICY_LAG_MAX,
    POLICY_LAG_SHARE,
    UPDATE_SUCCESS,
    LOSS_SCALE,
    EXPERT_IMBALANCE,
)
