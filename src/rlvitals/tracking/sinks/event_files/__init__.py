"""Encode TensorBoard event files."""
