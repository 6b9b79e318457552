"""Training stacks, built on the public API alone."""
