"""A run somewhere else: mirrored to another place, brought back, packed into one file."""
