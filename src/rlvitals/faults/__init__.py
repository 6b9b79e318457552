"""Benchmark the diagnosis on training runs with injected faults."""
