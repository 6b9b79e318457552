"""Faults of the episode: where the environment reports its end."""

from rlvitals.faults import faulty_models
from rlvitals.faults.fault import Algorithm, Fault, Onset
from rlvitals.faults.inject import combine, in_model, in_world

TERMINATING_ENVS = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")

EPISODE_FAULTS = (
    Fault(
        "terminal-missing",
        "the end of an episode is never reported: only the time limit ends it",
        in_world(lambda w: w.NeverTerminal),
        expects=("episodes-never-end",),
        visible_in=("outcome/episode_length",),
        tampers=True,
        tasks=TERMINATING_ENVS,
    ),
    Fault(
        "terminal-early",
        "every episode is said to be over after ten steps",
        in_world(lambda w: w.AlwaysTerminal),
        expects=("episodes-never-end", "environment-changed", "return-collapse"),
        visible_in=("outcome/episode_length",),
        tampers=True,
        tasks=("CartPole-v1",),
    ),
    Fault(
        "undiscounted-endless",
        "gamma is 1, the end of an episode is never reported, and there is no target network",
        combine(
            in_world(lambda w: w.NeverTerminal),
            in_model(faulty_models.attribute(gamma=1.0, target_update_interval=1)),
        ),
        expects=(
            "setting-out-of-range",
            "q-divergence",
            "value-loss-explosion",
            "episodes-never-end",
        ),
        visible_in=("value/loss", "optimiser/loss"),
        tampers=True,
        algorithms=(Algorithm.DQN,),
        tasks=TERMINATING_ENVS,
        onsets=(Onset.START,),
        sets={"gamma": 1.0, "target_update_interval": 1},
    ),
)
