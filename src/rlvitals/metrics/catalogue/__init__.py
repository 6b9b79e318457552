"""The metrics, one module per family."""
