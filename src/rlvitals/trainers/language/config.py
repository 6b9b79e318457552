"""Settings of a language model's training, by section."""

from dataclasses import dataclass, field

from rlvitals.lab import option

# The folder of a run; {-mode} is "-nsr" and the like, and nothing for GRPO.
OUTPUT_DIR_TEMPLATE = "grpo-start-ckpts/{vlm}-prm-large-train-v2{-mode}-{seed}"
GRPO_MODE = "grpo"  # every sample is learned from, by its advantage


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Optimisation, generation and output folder (`training`)."""

    mode: str = option(
        GRPO_MODE,
        "training mode: which samples are used, with which sign",
        choices=("grpo", "psr", "nsr", "w-reinforce"),
    )
    output_dir: str = option(
        OUTPUT_DIR_TEMPLATE,
        "folder of the run; may contain {vlm}, {mode}, {-mode}, {dataset}, {subset}, {seed}",
        item="DIR",
    )  # fmt: skip
    seed: int = option(2025, "random seed of weights, data order and sampling", item="SEED")
    num_epochs: float = option(1.0, "number of epochs over the training data", item="N")
    max_steps: int = option(
        0, "number of optimizer steps; overrides `num_epochs` (0: by epochs)", item="N"
    )
    batch_size: int = option(4, "completions per forward pass and process", item="N")
    gradient_accumulation_steps: int = option(1, "forward passes per optimizer step", item="N")
    learning_rate: float = option(1e-5, "maximum learning rate", item="LR")
    lr_scheduler_type: str = option(
        "linear",
        "shape of the learning-rate schedule",
        choices=("linear", "cosine", "constant", "constant_with_warmup"),
    )
    warmup_steps: int = option(0, "warmup steps until the maximum learning rate", item="N")
    max_grad_norm: float = option(1.0, "maximum norm of the gradient (0: not clipped)", item="NORM")
    cliprange: float = option(0.2, "clip range of the probability ratio around 1", item="EPS")
    beta: float = option(
        0.0, "coefficient of the KL to the reference model (0: no reference model)", item="C"
    )
    num_iterations: int = option(1, "optimizer passes over each batch of completions", item="N")
    steps_per_generation: int = option(
        0, "forward passes per batch of completions (0: those of one optimizer step)", item="N"
    )
    loss_type: str = option(
        "dapo", "how the loss is averaged over tokens",
        choices=("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo"),
    )  # fmt: skip
    scale_rewards: str = option(
        "group",
        "standard deviation that divides the advantages of GRPO",
        choices=("group", "batch", "none"),
    )
    temperature: float = option(1.0, "sampling temperature", item="X")
    max_completion_length: int = option(768, "maximum tokens per completion", item="N")
    mask_truncated_completions: bool = option(False, "exclude truncated completions from the loss")
    gradient_checkpointing: bool = option(
        False, "recompute activations in the backward pass to save memory"
    )
    bf16: bool = option(False, "train in bfloat16")
    threads: int = option(
        0, "number of torch threads (0: one for tiny models, else the default of torch)", item="N"
    )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The policy (`model`)."""

    vlm_name: str = option(
        "tiny-vlm",
        "Hugging Face model, folder, alias such as qwen2-5-3b, or built-in tiny-vlm or tiny-lm",
        item="NAME",
    )
    dtype: str = option(
        "auto", "dtype of the weights; auto: as saved with adapters, else float32",
        choices=("auto", "float32", "bfloat16", "float16"),
    )  # fmt: skip
    lora: bool = option(True, "train low-rank adapters instead of the weights")
    lora_r: int = option(8, "rank of the adapters", item="N")
    lora_alpha: float = option(16.0, "alpha of the adapters: scale times rank", item="X")
    lora_dropout: float = option(0.05, "dropout of the adapters", item="SHARE")
    lora_targets: tuple[str, ...] = option(
        ("q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"),
        "layers with adapters", item="LAYER",
    )  # fmt: skip
    warm_start_steps: int = option(
        500, "supervised steps of a tiny model before training with rewards", item="N"
    )
    warm_start_noise: float = option(0.5, "share of wrong answers in the warm start", item="SHARE")


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Dataset and prompts (`data`)."""

    dataset_name: str = option(
        "charts",
        "folder, JSONL or Parquet file, Hugging Face dataset, or built-in charts or sums",
        item="NAME",
    )
    dataset_split: str = option("train", "split of the dataset used for training", item="NAME")
    subset_size: int = option(0, "number of samples used (0: all)", item="N")
    held_out: int = option(1024, "maximum number of samples held out for evaluation", item="N")
    image_pixels: int = option(
        0,
        "maximum number of pixels of an image; larger ones are downscaled (0: no limit)",
        item="N",
    )
    chart_pixels: int = option(
        48,
        "side length of drawn charts in pixels: 32 to 56 for tiny models, 160 or more for "
        "readable text",
        item="N",
    )
    prompt_template: str = option(
        "", "template with {query} for each question (none: that of the task)", item="TEXT"
    )
    chat: bool = option(False, "apply the chat template to text-only questions too")


@dataclass(frozen=True, slots=True)
class SignalConfig:
    """Selection of the samples to train on (`signal`)."""

    num_generations: int = option(4, "completions per prompt", item="G")
    reward_threshold: float = option(0.5, "minimum reward of a positive sample", item="R")
    threshold_on: str = option(
        "correctness", "reward compared with the threshold", choices=("correctness", "total")
    )
    lambda_psr: float = option(0.1, "weight of positive samples in w-reinforce", item="LAMBDA")
    normalise: str = option(
        "all", "tokens over which the loss is averaged", choices=("kept", "all")
    )
    skip_empty_steps: bool = option(
        False, "skip the optimizer step if all samples are filtered out"
    )


@dataclass(frozen=True, slots=True)
class RewardsConfig:
    """Reward functions and their weights (`rewards`)."""

    functions: tuple[str, ...] = option(
        (), "reward functions (none: those of the task)", item="NAME"
    )
    weights: tuple[float, ...] = option(
        (), "weights of the reward functions (none: 1 each)", item="WEIGHT"
    )
    correctness: str = option(
        "accuracy_reward", "reward function that defines a correct answer", item="NAME"
    )
    on_error: str = option(
        "skip", "on an exception in a reward function: skip that sample's reward, or stop training",
        choices=("skip", "stop"),
    )  # fmt: skip
    process_model: str = option("", "sentence encoder of process_style_reward", item="NAME")


@dataclass(frozen=True, slots=True)
class CheckpointingConfig:
    """Checkpoints (`checkpointing`)."""

    save_steps: int = option(50, "steps between checkpoints (0: none)", item="N")
    keep: int = option(3, "number of newest checkpoints to keep (0: all)", item="N")
    resume: bool = option(True, "resume from the newest complete checkpoint")


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """Logging and live diagnosis (`monitoring`)."""

    logging_steps: int = option(1, "steps between logged rows of metrics", item="N")
    report_to: tuple[str, ...] = option(
        ("tensorboard",),
        "trackers besides the run folder: tensorboard, wandb, or none",
        item="NAME",
    )
    logging_dir: str = option(
        "logs", "folder for TensorBoard files and debug.log, inside the run folder", item="DIR"
    )
    wandb_steps: int = option(10, "steps between rows sent to Weights & Biases", item="N")
    wandb_project: str = option("rlvitals", "project in Weights & Biases", item="NAME")
    wandb_entity: str = option("", "entity in Weights & Biases (none: your default)", item="NAME")
    run_name: str = option(
        "{mode}-{vlm}-{dataset}-{subset}-{seed}",
        "name of the run; placeholders as in `output_dir`",
        item="NAME",
    )
    log_completions: bool = option(True, "record completions with their rewards")
    completions_every: int = option(1, "rows between recorded completions", item="N")
    console_seconds: float = option(
        0.5,
        "minimum seconds between completions shown on the console (0: all); the log file has all",
        item="S",
    )
    progress_bar: bool = option(True, "show a progress bar on the console")
    diagnose_seconds: float = option(
        30.0, "minimum seconds between live diagnoses (0: none)",
        item="S",
    )  # fmt: skip
    plots_dir: str = option(
        "", "folder for plots and summary.txt at the end of the run (none: no plots)", item="DIR"
    )


@dataclass(frozen=True, slots=True)
class ChecksConfig:
    """Checks of a vision-language model during training (`checks`)."""

    image_check_steps: int = option(
        200, "steps between checks that correct answers depend on the image (0: none)", item="N"
    )
    image_check_questions: int = option(
        16, "training questions per check, each answered with two images", item="N"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a training."""

    training: TrainingConfig = field(default_factory=TrainingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    signal: SignalConfig = field(default_factory=SignalConfig)
    rewards: RewardsConfig = field(default_factory=RewardsConfig)
    checkpointing: CheckpointingConfig = field(default_factory=CheckpointingConfig)
    monitoring: MonitoringConfig = field(default_factory=MonitoringConfig)
    checks: ChecksConfig = field(default_factory=ChecksConfig)
