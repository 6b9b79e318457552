"""Settings of a PPO training, by section."""

from dataclasses import dataclass, field, fields

from rlvitals import UsageError
from rlvitals.lab import option
from rlvitals.trainers.ppo.cluster.config import (
    SCHEDULERS,
    ClusterConfig,
    CurriculumConfig,
    RewardConfig,
    ServingConfig,
)

MIN_EVAL_DECISIONS = 8  # of a cluster in an evaluation: 2 warm it up, 6 count


@dataclass(frozen=True, slots=True)
class PPOConfig:
    """The algorithm (`ppo_config`)."""

    learning_rate: float = option(1e-3, "Adam's learning rate at its highest", item="LR")
    gamma: float = option(0.985, "discount of a step", item="GAMMA")
    gae_lambda: float = option(0.95, "decay of the advantage estimate", item="LAMBDA")
    clip_ratio: float = option(0.2, "the ratio is clipped at 1 -/+ this", item="EPS")
    value_clip_ratio: float = option(
        0.0, "how far a value may move in an update (0: any)", item="X"
    )
    epochs: int = option(4, "passes over a rollout", item="N")
    rollout_length: int = option(128, "steps of each environment in a rollout", item="N")
    minibatch_size: int = option(2048, "rows of a minibatch", item="N")
    normalise_advantages: str = option(
        "minibatch", "over which rows advantages get mean 0", choices=("minibatch", "rollout", "no")
    )
    mask_actions: bool = option(
        True, "actions that the environment rules out (`action_masks`) have probability 0"
    )
    normalise_observations: bool = option(True, "by running moments")
    normalise_rewards: bool = option(True, "by the deviation of the discounted return")
    value_coef: float = option(0.5, "weight of the value loss", item="C")
    max_grad_norm: float = option(0.5, "the gradient is clipped to this norm (0: not)", item="NORM")
    entropy_coef: float = option(0.003, "weight of the entropy", item="C")
    entropy_coef_final: float = option(-1.0, "what it goes to, straight (below 0: stays)", item="C")
    entropy_warmup_coef: float = option(0.0, "what is added to it at first", item="C")
    entropy_warmup_updates: int = option(0, "updates until that is gone", item="N")
    entropy_min: float = option(0.0, "nats below which a term pulls the entropy up", item="NATS")
    entropy_floor_coef: float = option(0.1, "weight of that term", item="C")
    kl_coef: float = option(0.0, "weight of the KL to the policy that collected", item="C")
    kl_adaptive: bool = option(False, "double or halve it to hold `kl_coef_target`")
    kl_coef_target: float = option(
        0.01, "KL of an update that `kl_adaptive` aims at, in nats", item="KL"
    )
    target_kl: float = option(0.0, "end the epochs at 1.5 times this KL (0: never)", item="KL")


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """The KL to the frozen policy that a warm start gave (`kl_regularization`)."""

    kl_ref_coef_initial: float = option(0.0, "its weight at first", item="C")
    kl_ref_coef_final: float = option(0.0, "its weight in the end", item="C")
    kl_ref_decay_steps: int = option(1000, "steps of the optimiser in between", item="N")


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """The learning rate's schedule (`advanced_optimization.learning_rate_schedule`)."""

    type: str = option(
        "linear", "its shape", choices=("constant", "linear", "cosine_annealing_with_warmup")
    )
    warmup_steps: int = option(0, "updates until it is at its highest (cosine)", item="N")
    restart_period: int = option(100, "updates of one cosine", item="N")
    min_lr_ratio: float = option(0.05, "the share of the highest that it ends at", item="SHARE")


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The policy and the value (`network`)."""

    hidden_sizes: tuple[int, ...] = option((64, 64), "widths of the hidden layers", item="N")
    activation: str = option("tanh", "between the layers", choices=("tanh", "relu", "gelu"))
    shared_scorer: bool = option(
        True, "one network scores each replica of a cluster; else one for all of them at once"
    )
    shared_normaliser: bool = option(
        True, "with it, a feature is normalised by its moments over all replicas; else by those of"
        " the replica, where its speed, which is constant, is always 0",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TemperatureConfig:
    """Control of the sampling temperature by load and stagnation (`temperature_control`)."""

    enabled: bool = option(False, "lead it; else it stays at `base_temperature`")
    base_temperature: float = option(1.0, "temperature without any pressure", item="T")
    min_temperature: float = option(0.5, "it is never below", item="T")
    max_temperature: float = option(2.0, "nor above, but for a pulse: twice that", item="T")
    qps_sensitivity: float = option(0.1, "how much pressure of requests lowers it", item="X")
    latency_sensitivity: float = option(0.2, "how much pressure of latency lowers it", item="X")
    target_qps: float = option(0.0, "requests per second without pressure (0: learned)", item="QPS")
    target_latency: float = option(
        0.0, "seconds of latency without pressure (0: learned)", item="SECONDS"
    )
    pressure_ema_alpha: float = option(0.1, "weight of the newest pressure", item="ALPHA")
    enable_pulse: bool = option(True, "explore in pulses where nothing changes")
    pulse_interval: int = option(8, "steps between two pulses at least", item="N")
    pulse_duration: int = option(3, "steps of a pulse", item="N")
    pulse_magnitude: float = option(2.0, "times the base is added in a pulse", item="X")
    periodic_pulses: bool = option(False, "pulse every `pulse_interval` steps, whatever happens")
    stagnation_window: int = option(16, "steps of which means are compared", item="N")
    stagnation_memory: int = option(5, "changes of these means that are looked at", item="N")
    stagnation_threshold: float = option(
        0.005, "relative change that none of them reaches where nothing changes", item="X"
    )


@dataclass(frozen=True, slots=True)
class SpikeConfig:
    """The reaction to gradient spikes (`advanced_optimization.adaptive_batch_size`)."""

    enable: bool = option(False, "react to spikes of the gradient's norm")
    min: int = option(0, "rows of a minibatch at least (0: half of `minibatch_size`)", item="N")
    max: int = option(0, "rows of a minibatch at most (0: twice `minibatch_size`)", item="N")
    adaptation_rate: float = option(0.1, "share that a spike changes them by", item="SHARE")
    direction: str = option("up", "where a spike moves the minibatch", choices=("up", "down"))
    spike_threshold: float = option(3.0, "times the usual norm that is a spike", item="X")
    min_lr_factor: float = option(0.1, "the learning rate is not cut below this share", item="X")


@dataclass(frozen=True, slots=True)
class StabilisationConfig:
    """The phase before learning (`statistics_stabilization`)."""

    statistics_stabilization_steps: int = option(0, "steps of it (0: none)", item="N")
    stabilization_policy: str = option(
        "random", "who acts: at random, or the policy as it is", choices=("random", "policy")
    )
    stabilization_action_distribution: tuple[float, ...] = option(
        (), "weights of the random actions, one for each (none: even)", item="WEIGHT"
    )
    freeze_normalizers_during_stabilization: bool = option(
        False, "the normalisers learn nothing in it: the environments settle alone"
    )
    freeze_normalizers_after_stabilization: bool = option(
        False, "they learn nothing after it: what a number means stays the same"
    )
    collect_baseline_stats: bool = option(True, "log the means of the phase as `baseline/*`")


@dataclass(frozen=True, slots=True)
class TracksConfig:
    """Numbers that a plot may want and a table may not (`monitoring.advanced_metrics`)."""

    track_policy_entropy: bool = option(
        True, "the entropy at temperature 1, where actions are drawn at another"
    )
    track_value_function_variance: bool = option(True, "the variance of values over the rollout")
    track_action_distribution: bool = option(
        True, "shares and counts of the actions, and their histograms over the environments"
    )
    track_kl_divergence: bool = option(
        True, "KL, clip fraction and ratio of the first minibatch, the mean and the largest ratio"
    )
    track_advantage_statistics: bool = option(
        True, "mean, least and most of the advantages before they are whitened"
    )


@dataclass(frozen=True, slots=True)
class TailConfig:
    """The slowest requests (`monitoring.tail_latency_tracking`); `cluster.window` of them count."""

    enable: bool = option(True, "log the percentiles")
    percentiles: tuple[int, ...] = option((90, 95, 99), "which: 90, 95 and 99 are told", item="P")
    alert_threshold_p99: float = option(
        0.0, "a 99th percentile above it is a warning and an event (0: never)", item="SECONDS"
    )


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """Logging besides the run's own files (`monitoring`)."""

    metrics_export_enabled: bool = option(True, "write rows under `<run>/metrics/`")
    metrics_export_format: str = option("csv", "as what", choices=("csv", "parquet"))
    metrics_export_interval: int = option(50, "rows that are written together", item="N")
    metrics_subsamples: int = option(
        200_000, "rows of a kind that are kept in full; after them fewer and fewer", item="N"
    )
    tensorboard_enabled: bool = option(True, "write event files under `<run>/tensorboard/`")
    tensorboard_port: int = option(6006, "the port in the command that shows them", item="N")
    progress_bar: bool = option(True, "one line that shows how far it is, in a terminal")
    wandb: bool = option(False, "pass everything on to Weights & Biases, where installed")
    wandb_project: str = option("rlvitals", "its project", item="NAME")
    advanced_metrics: TracksConfig = TracksConfig()
    tail_latency_tracking: TailConfig = TailConfig()


