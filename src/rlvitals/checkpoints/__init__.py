"""Save, verify and resume checkpoints: complete or absent, verified before use."""
