"""What tests of whole programs share: small settings, and what is left of a run."""

import json
import re

from rlvitals.trainers import schema
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.program import Training

CARTPOLE = {
    "training.env": "CartPole-v1", "training.num_envs": 4, "training.total_steps": 800,
    "training.diagnose_seconds": 0.0, "network.hidden_sizes": [8], "ppo_config.epochs": 2,
    "ppo_config.rollout_length": 32, "ppo_config.minibatch_size": 64,
    "checkpointing.interval": 256, "monitoring.tensorboard_enabled": False,
    "evaluation.held_out_clusters": 2, "evaluation.held_out_decisions": 8,
    "evaluation.interval": 300,
}  # fmt: skip
CLUSTER = {
    **CARTPOLE, "training.env": "rlvitals/Cluster-v0", "cluster.window": 16, "cluster.horizon": 64,
    "warm_start.demo_steps": 12, "warm_start.bc_epochs": 2, "warm_start.demo_loads": [1.0],
}  # fmt: skip
# Everything that has a state.
ALL = {
    **CLUSTER, "temperature_control.enabled": True, "temperature_control.stagnation_window": 4,
    "temperature_control.stagnation_threshold": 0.5,
    "advanced_optimization.adaptive_batch_size.enable": True,
    "advanced_optimization.adaptive_batch_size.spike_threshold": 1.1,
    "advanced_optimization.learning_rate_schedule.type": "cosine_annealing_with_warmup",
    "advanced_optimization.learning_rate_schedule.warmup_steps": 2,
    "advanced_optimization.learning_rate_schedule.restart_period": 3,
    "kl_regularization.kl_ref_coef_initial": 0.3, "kl_regularization.kl_ref_decay_steps": 20,
    "ppo_config.kl_adaptive": True, "ppo_config.kl_coef": 0.1, "ppo_config.entropy_coef": 0.01,
    "ppo_config.entropy_coef_final": 0.0, "curriculum_learning.decisions": 400,
    "statistics_stabilization.statistics_stabilization_steps": 6, "training.chunk_mode": True,
    "reward_config.action_balance": 0.1, "cluster.queued_requests": 2,
    "training.chunk_size": 300, "cluster.failures.mean_time_to_failure": 2.0,
    "cluster.failures.mean_time_to_repair": 1.0,
}  # fmt: skip
NEVER_THE_SAME = ("manifest.json",)  # names, times and attempts
CLOCK = {"collect_seconds", "learn_seconds", "sps"}


def training(folder, said=CARTPOLE, **more):
    said = {**said, "training.output_dir": str(folder), **more}
    return Training(schema.load(Config, None, said))


def run(folder, said=CARTPOLE, **more):
    made = training(folder, said, **more)
    assert made.run() == "finished"
    return made


def last(folder):
    """The final checkpoint's bytes, by file."""
    newest = folder / (folder / "latest").read_text().strip()
    return {
        path.name: path.read_bytes()
        for path in sorted(newest.iterdir())
        if path.name not in NEVER_THE_SAME
    }


def progress(folder):
    return json.loads((folder / "training_progress.json").read_text())


def log(folder):
    """The lines of the log, without their times."""
    text = (folder / "ppo_training.log").read_text()
    return [re.sub(r"^\S+ \S+ [A-Z]+ ", "", line) for line in text.splitlines()]
