"""Training language models, and models that see, with rewards: GRPO, PSR, NSR, W-REINFORCE, PPO."""
