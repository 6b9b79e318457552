"""PPO for schedulers and control, on any Gymnasium environment."""
