"""What a person may set of a PPO training, section by section."""

from dataclasses import dataclass

from rlvitals import option


@dataclass(frozen=True, slots=True)
class PPOConfig:
    """The algorithm (`ppo_config`)."""

    learning_rate: float = option(3e-4, "Adam's learning rate at its highest", item="LR")
    gamma: float = option(0.99, "discount of a step", item="GAMMA")
    gae_lambda: float = option(0.95, "decay of the advantage estimate", item="LAMBDA")
    clip_ratio: float = option(0.2, "the ratio is clipped at 1 -/+ this", item="EPS")
    value_clip_ratio: float = option(
        0.2, "how far a value may move in an update (0: any)", item="X"
    )
    epochs: int = option(4, "passes over a rollout", item="N")
    rollout_length: int = option(128, "steps of each environment in a rollout", item="N")
    minibatch_size: int = option(256, "rows of a minibatch", item="N")
    normalise_advantages: str = option(
        "minibatch", "over which rows advantages get mean 0", choices=("minibatch", "rollout", "no")
    )
    normalise_observations: bool = option(True, "by running moments")
    normalise_rewards: bool = option(True, "by the deviation of the discounted return")
    value_coef: float = option(0.5, "weight of the value loss", item="C")
    max_grad_norm: float = option(0.5, "the gradient is clipped to this norm (0: not)", item="NORM")
    entropy_coef: float = option(0.0, "weight of the entropy", item="C")
    entropy_coef_final: float = option(-1.0, "what it goes to, straight (below 0: stays)", item="C")
    entropy_warmup_coef: float = option(0.0, "what is added to it at first", item="C")
    entropy_warmup_updates: int = option(0, "updates until that is gone", item="N")
    entropy_min: float = option(0.0, "nats below which a term pulls the entropy up", item="NATS")
    entropy_floor_coef: float = option(0.1, "weight of that term", item="C")
    kl_coef: float = option(0.0, "weight of the KL to the policy that collected", item="C")
    kl_adaptive: bool = option(False, "double or halve it to hold `kl_target`")
    kl_target: float = option(0.01, "KL of an update that it aims at, in nats", item="KL")
    target_kl: float = option(0.0, "end the epochs at 1.5 times this KL (0: never)", item="KL")


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """The KL to the frozen policy that a warm start gave (`kl_regularization`)."""

    kl_ref_coef_initial: float = option(0.0, "its weight at first", item="C")
    kl_ref_coef_final: float = option(0.0, "its weight in the end", item="C")
    kl_ref_decay_steps: int = option(1000, "steps of the optimiser in between", item="N")


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """How the learning rate goes on (`advanced_optimization.learning_rate_schedule`)."""

    type: str = option(
        "constant", "its shape", choices=("constant", "linear", "cosine_annealing_with_warmup")
    )
    warmup_steps: int = option(0, "updates until it is at its highest (cosine)", item="N")
    restart_period: int = option(100, "updates of one cosine", item="N")
    min_lr_ratio: float = option(0.0, "the share of the highest that it ends at", item="SHARE")


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The policy and the value (`network`)."""

    hidden_sizes: tuple[int, ...] = option((64, 64), "widths of the hidden layers", item="N")
    activation: str = option("tanh", "between the layers", choices=("tanh", "relu", "gelu"))
    shared_scorer: bool = option(
        True, "one network scores each replica of a cluster; else one for all of them at once"
    )
