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

    learning_rate: float = option(1e-3, "maximum learning rate of Adam", item="LR")
    gamma: float = option(0.985, "discount factor per step", item="GAMMA")
    gae_lambda: float = option(0.95, "lambda of generalized advantage estimation", item="LAMBDA")
    clip_ratio: float = option(0.2, "clip range of the probability ratio around 1", item="EPS")
    value_clip_ratio: float = option(
        0.0, "clip range of the value function (0: not clipped)", item="X"
    )
    epochs: int = option(4, "number of epochs per rollout", item="N")
    rollout_length: int = option(128, "steps per environment in a rollout", item="N")
    minibatch_size: int = option(2048, "samples per minibatch", item="N")
    normalise_advantages: str = option(
        "minibatch",
        "samples over which advantages are normalized",
        choices=("minibatch", "rollout", "no"),
    )
    mask_actions: bool = option(
        True, "give actions excluded by `action_masks` of the environment probability 0"
    )
    normalise_observations: bool = option(
        True, "normalize observations by running mean and standard deviation"
    )
    normalise_rewards: bool = option(
        True, "divide rewards by the standard deviation of the discounted return"
    )
    value_coef: float = option(0.5, "coefficient of the value loss", item="C")
    max_grad_norm: float = option(0.5, "maximum norm of the gradient (0: not clipped)", item="NORM")
    entropy_coef: float = option(0.003, "coefficient of the entropy bonus", item="C")
    entropy_coef_final: float = option(
        -1.0, "its final value, after a linear schedule (below 0: constant)", item="C"
    )
    entropy_warmup_coef: float = option(
        0.0, "initial addition to the entropy coefficient", item="C"
    )
    entropy_warmup_updates: int = option(0, "updates until the addition has decayed to 0", item="N")
    entropy_min: float = option(0.0, "entropy below which the floor penalty applies", item="NATS")
    entropy_floor_coef: float = option(0.1, "coefficient of the floor penalty", item="C")
    kl_coef: float = option(0.0, "coefficient of the KL to the policy of the rollout", item="C")
    kl_adaptive: bool = option(
        False, "double or halve `kl_coef` to keep the KL near `kl_coef_target`"
    )
    kl_coef_target: float = option(
        0.01, "target KL per update of `kl_adaptive`, in nats", item="KL"
    )
    target_kl: float = option(
        0.0, "stop an update's epochs at 1.5 times this KL (0: never)", item="KL"
    )


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """The KL to the frozen policy that a warm start gave (`kl_regularization`)."""

    kl_ref_coef_initial: float = option(
        0.0, "initial coefficient of the KL to the reference", item="C"
    )
    kl_ref_coef_final: float = option(0.0, "final coefficient of the KL to the reference", item="C")
    kl_ref_decay_steps: int = option(
        1000, "optimizer steps between the initial and the final coefficient", item="N"
    )


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """The learning rate's schedule (`advanced_optimization.learning_rate_schedule`)."""

    type: str = option(
        "linear",
        "shape of the learning-rate schedule",
        choices=("constant", "linear", "cosine_annealing_with_warmup"),
    )
    warmup_steps: int = option(
        0, "warmup updates until the maximum learning rate (cosine)", item="N"
    )
    restart_period: int = option(100, "updates per cosine cycle", item="N")
    min_lr_ratio: float = option(0.05, "final learning rate relative to the maximum", item="SHARE")


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The policy and the value (`network`)."""

    hidden_sizes: tuple[int, ...] = option((64, 64), "sizes of the hidden layers", item="N")
    activation: str = option(
        "tanh", "activation function between layers", choices=("tanh", "relu", "gelu")
    )
    shared_scorer: bool = option(
        True,
        "score each replica of a cluster with one shared network, else all with one output layer",
    )
    shared_normaliser: bool = option(
        True, "normalize a feature by its moments over all replicas; if false, per replica, which "
        "maps a constant speed to 0",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TemperatureConfig:
    """Control of the sampling temperature by load and stagnation (`temperature_control`)."""

    enabled: bool = option(
        False, "control the temperature; if false, it stays at `base_temperature`"
    )
    base_temperature: float = option(1.0, "temperature without pressure", item="T")
    min_temperature: float = option(0.5, "minimum temperature", item="T")
    max_temperature: float = option(
        2.0, "maximum temperature; pulses may reach twice as much", item="T"
    )
    qps_sensitivity: float = option(
        0.1, "sensitivity of the temperature to request pressure", item="X"
    )
    latency_sensitivity: float = option(
        0.2, "sensitivity of the temperature to latency pressure", item="X"
    )
    target_qps: float = option(0.0, "request rate without pressure (0: estimated)", item="QPS")
    target_latency: float = option(0.0, "latency without pressure (0: estimated)", item="SECONDS")
    pressure_ema_alpha: float = option(
        0.1, "weight of the newest value in the moving average of pressure", item="ALPHA"
    )
    enable_pulse: bool = option(True, "raise the temperature in pulses when training stagnates")
    pulse_interval: int = option(8, "minimum steps between pulses", item="N")
    pulse_duration: int = option(3, "duration of a pulse in steps", item="N")
    pulse_magnitude: float = option(
        2.0, "increase during a pulse relative to the base temperature", item="X"
    )
    periodic_pulses: bool = option(
        False, "pulse every `pulse_interval` steps, independent of stagnation"
    )
    stagnation_window: int = option(16, "steps per mean in the stagnation test", item="N")
    stagnation_memory: int = option(
        5, "number of successive changes in the stagnation test", item="N"
    )
    stagnation_threshold: float = option(
        0.005, "relative change below which all changes count as stagnation", item="X"
    )


@dataclass(frozen=True, slots=True)
class SpikeConfig:
    """The reaction to gradient spikes (`advanced_optimization.adaptive_batch_size`)."""

    enable: bool = option(False, "adapt to spikes of the gradient norm")
    min: int = option(0, "minimum minibatch size (0: half of `minibatch_size`)", item="N")
    max: int = option(0, "maximum minibatch size (0: twice `minibatch_size`)", item="N")
    adaptation_rate: float = option(
        0.1, "relative change of the minibatch size per spike", item="SHARE"
    )
    direction: str = option("up", "direction of the change", choices=("up", "down"))
    spike_threshold: float = option(
        3.0, "gradient norm relative to the usual one that counts as a spike", item="X"
    )
    min_lr_factor: float = option(
        0.1, "minimum learning rate relative to its scheduled value", item="X"
    )


@dataclass(frozen=True, slots=True)
class StabilisationConfig:
    """The phase before learning (`statistics_stabilization`)."""

    statistics_stabilization_steps: int = option(
        0, "steps of the stabilization phase (0: none)", item="N"
    )
    stabilization_policy: str = option(
        "random",
        "acting policy in the phase: random or the current policy",
        choices=("random", "policy"),
    )
    stabilization_action_distribution: tuple[float, ...] = option(
        (), "weights of the random actions (none: uniform)", item="WEIGHT"
    )
    freeze_normalizers_during_stabilization: bool = option(
        False, "do not update normalizers during the phase; only the environments settle"
    )
    freeze_normalizers_after_stabilization: bool = option(
        False, "do not update normalizers after the phase, which fixes the scale of inputs"
    )
    collect_baseline_stats: bool = option(True, "log means of the phase as `baseline/*`")


@dataclass(frozen=True, slots=True)
class TracksConfig:
    """Numbers that a plot may want and a table may not (`monitoring.advanced_metrics`)."""

    track_policy_entropy: bool = option(
        True, "log the entropy at temperature 1 when actions are sampled at another temperature"
    )
    track_value_function_variance: bool = option(
        True, "log the variance of values over the rollout"
    )
    track_action_distribution: bool = option(
        True, "log shares, counts and per-environment histograms of actions"
    )
    track_kl_divergence: bool = option(
        True, "log KL, clip fraction and ratio of the first minibatch, and mean and maximum ratio"
    )
    track_advantage_statistics: bool = option(
        True, "log mean, minimum and maximum of advantages before normalization"
    )


@dataclass(frozen=True, slots=True)
class TailConfig:
    """The slowest requests (`monitoring.tail_latency_tracking`); `cluster.window` of them count."""

    enable: bool = option(True, "log latency percentiles")
    percentiles: tuple[int, ...] = option((90, 95, 99), "logged percentiles", item="P")
    alert_threshold_p99: float = option(
        0.0,
        "99th percentile above which a warning and an event are issued (0: never)",
        item="SECONDS",
    )


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """Logging besides the run's own files (`monitoring`)."""

    metrics_export_enabled: bool = option(True, "write metric files under `<run>/metrics/`")
    metrics_export_format: str = option("csv", "file format", choices=("csv", "parquet"))
    metrics_export_interval: int = option(50, "rows per write", item="N")
    metrics_subsamples: int = option(
        200_000,
        "number of rows per kind kept in full; later rows are subsampled increasingly",
        item="N",
    )
    tensorboard_enabled: bool = option(True, "write event files under `<run>/tensorboard/`")
    tensorboard_port: int = option(6006, "port in the printed TensorBoard command", item="N")
    progress_bar: bool = option(True, "show a progress bar in a terminal")
    wandb: bool = option(False, "also log to Weights & Biases, if installed")
    wandb_project: str = option("rlvitals", "project in Weights & Biases", item="NAME")
    advanced_metrics: TracksConfig = TracksConfig()
    tail_latency_tracking: TailConfig = TailConfig()


