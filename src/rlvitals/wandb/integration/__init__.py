"""`wandb.integration`: of other libraries, `sb3` is here."""
