"""TensorBoard event files, written: events to bytes."""
