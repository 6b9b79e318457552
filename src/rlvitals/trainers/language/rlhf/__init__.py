"""RLHF by proximal policy optimisation: a causal language model against a reward."""
