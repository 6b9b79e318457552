"""rl_games' SAC, as commit 262cf202 of 2026 (2.0.0) writes it. The step is the frame."""

from rlvitals.metrics.catalogue import exploration, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.rl_games import (
    BY_EPOCH,
    FRAMES,
    SETTINGS,
    SHARED,
    SHARED_FAMILIES,
    UNDER,
)

MEAN = "mean of the epoch's gradient steps"

NAMES = Table(
    "rl-games-sac",
    "rl_games, SAC",
    keys={
        **SHARED,
        "losses/a_loss": Name(policy.ACTOR_LOSS, MEAN),
        "losses/c1_loss": Name(value.LOSS, f"squared error of the first critic, {MEAN}"),
        "losses/entropy": Name(exploration.ENTROPY, f"-log pi of sampled actions, {MEAN}"),
        "losses/alpha_loss": Name(exploration.ENTROPY_COEF_LOSS, MEAN),
        "info/alpha": Name(exploration.ENTROPY_COEF, f"SAC's alpha, {MEAN}"),
    },
    families=(
        *SHARED_FAMILIES,
        Family(r"losses/(c2)_loss", Name(value.CRITIC_LOSS, f"squared error, {MEAN}")),
    ),
    settings={
        **SETTINGS,
        "params/config/actor_lr": "learning_rate",
        "params/config/critic_tau": "tau",
        "params/config/batch_size": "minibatch_size",
        "params/config/replay_buffer_size": "buffer_size",
        "params/config/num_warmup_steps": "learning_starts",
    },
    settings_under=UNDER,
    step_unit=FRAMES,
    off_axis=BY_EPOCH,
    read_from="Denys88/rl_games 262cf202 (2.0.0): rl_games/algos_torch/sac_agent.py"
    " (update_critic, update_actor_and_alpha, train)",
)