@dataclass(frozen=True, slots=True)
class WarmStartConfig:
    """The initial policy (`warm_start`)."""

    skip_warmstart: bool = option(False, "begin with random weights")
    demo_policies: tuple[str, ...] = option(
        ("lor/speed",), "schedulers whose decisions are cloned", item="NAME"
    )
    demo_steps: int = option(700, "steps of each at each load, in 16 clusters", item="N")
    demo_loads: tuple[float, ...] = option(
        (0.5, 1.0, 1.2), "times the load that they decide at", item="X"
    )
    demo_path: str = option("", "demonstrations that were collected before", item="FILE")
    bc_epochs: int = option(3, "passes over them", item="N")
    bc_batch_size: int = option(256, "decisions of a step", item="N")
    bc_learning_rate: float = option(5e-4, "Adam's", item="LR")
    bc_noise: float = option(0.01, "deviation of what is added to normalised states", item="X")
    bc_holdout: float = option(0.1, "share of decisions kept to measure with", item="SHARE")
    external_pretrain: str = option(
        "", "weights to begin from instead, as another run's warm start left them", item="FILE"
    )
    hold_to_reference: bool = option(True, "freeze the warm start: the KL to it is logged")
    force_warmstart: bool = option(
        False, "warm start a run that goes on, too: its actor begins again, its schedules do not"
    )


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """Evaluation of the likeliest actions during training (`evaluation`)."""

    enable: bool = option(
        True, "evaluate: a cluster always, another environment by `held_out_episodes`"
    )
    interval: int = option(
        0, "environment steps between two evaluations (0: a twentieth of the run)", item="N"
    )
    held_out_clusters: int = option(32, "clusters that it schedules for", item="N")
    held_out_decisions: int = option(384, "of each; the first quarter does not count", item="N")
    baseline_scheduler: str = option(
        "lor", "the scheduler that meets the same requests, once", choices=SCHEDULERS
    )
    held_out_episodes: int = option(0, "of an environment that is no cluster (0: none)", item="N")

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        clusters, decisions = self.held_out_clusters, self.held_out_decisions
        if clusters < 1 or decisions < MIN_EVAL_DECISIONS:
            raise UsageError(
                f"{clusters} clusters for {decisions} decisions show nothing",
                where="evaluation",
                hint=f"1 and {MIN_EVAL_DECISIONS} at least; enable=false for no evaluation",
            )


