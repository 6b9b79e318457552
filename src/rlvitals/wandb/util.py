"""What scripts use of `wandb.util`."""

import secrets
import string

ALPHABET = string.ascii_lowercase + string.digits


def generate_id(length: int = 8) -> str:
    """Return a random id of lower-case letters and digits, as W&B makes them."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
