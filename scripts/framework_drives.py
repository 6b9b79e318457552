"""Call the logger of each language-RL framework as its trainer does, for 30 steps."""

import asyncio
import importlib
import logging
import os
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lone_files import Anything, Framework, Timer

STEPS = 30
ROW = {"actor/entropy": 0.5, "actor/grad_norm": 1.0}


def reward(step: int) -> float:
    """Return the reward of a step."""
    return step / STEPS


def drive_verl(tracking: Any) -> None:
    log = tracking.Tracking("p", "e", ["wandb", "console"], config={"trainer": {"lr": 1e-6}})
    for step in range(STEPS):
        log.log({"critic/rewards/mean": reward(step), **ROW}, step)
    log.finish()


def drive_trl(_: Any) -> None:
    import pandas as pd
    import wandb
    from transformers import TrainerControl, TrainerState, TrainingArguments
    from transformers.integrations import WandbCallback

    args = TrainingArguments("out", report_to=["wandb"], run_name="grpo", use_cpu=True)
    callback, control = WandbCallback(), TrainerControl()
    state = TrainerState(is_world_process_zero=True)
    for step in range(STEPS):
        state.global_step = step
        callback.on_log(args, state, control, logs={"reward": reward(step), "entropy": 0.5})
        frame = pd.DataFrame({"prompt": ["2+2"], "completion": ["4"], "reward": [1.0]})
        wandb.log({"completions": wandb.Table(dataframe=frame)})


def drive_openrlhf(logging_utils: Any) -> None:
    wandb = SimpleNamespace(org=None, project="p", group="g", run_name="r", key="")
    args = SimpleNamespace(logger=SimpleNamespace(wandb=wandb))
    log = logging_utils.WandbLogger(args)
    for step in range(STEPS):
        log.log_train(step, {"reward": reward(step), "generated_samples": ["a text", 1.0]})
        log.log_eval(step, {"score": 1.0})
    log.close()


def drive_prime(monitor: Any) -> None:
    config = SimpleNamespace(offline=True, project="p", entity=None, name="n", group=None, tags=[])
    log = object.__new__(monitor.WandbMonitor)
    log.config, log.logger = config, Anything()

    async def train() -> None:
        await log.init(Path())
        for step in range(STEPS):
            await log.log_metrics({"train/agg/effective/agent/reward/mean": reward(step)}, step)
        await log.finalize()

    asyncio.run(train())


def _slime_args() -> SimpleNamespace:
    import wandb

    suffix = hasattr(wandb.util, "generate_id")  # not in its newest releases
    return SimpleNamespace(
        use_wandb=True, wandb_mode="offline", wandb_key=None, wandb_random_suffix=suffix,
        wandb_group="g", rank=0, wandb_team=None, wandb_project="p", wandb_dir="wandb_dir",
        use_tensorboard=True, tb_project_name="p", tb_experiment_name="e", env_report=None,
        use_critic=False,
    )  # fmt: skip


def drive_slime(_: Any, __: Any, logging_utils: Any) -> None:
    args = _slime_args()
    logging_utils.init_tracking(args)
    for step in range(STEPS):
        logging_utils.log(
            args, {"rollout/step": step, "rollout/raw_reward": reward(step)}, "rollout/step"
        )
        logging_utils.log(args, {"train/step": 2 * step, "train/loss": 0.1}, "train/step")
    logging_utils.finish_tracking(args)


def drive_miles(_: Any, __: Any, ___: Any, tracking: Any) -> None:
    args = _slime_args()
    tracking.init_tracking(args)
    tracking.define_step_key_metric_group("agent", "agent/step")
    for step in range(STEPS):
        tracking.log(
            args, {"rollout/step": step, "rollout/raw_reward": reward(step)}, "rollout/step"
        )
    tracking.finish_tracking()


def drive_skyrl(tracking: Any) -> None:
    log = tracking.Tracking("p", "e", "wandb", config={"lr": 1e-6}, tags=["t"])
    for step in range(STEPS):
        log.log({"reward/avg_raw_reward": reward(step), **ROW}, step, commit=True)
        log.log_samples_to_table("eval/samples", ["a", "b"], [(1, "x")], step)
    log.log_exception(ValueError("a test"))


def drive_nemo(logger: Any) -> None:
    log = logger.Logger(
        {
            "log_dir": "logs", "wandb_enabled": True, "swanlab_enabled": False,
            "tensorboard_enabled": True, "mlflow_enabled": False, "monitor_gpus": False,
            "wandb": {"project": "p", "name": "n"}, "tensorboard": {},
        }
    )  # fmt: skip
    log.log_hyperparams({"grpo": {"num_prompts_per_step": 8}})
    for step in range(STEPS):
        log.log_metrics({"reward": reward(step), "loss": 0.1}, step, prefix="train")
        log.log_histogram([1.0, 2.0, 3.0], step, "lengths")
    log.finish()


