"""rl_games' SAC, as commit 262cf202 of 2026 (2.0.0) writes it. The step is the frame."""

from rlvitals.metrics.catalogue import exploration, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.rl_games import (
    BY_EPOCH,
    RL_GAMES_FAMILIES,
    RL_GAMES_KEYS,
    RL_GAMES_SETTINGS,
    RL_GAMES_SETTINGS_UNDER,
)

OVER_EPOCH_STEPS = "mean of the epoch's gradient steps"

NAMES = Table(
    "rl-games-sac",
    "rl_games, SAC",
    keys={
        **RL_GAMES_KEYS,
        "losses/a_loss": Name(policy.ACTOR_LOSS, OVER_EPOCH_STEPS),
        "losses/c1_loss": Name(
            value.LOSS, f"squared error of the first critic, {OVER_EPOCH_STEPS}"
        ),
        "losses/entropy": Name(
            exploration.ENTROPY, f"-log pi of sampled actions, {OVER_EPOCH_STEPS}"
        ),
        "losses/alpha_loss": Name(exploration.ENTROPY_COEF_LOSS, OVER_EPOCH_STEPS),
        "info/alpha": Name(exploration.ENTROPY_COEF, f"SAC's alpha, {OVER_EPOCH_STEPS}"),
    },
    families=(
        *RL_GAMES_FAMILIES,
        Family(r"losses/(c2)_loss", Name(value.CRITIC_LOSS, f"squared error, {OVER_EPOCH_STEPS}")),
    ),
    settings={
        **RL_GAMES_SETTINGS,
        "params/config/actor_lr": "learning_rate",
        "params/config/critic_tau": "tau",
        "params/config/batch_size": "minibatch_size",
        "params/config/replay_buffer_size": "buffer_size",
        "params/config/num_warmup_steps": "learning_starts",
    },
    settings_under=RL_GAMES_SETTINGS_UNDER,
    step_unit="frames",
    off_axis=BY_EPOCH,
    read_from="Denys88/rl_games 262cf202 (2.0.0): rl_games/algos_torch/sac_agent.py"
    " (update_critic, update_actor_and_alpha, train)",
)
