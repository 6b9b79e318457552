"""Facts about standard environments: random and solved returns, bounds, actions.

Wrappers may change all of it: clipped rewards, frame skips, normalised rewards, time limits.
`min_return` and `max_return` are bounds of every episode of the unwrapped environment.
"""

import math
import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Environment:
    """Facts of one environment, None where unknown. Returns are undiscounted sums of reward."""

    name: str  # without version, unless the versions differ
    random_return: float | None = None  # mean return of uniformly random actions
    solved_return: float | None = None  # the registry's threshold, else as `source` says
    min_return: float | None = None
    max_return: float | None = None
    horizon: int | None = None  # the time limit, in steps of the agent
    actions: int | None = None  # number of discrete actions
    action_dim: int | None = None  # dimensions of a continuous action
    best_return: float | None = None  # mean of the best agent published, below `max_return`
    source: str = ""
    by_people: bool = False  # `solved_return` is a human's score: agents may never come near it
    reach: float | None = None  # the largest action; the smallest is its negative
    pays: float | None = None  # the reward of every step; the one that ends an episode may pay 0

    @property
    def way(self) -> float | None:
        """Return of a solved environment above that of random actions; None where unknown."""
        if self.solved_return is None or self.random_return is None:
            return None
        return self.solved_return - self.random_return

    @property
    def fails_early(self) -> bool:
        """True if a failure ends an episode, so that episodes of an untrained policy are short."""
        return self.name in FAILS_EARLY

    @property
    def top(self) -> float | None:
        """Best known level; None where unknown."""
        levels = (self.best_return, self.max_return, self.solved_return)
        return next((level for level in levels if level is not None), None)

    def beyond(self, returns: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which returns [n] are impossible, up to rounding: bool [n]."""
        slack = 0.01 * abs(self.way or 1.0)  # logs round
        high = np.inf if self.max_return is None else self.max_return + slack
        low = -np.inf if self.min_return is None else self.min_return - slack
        return (returns > high) | (returns < low)

    def times(self, factor: float) -> "Environment":
        """Return the environment with every reward multiplied by a positive factor."""
        levels = ("random_return", "solved_return", "min_return", "max_return", "best_return")
        returns = {name: level for name in levels if (level := getattr(self, name)) is not None}
        return replace(self, **{name: factor * level for name, level in returns.items()})

    @property
    def max_entropy(self) -> float | None:
        """Entropy of the uniform policy in nats; None where actions are not discrete."""
        return None if self.actions is None else math.log(self.actions)


# Where a fall, a crash or a lost balance terminates: gymnasium 1.4.0, envs/; pybullet_envs.
FAILS_EARLY = frozenset({
    "CartPole", "CartPole-v0", "LunarLander", "LunarLanderContinuous", "BipedalWalker",
    "BipedalWalkerHardcore", "Hopper", "Walker2d", "Humanoid", "InvertedPendulum",
    "InvertedDoublePendulum", "HopperBulletEnv", "Walker2DBulletEnv", "HumanoidBulletEnv",
    "InvertedPendulumBulletEnv", "InvertedDoublePendulumBulletEnv",
})  # fmt: skip

REGISTRY = (
    "limit and threshold: gymnasium 1.4.0's registry; bounds from its reward function;"
    " best: rl-baselines3-zoo's benchmark.md"
)
MEASURED = f"{REGISTRY}; random: measured with gymnasium 1.4.0"
D4RL = "random: D4RL's infos.py, REF_MIN_SCORE (v2); threshold: gymnasium 1.4.0's registry"
BULLET = "threshold: pybullet_envs/__init__.py"
BULLET_D4RL = f"{BULLET}; random: D4RL's infos.py, REF_MIN_SCORE"

CONTROL_ENVIRONMENTS = (
    Environment("CartPole", 22, 475, 1, 500, 500, actions=2, source=MEASURED, pays=1),
    Environment("CartPole-v0", 22, 195, 1, 200, 200, actions=2, source=MEASURED, pays=1),
    Environment("Acrobot", -497, -100, -500, 0, 500, actions=3, best_return=-69, source=MEASURED,
                pays=-1),
    Environment("MountainCar", -200, -110, -200, -1, 200, actions=3,
                best_return=-101, source=MEASURED, pays=-1),
    Environment("MountainCarContinuous", -33, 90, -99.9, 100, 999, action_dim=1, reach=1,
                best_return=97, source=MEASURED),
    Environment("Pendulum", -1241, -172, -3255, 0, 200, action_dim=1, reach=2,
                best_return=-152,
                source=f"{MEASURED}; solved: PPO in rl-baselines3-zoo's benchmark.md"),
    Environment("LunarLander", -184, 200, None, None, 1000, actions=4,
                best_return=242, source=MEASURED),
    Environment("LunarLanderContinuous", -210, 200, horizon=1000, action_dim=2, reach=1,
                best_return=278, source=MEASURED),
    Environment("BipedalWalker", -104, 300, horizon=1600, action_dim=4, reach=1,
                best_return=330, source=MEASURED),
    Environment("BipedalWalkerHardcore", -107, 300, horizon=2000, action_dim=4, reach=1,
                best_return=235, source=MEASURED),
    Environment("CarRacing", None, 900, None, 1000, 1000, action_dim=3,
                best_return=900, source=REGISTRY),
    Environment("FrozenLake", 0.015, 0.7, 0, 1, 100, actions=4, best_return=0.7, source=MEASURED),
    Environment("FrozenLake8x8", 0.002, 0.85, 0, 1, 200, actions=4,
                best_return=0.85, source=MEASURED),
    Environment("Taxi", -774, 8, -2000, 20, 200, actions=6, best_return=8, source=MEASURED),
    Environment("CliffWalking", None, -13, None, -13, actions=4, source="its shortest path"),
    Environment("Blackjack", -0.40, None, -1, 1.5, actions=2, source=MEASURED),
    # MuJoCo.
    Environment("HalfCheetah", -280.2, 4800, horizon=1000, action_dim=6, reach=1, source=D4RL),
    Environment("Hopper", -20.3, 3800, horizon=1000, action_dim=3, reach=1, source=D4RL),
    Environment("Walker2d", 1.6, 4592.3, horizon=1000, action_dim=6, reach=1,
                source="random and solved: D4RL's infos.py, REF_MIN_SCORE and REF_MAX_SCORE (v2)"),
    Environment("Ant", -325.6, 6000, horizon=1000, action_dim=8, reach=1, source=D4RL),
    Environment("Humanoid", horizon=1000, action_dim=17, reach=0.4, source=REGISTRY),
    Environment("HumanoidStandup", horizon=1000, action_dim=17, reach=0.4, source=REGISTRY),
    Environment("Swimmer", None, 360, horizon=1000, action_dim=2, reach=1, source=REGISTRY),
    Environment("Reacher", None, -3.75, None, 0, 50, action_dim=2, reach=1, source=REGISTRY),
    Environment("Pusher", None, None, None, 0, 100, action_dim=7, reach=2, source=REGISTRY),
    Environment("InvertedPendulum", None, 950, 0, 1000, 1000, action_dim=1, reach=3,
                source=REGISTRY, pays=1),
    Environment("InvertedDoublePendulum", None, 9100, None, 10000, 1000, action_dim=1, reach=1,
                best_return=9100, source=REGISTRY),
    # PyBullet.
    Environment("AntBulletEnv", 373.7, 2500, horizon=1000, action_dim=8, source=BULLET_D4RL),
    Environment("HalfCheetahBulletEnv", -1275.8, 3000, horizon=1000, action_dim=6,
                source=BULLET_D4RL),
    Environment("HopperBulletEnv", 20.1, 2500, horizon=1000, action_dim=3, source=BULLET_D4RL),
    Environment("Walker2DBulletEnv", 16.5, 2500, horizon=1000, action_dim=6, source=BULLET_D4RL),
    Environment("HumanoidBulletEnv", horizon=1000, action_dim=17, source=BULLET),
    Environment("InvertedPendulumBulletEnv", None, 950, 0, 1000, 1000, action_dim=1, source=BULLET),
    Environment("InvertedDoublePendulumBulletEnv", None, 9100, None, 10000, 1000, action_dim=1,
                best_return=9100, source=BULLET),
    Environment("InvertedPendulumSwingupBulletEnv", None, 800, horizon=1000, action_dim=1,
                source=BULLET),
    Environment("ReacherBulletEnv", None, 18, horizon=150, action_dim=2, source=BULLET),
)  # fmt: skip

# Game: random score, human score, actions.
ATARI_SCORES = {
    "Alien": (227.8, 7127.7, 18), "Amidar": (5.8, 1719.5, 10), "Assault": (222.4, 742.0, 7),
    "Asterix": (210.0, 8503.3, 9), "Asteroids": (719.1, 47388.7, 14),
    "Atlantis": (12850.0, 29028.1, 4), "BankHeist": (14.2, 753.1, 18),
    "BattleZone": (2360.0, 37187.5, 18), "BeamRider": (363.9, 16926.5, 9),
    "Berzerk": (123.7, 2630.4, 18), "Bowling": (23.1, 160.7, 6), "Boxing": (0.1, 12.1, 18),
    "Breakout": (1.7, 30.5, 4), "Centipede": (2090.9, 12017.0, 18),
    "ChopperCommand": (811.0, 7387.8, 18), "CrazyClimber": (10780.5, 35829.4, 9),
    "Defender": (2874.5, 18688.9, 18), "DemonAttack": (152.1, 1971.0, 6),
    "DoubleDunk": (-18.6, -16.4, 18), "Enduro": (0.0, 860.5, 9),
    "FishingDerby": (-91.7, -38.7, 18), "Freeway": (0.0, 29.6, 3),
    "Frostbite": (65.2, 4334.7, 18), "Gopher": (257.6, 2412.5, 8),
    "Gravitar": (173.0, 3351.4, 18), "Hero": (1027.0, 30826.4, 18),
    "IceHockey": (-11.2, 0.9, 18), "Jamesbond": (29.0, 302.8, 18),
    "Kangaroo": (52.0, 3035.0, 18), "Krull": (1598.0, 2665.5, 18),
    "KungFuMaster": (258.5, 22736.3, 14), "MontezumaRevenge": (0.0, 4753.3, 18),
    "MsPacman": (307.3, 6951.6, 9), "NameThisGame": (2292.3, 8049.0, 6),
    "Phoenix": (761.4, 7242.6, 8), "Pitfall": (-229.4, 6463.7, 18), "Pong": (-20.7, 14.6, 6),
    "PrivateEye": (24.9, 69571.3, 18), "Qbert": (163.9, 13455.0, 6),
    "Riverraid": (1338.5, 17118.0, 18), "RoadRunner": (11.5, 7845.0, 18),
    "Robotank": (2.2, 11.9, 18), "Seaquest": (68.4, 42054.7, 18),
    "Skiing": (-17098.1, -4336.9, 3), "Solaris": (1236.3, 12326.7, 18),
    "SpaceInvaders": (148.0, 1668.7, 6), "StarGunner": (664.0, 10250.0, 18),
    "Surround": (-10.0, 6.5, 5), "Tennis": (-23.8, -8.3, 18),
    "TimePilot": (3568.0, 5229.2, 10), "Tutankham": (11.4, 167.6, 8),
    "UpNDown": (533.4, 11693.2, 6), "Venture": (0.0, 1187.5, 18),
    "VideoPinball": (16256.9, 17667.9, 9), "WizardOfWor": (563.5, 4756.5, 10),
    "YarsRevenge": (3092.9, 54576.9, 18), "Zaxxon": (32.5, 9173.3, 18),
}  # fmt: skip

# First to 21 points; all 864 points of two walls of bricks.
ATARI_BOUNDS: dict[str, tuple[float, float]] = {"Pong": (-21, 21), "Breakout": (0, 864)}

# Game: R_min, R_max.
PROCGEN_SCORES = {
    "coinrun": (5, 10), "starpilot": (2.5, 64), "caveflyer": (3.5, 12), "dodgeball": (1.5, 19),
    "fruitbot": (-1.5, 32.4), "chaser": (0.5, 13), "miner": (1.5, 13), "jumper": (3, 10),
    "leaper": (3, 10), "maze": (5, 10), "bigfish": (1, 40), "heist": (3.5, 10),
    "climber": (2, 12.6), "plunder": (4.5, 30), "ninja": (3.5, 10), "bossfight": (0.5, 13),
}  # fmt: skip

MINIGRID = Environment(
    "MiniGrid",
    min_return=0,
    max_return=1,
    actions=7,
    source="minigrid/minigrid_env.py: 1 - 0.9 steps / max_steps at the goal, else 0; 7 actions",
)

ENVIRONMENTS: tuple[Environment, ...] = (
    *CONTROL_ENVIRONMENTS,
    *(
        # The horizon is 108,000 frames, four per step.
        Environment(
            game,
            chance,
            human,
            min_return=ATARI_BOUNDS.get(game, (None, None))[0],
            max_return=ATARI_BOUNDS.get(game, (None, None))[1],
            horizon=27_000,
            actions=actions,
            source="random and human scores: dqn_zoo/atari_data.py, 30 random no-ops, 108,000"
            " frames; solved means the human score; actions: ale-py's minimal action set",
            by_people=True,
        )
        for game, (chance, human, actions) in ATARI_SCORES.items()
    ),
    *(
        Environment(
            f"procgen-{game}",
            low,
            high,
            actions=15,
            source="random and solved: R_min and R_max of the easy levels, Cobbe et al. 2020, "
            "appendix C",
        )
        for game, (low, high) in PROCGEN_SCORES.items()
    ),
    MINIGRID,
)

ENVIRONMENT_BY_NAME = {environment.name.lower(): environment for environment in ENVIRONMENTS}


def lookup(env_id: str) -> Environment | None:
    """Return an environment by its id, ignoring version, namespace and Atari variant.

    Knows "LunarLander-v2", "ALE/Breakout-v5" and "BreakoutNoFrameskip-v4".
    """
    bare = re.split(r"[/:]", env_id.strip())[-1].lower()
    if bare in ENVIRONMENT_BY_NAME:
        return ENVIRONMENT_BY_NAME[bare]
    base = re.sub(r"-v\d+$", "", bare)
    if base.startswith("minigrid-"):
        return MINIGRID
    return ENVIRONMENT_BY_NAME.get(base) or ENVIRONMENT_BY_NAME.get(
        re.sub(r"(-ram)?(noframeskip|deterministic)?$", "", base)
    )
