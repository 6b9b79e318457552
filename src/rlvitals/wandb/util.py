"""The functions of `wandb.util` that scripts use."""

import secrets
import string


def generate_id(length: int = 8) -> str:
    """Return a random id of lower-case letters and digits, as W&B makes them."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(length))
