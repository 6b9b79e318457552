"""An experiment as Ray Tune lays it out; Ray is not needed for its files."""

import json


def write(folder, rates, seeds=(0, 1)):
    """Write a trial for each learning rate and seed."""
    folder.mkdir(parents=True)
    (folder / "experiment_state-2026-01-01_10-00-00.json").write_text('{"trial_data": []}')
    for rate in rates:
        for seed in seeds:
            trial = folder / f"PPO_CartPole_{rate}_{seed}"
            trial.mkdir()
            config = {"env": "CartPole-v1", "lr": rate, "seed": seed}
            (trial / "params.json").write_text(json.dumps(config))
            results = (
                {"training_iteration": n, "timesteps_total": 4000 * n, "config": config,
                 "episode_reward_mean": 20.0 + n, "timestamp": 1.7e9 + n}
                for n in range(1, 41)
            )  # fmt: skip
            (trial / "result.json").write_text("".join(f"{json.dumps(r)}\n" for r in results))
