"""Formats of bytes that readers and sinks share."""