def drive_roll(tracking: Any) -> None:
    log = tracking.create_tracker("wandb", {"lr": 1e-6}, project="p", name="n", log_dir="logs")
    for step in range(STEPS):
        log.log({"critic/rewards/mean@mean": reward(step), **ROW}, step)
    log.finish()


def drive_rllm(tracking: Any) -> None:
    log = tracking.Tracking("p", "e", ["wandb"], config={"rllm": {}})
    for step in range(STEPS):
        log.log({"critic/rewards/mean": reward(step), **ROW}, step)
    log.finish()


def drive_open_instruct(grpo_fast: Any) -> None:
    fields = {
        "with_tracking": True, "wandb_project": "p", "wandb_entity": "e", "run_name": "r",
        "wandb_group_name": None, "exp_name": "x", "world_size": 1, "load_ref_policy": False,
        "sequence_parallel_size": 1, "num_samples_per_prompt_rollout": 8,
        "vllm_num_engines": 1, "vllm_tensor_parallel_size": 1, "learning_rate": 1e-6,
    }  # fmt: skip
    args = make_dataclass("Args", list(fields))(**fields)
    others = [make_dataclass(name, [name])(1) for name in ("tokenizer", "model", "stream", "vllm")]
    grpo_fast.setup_experiment_tracking(args, *others)
    grpo_fast.maybe_save_checkpoint = lambda *_: 0.0
    grpo_fast.ray = Anything()  # an installed Ray refuses a stub's references
    policies = SimpleNamespace(models=[Anything()])
    for step in range(1, STEPS + 1):
        metrics = {"time/group_generation_max": 1.0, "_token_count": 1.0, "policy/entropy_avg": 0.5}
        lists = {"batch/prompt_lengths": [3, 4], "batch/response_lengths": [5, 6]}
        grpo_fast.ray_get_with_progress = lambda *_, m=metrics, a=lists, **__: ([(m, a)], 0)
        grpo_fast.one_training_step(
            args, args, args, policies, None, {"val/sequence_lengths": [1.0, 2.0],
            "scores": reward(step - 1)}, step, step, 100, 0.0, [1], 0.0, "", "", None, Anything(),
        )  # fmt: skip


def drive_pipelinerl(utils: Any, logging_: Any) -> None:
    wandb = SimpleNamespace(
        wandb_resume="always", wandb_workspace_root=None, wandb_id=None, wandb_entity_name=None,
        wandb_project_name="p", wandb_group="g", wandb_dir=None, tags=[],
    )  # fmt: skip
    run = utils.init_wandb(SimpleNamespace(wandb=wandb), Path("results"), {"lr": 1e-6})
    for step in range(STEPS):
        logging_.log_metrics(logging.getLogger("p"), step, {"rl/reward": reward(step)})
    run.finish()


@dataclass
class Experiment:
    """AReaL's settings, which its logger turns into a dictionary."""

    stats_logger: Any


def drive_areal(stats_logger: Any) -> None:
    wandb = SimpleNamespace(
        mode="offline", wandb_base_url="", wandb_api_key="", id_suffix="train", entity=None,
        project=None, name=None, job_type=None, group=None, notes=None, tags=None,
    )  # fmt: skip
    settings = SimpleNamespace(
        experiment_name="e", trial_name="t", fileroot="root", wandb=wandb,
        swanlab=SimpleNamespace(mode="disabled", project=None, name=None, api_key=None),
        trackio=SimpleNamespace(mode="disabled"), tensorboard=SimpleNamespace(path="tb"),
    )  # fmt: skip
    log = stats_logger.StatsLogger(
        Experiment(settings),
        SimpleNamespace(total_train_epochs=1, steps_per_epoch=9, total_train_steps=9),
    )
    log.print_stats = lambda _: None
    for step in range(STEPS):
        log.commit(0, step, step, {"ppo_actor/task_reward/avg": reward(step), "n__count": 3.0})
    log.start_time = 0.0
    log.close()


def drive_lightning(tracking: Any, adapter: Any) -> None:
    log = tracking.Tracking("p", "e", ["wandb"], config={"trainer": {}})
    for step in range(STEPS):
        adapter._upload_trace_merge_mismatches_to_wandb([{"rollout_id": "r"}], step)
        adapter._upload_compact_rollout_trajectories_to_wandb([{"reward": 1.0}], step)
        log.log({"training/reward": reward(step)}, step)
    log.finish()


