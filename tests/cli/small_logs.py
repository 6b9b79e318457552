"""Small logs in a format that people have, written where a test needs them."""

import numpy as np


def write(folder, rises=True, rows=60, kl=0.01):
    folder.mkdir(parents=True, exist_ok=True)
    steps = np.arange(1, rows + 1) * 2048
    wave = 3 * np.sin(np.arange(rows))
    returns = (np.linspace(20, 450, rows) if rises else np.full(rows, 40.0)) + wave
    head = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,train/clip_fraction,my/score\n"
    lines = (
        f"{step},{value:.3f},{kl},{2 * kl},{value / 500:.4f}\n"
        for step, value in zip(steps, returns, strict=True)
    )
    (folder / "progress.csv").write_text(head + "".join(lines))
    return folder
