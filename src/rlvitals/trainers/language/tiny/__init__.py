"""Two models that are small enough to be made and trained on a CPU: one reads, one also sees."""