def drive_tinker(ml_log: Any) -> None:
    os.environ["WANDB_API_KEY"] = "k" * 40
    log = ml_log.WandbLogger("p", {"lr": 1e-4}, None, "n")
    log.log_hparams({"batch": 8})
    for step in range(STEPS):
        log.log_metrics({"env/all/reward/total": reward(step)}, step)
    log.close()


def drive_verl_backend(tracking: Any) -> None:
    log = tracking.Tracking("p", "e", ["rlvitals", "console"], config={"trainer": {"lr": 1e-6}})
    for step in range(STEPS):
        log.log({"critic/rewards/mean": reward(step), **ROW}, step)
    log.finish()


def drive_rllm_backend(tracking: Any) -> None:
    log = tracking.Tracking("p", "e", ["rlvitals"], config={"rllm": {}})
    for step in range(STEPS):
        log.log({"critic/rewards/mean": reward(step), **ROW}, step)
    log.finish()


def drive_roll_backend(tracking: Any) -> None:
    log = tracking.create_tracker("rlvitals", {"exp_name": "e", "lr": 1e-6}, project="p")
    for step in range(STEPS):
        log.log({"critic/rewards/mean@mean": reward(step), **ROW}, step)
    log.finish()


def drive_rollout_functions(*modules: Any) -> None:
    """Hand slime's or miles' logging of rollouts to the functions that its flags name."""
    metrics, types = modules[-2:]
    path = "rlvitals.integrations.slime_rollouts.log_"
    args = SimpleNamespace(
        custom_rollout_log_function_path=f"{path}rollout", load_debug_rollout_data=True,
        custom_eval_rollout_log_function_path=f"{path}eval_rollout", log_passrate=False,
        wandb_always_use_train_step=False, reward_key=None, wandb_group="g",
    )  # fmt: skip
    metrics.load_function = lambda name: getattr(
        importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]
    )
    status = types.Sample.Status
    for step in range(STEPS):
        samples = [
            types.Sample(
                group_index=i // 2, prompt=f"{step}+{i // 2}", response="4", response_length=1,
                reward=reward(step), label="4", status=status.COMPLETED,
            )
            for i in range(4)
        ]  # fmt: skip
        metrics.log_rollout_data(step, args, samples, {"rollout/extra": 1.0}, 2.0)


