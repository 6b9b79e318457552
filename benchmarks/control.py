"""Measure the results of `rlvitals train ppo --env ID` with default settings.

Each training is the whole program, by one thread; each is judged by 100 episodes of its likeliest
actions that it never saw. Beside it: the score of PPO in RL Baselines3 Zoo's benchmark.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import fmean

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import evaluate, presets
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.program import Training

# https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/benchmark.md: mean and deviation.
ZOO = {
    "CartPole-v1": "500 ± 0", "Acrobot-v1": "-73.5 ± 18", "Pendulum-v1": "-172 ± 104",
    "LunarLander-v3": "242 ± 32 (v2)",
}  # fmt: skip


def trained(env: str, seed: int, folder: Path) -> tuple[float, int, float, str]:
    """The mean return of 100 episodes, steps, CPU seconds, and what the diagnosis says."""
    settings = {"training.env": env, "training.seed": seed, "training.output_dir": str(folder)}
    start_time = time.process_time()
    with redirect_stdout(StringIO()):
        Training(schema.load(Config, None, settings, below=presets.preset(env))).run()
    spent = time.process_time() - start_time
    made = evaluate.load(folder)
    played = evaluate.on_episodes(made, seed=10_000 + seed, episodes=100)
    diagnosis = rlvitals.diagnose(folder)
    alarms = [
        rule.name
        for rule, finding in diagnosis.findings
        if finding.severity > rlvitals.Severity.NOTE
    ]
    return (
        fmean(played.returns),
        made.step,
        spent,
        " ".join([diagnosis.verdict.word.value, *alarms]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (3)")
    args = parser.parse_args()
    print("| task | steps | CPU s | mean return | Zoo | diagnosis |")
    print("| --- " * 6 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for env in presets.KNOWN:
            each = [
                trained(env, seed, Path(folder) / f"{env}-{seed}") for seed in range(args.seeds)
            ]
            returns, steps, spent, verdicts = zip(*each, strict=True)
            scores = ", ".join(f"{value:.1f}" for value in returns)
            print(
                f"| {env} | {steps[0]:,} | {fmean(spent):.0f} | {scores} | {ZOO[env]} "
                f"| {', '.join(verdicts)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
