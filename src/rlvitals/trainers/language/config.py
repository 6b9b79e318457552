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
        "which samples are learned from, and how",
        choices=("grpo", "psr", "nsr", "w-reinforce"),
    )
    output_dir: str = option(
        OUTPUT_DIR_TEMPLATE,
        "the run's folder; {vlm}, {mode}, {-mode}, {dataset}, {subset}, {seed} are put in",
        item="DIR",
    )  # fmt: skip
    seed: int = option(2025, "of the weights, the data's order and the sampling", item="SEED")
    num_epochs: float = option(1.0, "passes over the training samples", item="N")
    max_steps: int = option(
        0, "optimizer steps, in place of the epochs (0: as the epochs)", item="N"
    )
    batch_size: int = option(4, "completions of a forward pass on each process", item="N")
    gradient_accumulation_steps: int = option(1, "forward passes of an optimizer step", item="N")
    learning_rate: float = option(1e-5, "the optimizer's, at its highest", item="LR")
    lr_scheduler_type: str = option(
        "linear", "how it goes on", choices=("linear", "cosine", "constant", "constant_with_warmup")
    )
    warmup_steps: int = option(0, "steps until it is at its highest", item="N")
    max_grad_norm: float = option(1.0, "the gradient is clipped to this norm (0: not)", item="NORM")
    cliprange: float = option(0.2, "the ratio is clipped at 1 -/+ this", item="EPS")
    beta: float = option(0.0, "weight of the KL to the reference model (0: none is held)", item="C")
    num_iterations: int = option(1, "passes over a generation", item="N")
    steps_per_generation: int = option(
        0, "forward passes that share a generation (0: those of one step)", item="N"
    )
    loss_type: str = option(
        "dapo", "how tokens are averaged",
        choices=("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo"),
    )  # fmt: skip
    scale_rewards: str = option(
        "group", "what divides GRPO's advantages", choices=("group", "batch", "none")
    )
    temperature: float = option(1.0, "of the sampling", item="X")
    max_completion_length: int = option(768, "tokens of a completion at the most", item="N")
    mask_truncated_completions: bool = option(False, "learn nothing from those that were cut off")
    gradient_checkpointing: bool = option(False, "compute again instead of keeping: less memory")
    bf16: bool = option(False, "train in bfloat16")
    threads: int = option(
        0, "torch's threads (0: one for a tiny model, else torch's own)", item="N"
    )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The policy (`model`)."""

    vlm_name: str = option(
        "tiny-vlm",
        "a model of Hugging Face, a folder, an alias as qwen2-5-3b; tiny-vlm, tiny-lm: made here",
        item="NAME",
    )
    dtype: str = option(
        "auto", "the weights' type; auto: their own under adapters, else float32",
        choices=("auto", "float32", "bfloat16", "float16"),
    )  # fmt: skip
    lora: bool = option(True, "train low-rank adapters, not the weights themselves")
    lora_r: int = option(8, "their rank", item="N")
    lora_alpha: float = option(16.0, "their scale, times the rank", item="X")
    lora_dropout: float = option(0.05, "share of their inputs that is dropped", item="SHARE")
    lora_targets: tuple[str, ...] = option(
        ("q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"),
        "the layers that have them", item="LAYER",
    )  # fmt: skip
    warm_start_steps: int = option(
        500, "supervised steps of a tiny model before it is trained with rewards", item="N"
    )
    warm_start_noise: float = option(0.5, "share of wrong answers among theirs", item="SHARE")


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Dataset and prompts (`data`)."""

    dataset_name: str = option(
        "charts",
        "a folder, a JSONL or Parquet file, a dataset of Hugging Face, or made here: charts, sums",
        item="NAME",
    )
    dataset_split: str = option("train", "the part of it that is trained on", item="NAME")
    subset_size: int = option(0, "samples of it (0: all)", item="N")
    held_out: int = option(
        1024, "samples that evaluation asks, at the most: none is trained on", item="N"
    )
    image_pixels: int = option(
        0, "images are made smaller to so many pixels (0: as they are)", item="N"
    )
    chart_pixels: int = option(
        48, "side of a drawn chart: 32 to 56 for a tiny model, 160 and more with words", item="N"
    )
    prompt_template: str = option(
        "", "the words around a question, with {query} in them (none: the task's)", item="TEXT"
    )
    chat: bool = option(
        False, "put plain questions in the model's chat template, as one about an image always is"
    )


