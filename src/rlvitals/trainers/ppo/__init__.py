"""PPO, its environments and what it needs."""
