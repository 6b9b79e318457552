"""Parsers of W&B's offline files."""
