"""agent-lightning: any agent's traces, trained by verl; verl's names beside its own."""

from dataclasses import replace

from rlvitals.metrics.catalogue import language, outcome, reward, rollouts
from rlvitals.metrics.frameworks import verl
from rlvitals.metrics.frameworks.key import Family, Name

NAMES = replace(
    verl.NAMES,
    framework="agent-lightning",
    title="agent-lightning",
    keys={
        **verl.NAMES.keys,
        # verl/rollout_adapter.py, get_train_data_batch, get_test_metrics
        "training/reward": Name(
            outcome.REWARD, "mean over rollouts; one without a reward counts as the fill value"
        ),
        "val/reward": Name(outcome.EVAL_REWARD, "mean over validation rollouts"),
        "response_length/training/avg_by_turn": Name(rollouts.TURN_LENGTH),
        "response_length/training/max_by_turn": Name(language.LENGTH_MAX, "of one turn"),
        "response_length/training/min_by_turn": Name(language.LENGTH_MIN, "of one turn"),
    },
    families=(
        Family(r"training/n_(zero_adv_groups)", Name(reward.GROUP_ZERO_STD_COUNT)),
        Family(r"training/n_sample_dropped/(.+)", Name(rollouts.DROPPED, "of the step")),
        Family(
            r"training/n_(skipped\w+|\w*mismatch\w*|unmerged\w*)",
            Name(rollouts.DROPPED, "of the step"),
        ),
        Family(r"(critic/n_\w+)", Name(rollouts.COUNT, "of the step")),
        *verl.NAMES.families,
    ),
    other_prefixes=rf"training|{verl.NAMES.other_prefixes}",
    marks=(("training/reward",), ("training/n_rollouts",), ("val/n_rollouts",)),
    read_from="microsoft/agent-lightning c632d8d: agentlightning/verl/rollout_adapter.py"
    " (get_train_data_batch, get_test_metrics), trainer.py; the rest is verl's",
)