@dataclass(frozen=True, slots=True)
class SignalConfig:
    """Selection of the samples to train on (`signal`)."""

    num_generations: int = option(4, "completions of a prompt", item="G")
    reward_threshold: float = option(0.5, "a sample with this reward or more is positive", item="R")
    threshold_on: str = option(
        "correctness", "the reward that is compared with it", choices=("correctness", "total")
    )
    lambda_psr: float = option(0.1, "weight of the positive samples in w-reinforce", item="LAMBDA")
    normalise: str = option(
        "all", "the tokens that the loss is a mean over", choices=("kept", "all")
    )
    skip_empty_steps: bool = option(
        False, "no optimizer step where all samples are filtered out: Adam's momentum moves none"
    )


@dataclass(frozen=True, slots=True)
class RewardsConfig:
    """Reward functions and their weights (`rewards`)."""

    functions: tuple[str, ...] = option(
        (), "reward functions (none: those of the task)", item="NAME"
    )
    weights: tuple[float, ...] = option((), "their weights (none: 1 each)", item="WEIGHT")
    correctness: str = option(
        "accuracy_reward", "the one that says whether an answer is right", item="NAME"
    )
    on_error: str = option(
        "skip", "what happens when one raises: that sample has no reward, or training ends",
        choices=("skip", "stop"),
    )  # fmt: skip
    process_model: str = option("", "a sentence encoder for process_style_reward", item="NAME")


@dataclass(frozen=True, slots=True)
class CheckpointingConfig:
    """Checkpoints (`checkpointing`)."""

    save_steps: int = option(50, "steps between checkpoints (0: none)", item="N")
    keep: int = option(3, "the newest that are kept (0: all)", item="N")
    resume: bool = option(True, "go on from the newest checkpoint that is whole")


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """Logging and live diagnosis (`monitoring`)."""

    logging_steps: int = option(1, "steps between rows of metrics", item="N")
    report_to: tuple[str, ...] = option(
        ("tensorboard",), "besides the run itself: tensorboard, wandb, or none", item="NAME"
    )
    logging_dir: str = option(
        "logs", "TensorBoard's files and debug.log, in the run's folder", item="DIR"
    )
    wandb_steps: int = option(10, "steps between two rows that Weights & Biases gets", item="N")
    wandb_project: str = option("rlvitals", "Weights & Biases' project", item="NAME")
    wandb_entity: str = option("", "its entity (none: your own)", item="NAME")
    run_name: str = option(
        "{mode}-{vlm}-{dataset}-{subset}-{seed}",
        "the run's name, filled in as `output_dir` is",
        item="NAME",
    )
    log_completions: bool = option(True, "record completions with their rewards")
    completions_every: int = option(
        1, "rows between two that completions are recorded of", item="N"
    )
    console_seconds: float = option(
        0.5,
        "between two generations that are shown on the console (0: show all); the file has all",
        item="S",
    )
    progress_bar: bool = option(True, "show one, on the console")
    diagnose_seconds: float = option(
        30.0, "judge the run as it goes, at most so often, and say what is found (0: never)",
        item="S",
    )  # fmt: skip
    plots_dir: str = option(
        "", "draw the run's pictures and summary.txt there at its end (none: draw none)", item="DIR"
    )


@dataclass(frozen=True, slots=True)
class ChecksConfig:
    """Checks of a vision-language model during training (`checks`)."""

    image_check_steps: int = option(
        200, "steps between checks that right answers depend on the image shown (0: none)", item="N"
    )
    image_check_questions: int = option(
        16, "training questions of such a check, each answered with two images", item="N"
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
