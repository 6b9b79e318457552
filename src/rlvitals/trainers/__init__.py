"""Training stacks of our own: each sees `import rlvitals` alone."""
