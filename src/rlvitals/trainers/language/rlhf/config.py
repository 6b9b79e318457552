"""Settings of RLHF training: its own section, and the sections of language training."""

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
        "folder of the run; may contain {vlm}, {dataset}, {subset}, {seed}",
        item="DIR",
    )
    seed: int = option(2025, "random seed of weights, data order and sampling", item="SEED")
    total_episodes: int = option(10_000, "total number of responses", item="N")
    batch_size: int = option(64, "responses per update, over all processes", item="N")
    num_ppo_epochs: int = option(4, "epochs over the responses of an update", item="N")
    num_mini_batches: int = option(1, "minibatches (optimizer steps) per epoch", item="N")
    forward_batch_size: int = option(
        0, "responses per forward pass and process (0: a minibatch)", item="N"
    )
    lr: float = option(3e-6, "maximum learning rate of Adam", item="LR")
    value_lr: float = option(
        0.02,
        "learning rate of the value head: the maximum change of a value per optimizer step",
        item="LR",
    )
    lr_schedule: str = option(
        "linear", "learning-rate schedule: linear to 0, or constant", choices=("linear", "constant")
    )
    max_grad_norm: float = option(1.0, "maximum norm of the gradient (0: not clipped)", item="NORM")

    response_length: int = option(53, "maximum tokens per response", item="N")
    temperature: float = option(0.7, "sampling temperature", item="X")
    missing_eos_penalty: float = option(
        0.0, "penalty on the score of a truncated response", item="X"
    )
    reward_model: str = option(
        "", "sequence classifier with one label that scores prompt and response", item="NAME"
    )

    kl_coef: float = option(0.05, "initial coefficient of the KL to the reference", item="C")
    kl_controller: str = option(
        "fixed", "fixed or adaptive KL coefficient",
        choices=("fixed", "adaptive"),
    )  # fmt: skip
    kl_target: float = option(
        6.0, "target KL per response of the adaptive coefficient", item="NATS"
    )
    kl_horizon: int = option(
        10_000, "time scale of the adaptive coefficient in responses", item="N"
    )
    kl_estimator: str = option("k1", "estimator of the KL per token", choices=("k1", "k3"))

    gamma: float = option(1.0, "discount factor per token", item="GAMMA")
    lam: float = option(0.95, "lambda of generalized advantage estimation", item="LAMBDA")
    whiten_rewards: bool = option(False, "divide rewards of an update by their standard deviation")
    cliprange: float = option(0.2, "clip range of the probability ratio around 1", item="EPS")
    cliprange_value: float = option(0.2, "clip range of the value function", item="EPS")
    vf_coef: float = option(0.1, "coefficient of the value loss", item="C")
    target_kl: float = option(
        0.0, "stop an update's epochs at 1.5 times this KL (0: never)", item="NATS"
    )
    ratio_threshold: float = option(
        10.0, "skip minibatches whose mean ratio exceeds this (0: none)", item="R"
    )

    bf16: bool = option(False, "compute in bfloat16, with weights in float32")
    threads: int = option(
        0, "number of torch threads (0: one for tiny models, else the default of torch)", item="N"
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
