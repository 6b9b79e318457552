"""A training loop that logs to Weights & Biases: read by a test with one import changed."""

import argparse
import random

import numpy as np
import wandb

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--clip_range", type=float, default=0.2)
    parser.add_argument("--total_timesteps", type=int, default=20_000)
    args = parser.parse_args()

    wandb.login()
    run = wandb.init(
        project="control",
        entity="me",
        name="ppo-1",
        tags=["baseline"],
        config=vars(args),
        save_code=True,
        settings=wandb.Settings(console="off"),
    )
    wandb.config.update({"env_id": "CartPole-v1"}, allow_val_change=True)
    wandb.config.seed = 3
    wandb.define_metric("global_step")
    wandb.define_metric("*", step_metric="global_step")
    random.seed(wandb.config["seed"])
    table = wandb.Table(columns=["episode", "return"])
    for update in range(40):
        step = (update + 1) * 500
        reward = min(200.0, 20 + 5 * update + random.random())
        wandb.log({"global_step": step, "approx_kl": 0.01}, commit=False)
        wandb.log({"episode_return": reward, "policy_loss": random.gauss(0, 0.01)})
        table.add_data(update, reward)
        if update % 10 == 0:
            values = [random.random() for _ in range(50)]
            wandb.log({"global_step": step, "advantages": wandb.Histogram(values)})
            wandb.log({"frame": wandb.Image(np.zeros((4, 4), np.uint8)), "global_step": step})
    wandb.log({"episodes": table})
    wandb.run.summary["best"] = reward
    wandb.alert(title="done", text="it learned", level=wandb.AlertLevel.INFO)
    wandb.finish()