@dataclass(frozen=True, slots=True)
class WarmStartConfig:
    """The initial policy (`warm_start`)."""

    skip_warmstart: bool = option(False, "start from random weights")
    demo_policies: tuple[str, ...] = option(
        ("lor/speed",), "schedulers whose decisions are imitated", item="NAME"
    )
    demo_steps: int = option(700, "steps per scheduler and load, in 16 clusters", item="N")
    demo_loads: tuple[float, ...] = option(
        (0.5, 1.0, 1.2), "loads of the demonstrations relative to the cluster's load", item="X"
    )
    demo_path: str = option("", "file of demonstrations collected earlier", item="FILE")
    bc_epochs: int = option(3, "epochs over the demonstrations", item="N")
    bc_batch_size: int = option(256, "decisions per optimizer step", item="N")
    bc_learning_rate: float = option(5e-4, "learning rate of Adam", item="LR")
    bc_noise: float = option(
        0.01, "standard deviation of noise added to normalized states", item="X"
    )
    bc_holdout: float = option(0.1, "share of decisions held out for measurement", item="SHARE")
    external_pretrain: str = option(
        "", "initial weights, from the warm start of another run", item="FILE"
    )
    hold_to_reference: bool = option(
        True, "keep the warm-started policy as a frozen reference and log the KL to it"
    )
    force_warmstart: bool = option(
        False, "repeat the warm start when a run resumes: resets the actor but not the schedules"
    )


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """Evaluation of the likeliest actions during training (`evaluation`)."""

    enable: bool = option(
        True, "evaluate clusters, and other environments if `held_out_episodes` is set"
    )
    interval: int = option(
        0, "environment steps between evaluations (0: a twentieth of the run)", item="N"
    )
    held_out_clusters: int = option(32, "number of evaluation clusters", item="N")
    held_out_decisions: int = option(
        384, "decisions per cluster; the first quarter is not counted", item="N"
    )
    baseline_scheduler: str = option(
        "lor", "baseline scheduler, evaluated once on the same requests", choices=SCHEDULERS
    )
    held_out_episodes: int = option(
        0, "evaluation episodes of an environment other than the cluster (0: none)", item="N"
    )

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

    enable: bool = option(True, "save checkpoints")
    interval: int = option(50_000, "environment steps between checkpoints", item="N")
    keep: int = option(3, "number of newest checkpoints to keep", item="N")
    keep_best: str = option(
        "auto", "metric whose best checkpoint is kept, a latency by its minimum (auto: the first "
        "available of `eval_latency`, `eval_return`, `ep_return`)", item="METRIC",
    )  # fmt: skip
    keep_every: int = option(
        0, "keep the first checkpoint after every multiple of this many steps (0: none)", item="N"
    )
    keep_healthy: bool = option(True, "keep the last checkpoint with a healthy diagnosis")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Environment, length and output folder (`training`)."""

    env: str = option("rlvitals/Cluster-v0", "id of the Gymnasium environment", item="ID")
    num_envs: int = option(64, "number of parallel environments", item="N")
    processes: bool = option(False, "run each environment in its own process")
    total_steps: int = option(1_000_000, "total number of environment steps", item="N")
    chunk_mode: bool = option(False, "train in chunks, each with its own checkpoint, log and entry")
    chunk_size: int = option(5000, "requests (environment steps) per chunk", item="N")
    seed: int = option(0, "random seed of weights, actions and environments", item="N")
    threads: int = option(1, "number of torch threads; one is fastest for small networks", item="N")
    output_dir: str = option("outputs/ppo", "folder of the run", item="FOLDER")
    diagnose_seconds: float = option(
        30.0, "minimum seconds between live diagnoses (0: none)", item="SECONDS"
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
