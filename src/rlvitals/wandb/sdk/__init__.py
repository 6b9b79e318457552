"""`wandb.sdk`: the names that training code takes from W&B's inner modules."""

from rlvitals.wandb import recorded as wandb_run
from rlvitals.wandb.session import finish, init, login, setup, teardown

__all__ = ["finish", "init", "login", "setup", "teardown", "wandb_run"]
