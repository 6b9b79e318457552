"""Rules about the log itself: numbers that cannot be, or that do not add up."""
