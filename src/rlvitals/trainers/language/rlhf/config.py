"""Settings of an RLHF training: a section of its own, and the language sections."""

from dataclasses import dataclass, field

from rlvitals.lab import option
from rlvitals.trainers.language.config import (
    CheckpointingConfig,
    DataConfig,
    ModelConfig,
    MonitoringConfig,
    RewardsConfig,
)

RLHF_CONFIG_FILE = "rlhf_config.json"  # in the run's folder


@dataclass(frozen=True, slots=True)
class RLHFConfig:
    """PPO on responses: a reward for each, a price for each token that leaves the reference."""

    output_dir: str = option(
        "rlhf-ckpts/{vlm}-{seed}",
        "the run's folder; {vlm}, {dataset}, {subset}, {seed} are put in",
        item="DIR",
    )
    seed: int = option(2025, "of the weights, the data's order and the sampling", item="SEED")
    total_episodes: int = option(10_000, "responses of the whole training", item="N")
    batch_size: int = option(64, "responses of an update, over all processes", item="N")
    num_ppo_epochs: int = option(4, "passes over an update's responses", item="N")
    num_mini_batches: int = option(1, "optimizer steps of a pass", item="N")
    forward_batch_size: int = option(
        0, "responses of a forward pass on each process (0: a minibatch's)", item="N"
    )
    lr: float = option(3e-6, "learning rate of Adam, at its highest", item="LR")
    value_lr: float = option(
        0.02, "that of the value head: what a step moves a value by, at the most", item="LR"
    )
    lr_schedule: str = option(
        "linear", "how it goes on: to 0 at the end, or not", choices=("linear", "constant")
    )
    max_grad_norm: float = option(1.0, "the gradient is clipped to this norm (0: not)", item="NORM")

    response_length: int = option(53, "tokens of a response at the most", item="N")
    temperature: float = option(0.7, "of the sampling", item="X")
    missing_eos_penalty: float = option(
        0.0, "taken off the score of a response that was cut off", item="X"
    )
    reward_model: str = option(
        "", "a sequence classifier of one label that scores prompt and response", item="NAME"
    )

    kl_coef: float = option(0.05, "price of the KL to the reference, at first", item="C")
    kl_controller: str = option(
        "fixed", "whether the price moves, to hold the KL at its target",
        choices=("fixed", "adaptive"),
    )  # fmt: skip
    kl_target: float = option(6.0, "KL of a response that an adaptive price aims at", item="NATS")
    kl_horizon: int = option(10_000, "responses in which an adaptive price moves", item="N")
    kl_estimator: str = option("k1", "of the KL of a token", choices=("k1", "k3"))

    gamma: float = option(1.0, "discount of a token", item="GAMMA")
    lam: float = option(0.95, "of the generalised advantage estimates", item="LAMBDA")
    whiten_rewards: bool = option(False, "divide an update's rewards by their deviation")
    cliprange: float = option(0.2, "the ratio is clipped at 1 -/+ this", item="EPS")
    cliprange_value: float = option(0.2, "a value moves in an update by this at most", item="EPS")
    vf_coef: float = option(0.1, "weight of the value loss", item="C")
    target_kl: float = option(
        0.0, "an update ends where its KL is above 1.5 times this (0: never)", item="NATS"
    )
    ratio_threshold: float = option(
        10.0, "a minibatch whose mean ratio is above this is skipped (0: none)", item="R"
    )

    bf16: bool = option(False, "compute in bfloat16, with weights of float32")
    threads: int = option(
        0, "torch's threads (0: one for a tiny model, else torch's own)", item="N"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of an RLHF training."""

    rlhf: RLHFConfig = field(default_factory=RLHFConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    rewards: RewardsConfig = field(default_factory=RewardsConfig)
    checkpointing: CheckpointingConfig = field(default_factory=CheckpointingConfig)
    monitoring: MonitoringConfig = field(default_factory=MonitoringConfig)