VERL_FILE = {"verl.utils.tracking": "verl/utils/tracking.py"}
SLIME = "slime.observability"
MILES = "miles.utils.tracking_utils"
FRAMEWORKS = {
    "verl": Framework(
        "verl-project/verl", "1dda039b9c6311889a9c9a26040677e1254814f9", VERL_FILE, drive_verl,
        "critic/rewards/mean",
    ),
    "trl": Framework(
        "huggingface/trl", "f2cd57710ae345ea6428ae95363267fcf38a3dc8", {}, drive_trl,
        "train/reward",
    ),
    "OpenRLHF": Framework(
        "OpenRLHF/OpenRLHF", "3c3be6234e0cb353e76bb8019947db9dfe99fca7",
        {"openrlhf.utils.logging_utils": "openrlhf/utils/logging_utils.py"}, drive_openrlhf,
        "train/reward",
    ),
    "prime-rl": Framework(
        "PrimeIntellect-ai/prime-rl", "559b44772e471d1538537b8805cc77f3824a5e64",
        {"prime_rl.monitors.wandb.monitor": "src/prime_rl/monitors/wandb/monitor.py"}, drive_prime,
        "train/agg/effective/agent/reward/mean", ("verifiers",),
    ),
    "slime": Framework(
        "THUDM/slime", "624b824a898ab0ec1fcb4d373004c7f3852bf515",
        {
            f"{SLIME}.wandb_utils": "slime/observability/wandb_utils.py",
            f"{SLIME}.tensorboard_utils": "slime/observability/tensorboard_utils.py",
            f"{SLIME}.logging_utils": "slime/observability/logging_utils.py",
        },
        drive_slime, "rollout/raw_reward", values={"slime.utils.misc": {"SingletonMeta": type}},
    ),
    "miles": Framework(
        "radixark/miles", "31f1ca961a94cb860cec3b2dea34ec332bfa8f76",
        {
            f"{MILES}.wandb_utils": "miles/utils/tracking_utils/wandb_utils.py",
            f"{MILES}.tensorboard_utils": "miles/utils/tracking_utils/tensorboard_utils.py",
            f"{MILES}.base": "miles/utils/tracking_utils/base.py",
            f"{MILES}.tracking": "miles/utils/tracking_utils/tracking.py",
        },
        drive_miles, "rollout/raw_reward",
        values={
            "miles.utils.misc": {"SingletonMeta": type},
            "miles.utils.audit_utils.event_logger.logger": {
                "is_event_logger_initialized": lambda: False
            },
        },
    ),
    "SkyRL": Framework(
        "NovaSky-AI/SkyRL", "a9564572eb8e91076be43c1bd5e4615e3de17265",
        {"skyrl.train.utils.tracking": "skyrl/train/utils/tracking.py"}, drive_skyrl,
        "reward/avg_raw_reward", ("loguru",),
        values={"skyrl.train.config": {"get_config_as_dict": dict}},
    ),
    "RL": Framework(
        "NVIDIA-NeMo/RL", "7ea279abfbeb698b092856d0dab61e7cf39bc909",
        {"nemo_rl.utils.logger": "nemo_rl/utils/logger.py"}, drive_nemo, "train/reward",
        ("ray", "prometheus_client", "mlflow", "swanlab"),
    ),
    "ROLL": Framework(
        "alibaba/ROLL", "8eb27cc2dc34c4d1310b169d9b86d339004d811a",
        {"roll.utils.tracking": "roll/utils/tracking.py"}, drive_roll, "critic/rewards/mean",
    ),
    "rllm": Framework(
        "rllm-org/rllm", "9beb6e0f676a46d38858991fd79ac5f8e0b16d4c",
        {"rllm.utils.tracking": "rllm/utils/tracking.py"}, drive_rllm, "critic/rewards/mean",
    ),
    "open-instruct": Framework(
        "allenai/open-instruct", "e6c3044aa6201c8bfa4573c1b03142af599e730d",
        {"open_instruct.grpo_fast": "open_instruct/grpo_fast.py"}, drive_open_instruct, "scores",
        ("ray", "vllm", "deepspeed", "backoff"), first=1,
        values={
            "open_instruct.utils": {
                "maybe_get_beaker_config": lambda: None, "get_wandb_tags": list,
                "calculate_utilization_metrics": lambda **_: {},
            },
            "open_instruct.rubrics.evolving_rubric_step": {"RUBRIC_TABLE_KEY": "rubrics"},
            "open_instruct.rl_utils": {"Timer": Timer},
        },
    ),
    "PipelineRL": Framework(
        "ServiceNow/PipelineRL", "58d393458625ad63ed539f2dcd072c85700c557f",
        {
            "pipelinerl.utils": "pipelinerl/utils.py",
            "pipelinerl.finetune.logging_": "pipelinerl/finetune/logging_.py",
        },
        drive_pipelinerl, "rl/reward",
    ),
    "AReaL": Framework(
        "inclusionAI/AReaL", "4aef98d8d818af55b43621aaadba047ae10f4e77",
        {"areal.utils.stats_logger": "areal/utils/stats_logger.py"}, drive_areal,
        "ppo_actor/task_reward/avg", ("swanlab", "trackio"),
        values={"areal.version": {"version_info": SimpleNamespace(
            commit="c", branch="b", is_dirty=False, full_version_with_dirty_description="1")}},
    ),
    "agent-lightning": Framework(
        "microsoft/agent-lightning", "c632d8dd804103bd421c65208bc501952689039f",
        {"agentlightning.verl.rollout_adapter": "agentlightning/verl/rollout_adapter.py"},
        drive_lightning, "training/reward", ("tensordict", "verl"), also="verl",
    ),
    "tinker-cookbook": Framework(
        "thinking-machines-lab/tinker-cookbook", "9dfcc3a2cf44432d621a01005073dc6d76a1e87a",
        {"tinker_cookbook.utils.ml_log": "tinker_cookbook/utils/ml_log.py"}, drive_tinker,
        "env/all/reward/total", ("chz",), values={"chz": {"is_chz": lambda _: False}},
    ),
}  # fmt: skip
# The same files with the back-end called rlvitals, or with the functions that a flag names.
ROLLOUT_FILES = {
    "slime": ("slime.observability.rollout_metrics", "slime/observability/rollout_metrics.py"),
    "miles": ("miles.ray.rollout.metrics", "miles/ray/rollout/metrics.py"),
}
FRAMEWORKS |= {
    f"{name}:rlvitals": replace(FRAMEWORKS[name], drive=drive)
    for name, drive in (
        ("verl", drive_verl_backend), ("rllm", drive_rllm_backend), ("ROLL", drive_roll_backend)
    )
} | {
    f"{name}:rlvitals": replace(
        FRAMEWORKS[name], drive=drive_rollout_functions,
        files=dict([files, (f"{name}.utils.types", f"{name}/utils/types.py")]),
    )
    for name, files in ROLLOUT_FILES.items()
}  # fmt: skip