@dataclass(frozen=True, slots=True)
class AdvancedConfig:
    """Schedules and adaptive minibatches (`advanced_optimization`)."""

    learning_rate_schedule: ScheduleConfig = ScheduleConfig()
    adaptive_batch_size: SpikeConfig = SpikeConfig()


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Checkpoints and their retention (`checkpointing`)."""

    enable: bool = option(True, "save at all")
    interval: int = option(50_000, "environment steps between two checkpoints", item="N")
    keep: int = option(3, "newest ones kept", item="N")
    keep_best: str = option(
        "auto", "the one with the most of this is kept, of a latency with the least (auto: the"
        " first that there is of `eval_latency`, `eval_return`, `ep_return`)", item="METRIC",
    )  # fmt: skip
    keep_every: int = option(
        0, "the first after each so many steps is kept for good (0: none)", item="N"
    )
    keep_healthy: bool = option(True, "the last one with a healthy diagnosis is kept")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Environment, length and output folder (`training`)."""

    env: str = option("rlvitals/Cluster-v0", "a Gymnasium id", item="ID")
    num_envs: int = option(64, "environments at once", item="N")
    processes: bool = option(False, "each environment in a process of its own")
    total_steps: int = option(1_000_000, "environment steps of the whole run", item="N")
    chunk_mode: bool = option(
        False, "train in chunks, each with a checkpoint, a log and an entry of its own"
    )
    chunk_size: int = option(5000, "requests of a chunk: environment steps", item="N")
    seed: int = option(0, "of weights, actions and environments", item="N")
    threads: int = option(1, "torch's threads: small networks are fastest with one", item="N")
    output_dir: str = option("outputs/ppo", "the run's folder", item="FOLDER")
    diagnose_seconds: float = option(
        30.0, "seconds between two live diagnoses at least (0: none)", item="SECONDS"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a training, by section."""

    training: TrainingConfig = field(default_factory=TrainingConfig)
    ppo_config: PPOConfig = field(default_factory=PPOConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    kl_regularization: ReferenceConfig = field(default_factory=ReferenceConfig)
    cluster: ServingConfig = field(default_factory=ServingConfig)
    reward_config: RewardConfig = field(default_factory=RewardConfig)
    curriculum_learning: CurriculumConfig = field(default_factory=CurriculumConfig)
    warm_start: WarmStartConfig = field(default_factory=WarmStartConfig)
    statistics_stabilization: StabilisationConfig = field(default_factory=StabilisationConfig)
    temperature_control: TemperatureConfig = field(default_factory=TemperatureConfig)
    advanced_optimization: AdvancedConfig = field(default_factory=AdvancedConfig)
    checkpointing: CheckpointConfig = field(default_factory=CheckpointConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    monitoring: MonitoringConfig = field(default_factory=MonitoringConfig)

    @property
    def environment(self) -> ClusterConfig:
        """The cluster with its reward and its curriculum."""
        served = {
            setting.name: getattr(self.cluster, setting.name) for setting in fields(self.cluster)
        }
        return ClusterConfig(
            **served, reward=self.reward_config, curriculum=self.curriculum_learning
        )
