"""Compare the estimates of `rlvitals train ... --plan` with measured updates.

Each model is planned and trained for a few updates in a process of its own, by one thread on the
CPU. Time is CPU time of updates after the first, so that other programs do not count. Memory is the
peak of resident memory beside what the process had before the model. Models of random weights
answer at full length, as the plan assumes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UPDATES = 4
COMMON = ("--threads", "1", "--report-to", "none", "--diagnose-seconds", "0", "--save-steps", "0",
          "--lr-scheduler-type", "constant")  # fmt: skip
# Width, inner width, layers, heads, vocabulary, and the image encoder's layers (0: none).
SIZES = {
    "text-20m": (384, 1024, 8, 6, 16_000, 0),
    "text-90m": (768, 2048, 12, 12, 8_000, 0),
    "vision-60m": (512, 1536, 10, 8, 8_000, 8),
}
MIDDLE = ("--batch-size", "8", "--num-generations", "4", "--max-completion-length", "32")
CASES = {
    "grpo tiny-lm": ("grpo", "--vlm-name", "tiny-lm"),
    "nsr tiny-vlm": ("nsr", "--vlm-name", "tiny-vlm"),
    "rlhf tiny-lm": ("rlhf", "--vlm-name", "tiny-lm"),
    "grpo text-20m": ("grpo", "--vlm-name", "text-20m", *MIDDLE, "--dataset-name", "sums"),
    "grpo text-90m, weights": (
        "grpo", "--vlm-name", "text-90m", *MIDDLE, "--dataset-name", "sums", "--lora", "false",
    ),
    "grpo text-90m, checkpointing": (
        "grpo", "--vlm-name", "text-90m", *MIDDLE, "--dataset-name", "sums",
        "--gradient-checkpointing",
    ),
    "nsr vision-60m": (
        "nsr", "--vlm-name", "vision-60m", *MIDDLE, "--dataset-name", "charts",
        "--chart-pixels", "160",
    ),
    "rlhf text-20m": (
        "rlhf", "--vlm-name", "text-20m", "--dataset-name", "sums", "--batch-size", "16",
        "--response-length", "32",
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=tuple(CASES), nargs="*", default=tuple(CASES))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measured(args.child, args.folder)))
        return
    print("| training | memory, planned | used | planned/used | update, planned | used | "
          "planned/used |")  # fmt: skip
    print("| --- " * 7 + "|")
    for case in args.case:
        print(row(case, child(case)), flush=True)


def child(case: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [sys.executable, __file__, "--child", case, "--folder", folder],
            check=False, capture_output=True, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    if process.returncode:
        sys.exit(f"{case}: {process.stderr[-3000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def row(case: str, result: dict[str, Any]) -> str:
    mib = 2.0**20
    memory, seconds = (result["memory"], result["seconds"])
    return (
        f"| {case} | {memory[0] / mib:,.0f} MiB | {memory[1] / mib:,.0f} MiB | "
        f"{memory[0] / memory[1]:.2f} | {seconds[0]:.3g} s | {seconds[1]:.3g} s | "
        f"{seconds[0] / seconds[1]:.2f} |"
    )


def measured(case: str, folder: Path) -> dict[str, Any]:
    """Plan and train; returns pairs of planned and used."""
    from rlvitals.cli import train
    from rlvitals.trainers.language.planning import estimate
    from rlvitals.trainers.language.program import Training as Modes
    from rlvitals.trainers.language.rlhf.program import Training as Rlhf

    algorithm, *options = CASES[case]
    name = options[1]
    if name in SIZES:
        options[1] = str(model(name, folder / name))
    updates = ("--max-steps", str(UPDATES))
    if algorithm == "rlhf":
        size = int(options[options.index("--batch-size") + 1]) if "--batch-size" in options else 64
        updates = ("--total-episodes", str(UPDATES * size))
    common = [option for option in COMMON if algorithm != "rlhf" or "scheduler" not in option]
    if algorithm == "rlhf":
        common.remove("constant")
    options += [*common, *updates, "--held-out", "0", "--output-dir", str(folder / "run")]
    trainer, config_file = train.read(algorithm, options)
    config = trainer.configure(algorithm, config_file)
    plan = estimate.plan(config, estimate.Stated())
    training = (Rlhf if algorithm == "rlhf" else Modes)(config)
    training.run()
    used = training.usage.measure()
    return {
        "memory": (plan.memory, used.memory), "seconds": (plan.seconds, used.cpu_seconds),
        "phases": {option.name: option.seconds for option in plan.phases},
    }  # fmt: skip


def model(name: str, folder: Path) -> Path:
    """Write a model of random weights that reads characters."""
    import transformers as hf

    from rlvitals.trainers.language.tiny import tokens, vlm

    width, inner, layers, heads, vocabulary, sight = SIZES[name]
    text = {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": vocabulary,
        "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "tie_word_embeddings": True,
    }  # fmt: skip
    if not sight:
        tokens.tokenizer().save_pretrained(folder)
        hf.LlamaForCausalLM(hf.LlamaConfig(**text)).save_pretrained(folder)
        return folder
    tokenizer = tokens.tokenizer((), vlm.SPECIAL_TOKENS)
    edge = {"longest_edge": 160}
    images = hf.Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    hf.Idefics3Processor(
        image_processor=images, tokenizer=tokenizer, chat_template=tokens.CHAT_TEMPLATE,
        image_seq_len=25,
    ).save_pretrained(folder)  # fmt: skip
    config = hf.Idefics3Config(
        vision_config={
            "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": sight,
            "num_attention_heads": heads, "image_size": 160, "patch_size": 16,
        },
        text_config={"model_type": "llama", **text}, scale_factor=2, pad_token_id=0,
        image_token_id=tokenizer.convert_tokens_to_ids(tokens.IMAGE_TOKEN),
    )  # fmt: skip
    hf.Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
