"""What the reader of W&B's files is made of."""
