"""Rules about what the policy still tries."""
