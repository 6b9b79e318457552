"""Faults of exploration: bonuses, epsilon, temperature, the width of the policy."""

from rlvitals.faults import faulty_models
from rlvitals.faults.fault import ON_POLICY_ALGORITHMS, Algorithm, Fault, Onset
from rlvitals.faults.inject import in_model, in_options

EXPLORATION_FAULTS = (
    Fault(
        "entropy-bonus-huge",
        "the entropy coefficient is 2: being random pays best",
        in_model(faulty_models.attribute(ent_coef=2.0)),
        expects=("setting-out-of-range", "exploration-never-ends", "exploration-explodes"),
        visible_in=("exploration/entropy",),
        algorithms=ON_POLICY_ALGORITHMS,
        sets={"ent_coef": 2.0},
    ),
    Fault(
        "entropy-bonus-negative",
        "the entropy coefficient is -1: being certain pays best",
        in_model(faulty_models.attribute(ent_coef=-1.0)),
        expects=("setting-out-of-range", "entropy-collapse", "action-collapse"),
        visible_in=("exploration/entropy",),
        algorithms=ON_POLICY_ALGORITHMS,
        sets={"ent_coef": -1.0},
    ),
    Fault(
        "policy-too-wide",
        "the policy's standard deviation jumps to 12 and stays there",
        in_model(faulty_models.wide_policy),
        expects=("exploration-explodes", "exploration-never-ends"),
        visible_in=("exploration/std", "exploration/entropy"),
        algorithms=(Algorithm.PPO,),
        tasks=("Pendulum-v1",),
    ),
    Fault(
        "epsilon-one",
        "epsilon stays at 1: every action is random",
        in_model(faulty_models.schedule(exploration_schedule=1.0)),
        expects=("exploration-never-ends",),
        visible_in=("exploration/epsilon",),
        algorithms=(Algorithm.DQN,),
        proven=True,
    ),
    Fault(
        "epsilon-zero",
        "epsilon is 0 from the start: nothing is tried",
        in_options(exploration_initial_eps=0.0, exploration_final_eps=0.0),
        expects=("entropy-collapse",),
        visible_in=(),
        algorithms=(Algorithm.DQN,),
        onsets=(Onset.START,),
    ),
    Fault(
        "temperature-five",
        "SAC's entropy coefficient is fixed at 5",
        in_model(faulty_models.fixed_temperature(5.0)),
        expects=("setting-out-of-range", "exploration-never-ends", "exploration-explodes"),
        visible_in=("exploration/entropy_coef",),
        algorithms=(Algorithm.SAC,),
        sets={"ent_coef": 5.0},
    ),
    Fault(
        "temperature-zero",
        "SAC's entropy coefficient is fixed at 0",
        in_model(faulty_models.fixed_temperature(0.0)),
        expects=("setting-out-of-range", "entropy-collapse"),
        visible_in=("exploration/entropy_coef",),
        algorithms=(Algorithm.SAC,),
        sets={"ent_coef": 0.0},
    ),
    Fault(
        "learning-starts-late",
        "nothing is learned before 90 % of the run",
        in_options(learning_starts=0.9),
        expects=("learning-starts-late",),
        visible_in=("optimiser/updates",),
        algorithms=(Algorithm.DQN, Algorithm.SAC),
        onsets=(Onset.START,),
    ),
)
