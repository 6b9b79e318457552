"""Rules about what is paid."""
