"""Train language and vision-language models with rewards: GRPO, PSR, NSR, W-REINFORCE, PPO."""
