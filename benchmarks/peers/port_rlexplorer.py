"""A port of RLExplorer's published diagnoses to logged scalars.

"Toward Debugging Deep Reinforcement Learning Programs with RLExplorer", Bouchoucha et al. 2024,
arXiv:2410.04322. Thresholds are the defaults of
its artifact, https://github.com/rached1997/RLDebugger (Apache-2.0), commit 1bb210b. It is on no
package index and wants hooks inside the training loop and Python below 3.10, so it cannot be
installed beside these logs.

Where the artifact judges every so many calls, a row of the log is judged: it recommends a period
of about 1 % of the run, and a row is 1-2 % of these. Differences that these logs force:

* it collects the return of every episode; a row has the mean of the last 100, and there are fewer
  rows: where 15 are more than a fifth of the run, the check of its first fifth never runs;
* it reads action probabilities for their entropy; here the logged entropy of PPO and A2C is
  taken, for discrete actions, as the artifact's is;
* its loss checks run in its examples of value-based agents alone: here DQN's loss and the
  critic's of SAC and TD3; a loss that is no number counts for every algorithm;
* its KL is between the outputs before and after an update: `approx_kl`;
* the residuals of its entropy check are taken at the positions the line was fitted at.

It has one severity, a warning.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from peers.exchange import WARNING, Alarm, Given, Tool, answer

Values = NDArray[np.float64]
EXPLORATION, EXPLOITATION = 0.2, 0.8  # the first fifth of the run explores, the last exploits
NOT_MAPPED = (
    "weights, biases, activations, gradients, states, targets, uncertainty: tensors, not logged",
    "action stagnation: actions are not logged",
)

# Reward: standard deviations of windows of 3, judged when there are 5 of them.
REWARD_WINDOW, REWARD_START = 3, 5
REWARD_VARIABILITY = 0.1  # residual of those deviations around a line, below which there is none
REWARD_SLOPE = 0.25  # of those deviations over the threshold, above which it is not settling
REWARD_TOLERANCE = 0.01  # share of the threshold that may be missing
# Action: entropy.
ENTROPY_ENOUGH, ENTROPY_FIRST, ENTROPY_LAST = 10, 3, 10
ENTROPY_LOW, ENTROPY_RISE, ENTROPY_STILL = 0.3, 0.1, 1e-3
ENTROPY_BEND, ENTROPY_BENT_SHARE, ENTROPY_RESIDUAL = -0.1, 0.2, 0.1
# Exploration parameter.
EXPLORATION_START, EXPLORATION_STILL, EXPLORATION_BEND, EXPLORATION_PERIOD = 1.0, 0.01, 0.22, 0.1
# Loss.
LOSS_WINDOW, LOSS_DECREASE, LOSS_GROWTH = 5, 0.05, 2.0
SMOOTH_WINDOW, SMOOTH = 50, 0.5
# Agent, steps.
KL = 0.1
STEP_WINDOW, STEP_REWARD = 10, 0.1


def line(values: Values) -> tuple[float, float]:
    """Fit a line over 0, 1, 2, ... by least squares: slope and height at 0."""
    slope, height = np.polyfit(np.arange(len(values)), values, 1)
    return float(slope), float(height)


def residual(values: Values, fitted: tuple[float, float], last: int | None = None) -> float:
    """Root mean square distance from a line, over the last few values or all."""
    off = values - (fitted[0] * np.arange(len(values)) + fitted[1])
    return float(np.sqrt(np.mean(off[-last:] ** 2 if last else off**2)))


def deviations(rewards: Values) -> Values:
    """Sample standard deviation of each full window of 3."""
    count = len(rewards) // REWARD_WINDOW
    return rewards[: count * REWARD_WINDOW].reshape(count, REWARD_WINDOW).std(axis=1, ddof=1)


def reward(rewards: Values, progress: float, solved: float) -> str:
    """Judge a batch of returns after a share `done` of the run; solved is the threshold."""
    stds = deviations(rewards)
    if progress < EXPLORATION and residual(stds, line(stds)) < REWARD_VARIABILITY:
        return "reward-low-variability"
    if progress <= EXPLOITATION:
        return ""
    if abs(line(stds / abs(solved))[0]) > REWARD_SLOPE:
        return "reward-not-settling"
    return "reward-stagnates" if rewards.mean() < solved * (1 - REWARD_TOLERANCE) else ""


def entropy(values: Values, progress: float) -> list[str]:
    """Judge the entropies so far, after a share `done` of the run."""
    names = []
    if len(values) == ENTROPY_FIRST and values.mean() < ENTROPY_LOW:
        names.append("entropy-starts-low")
    if len(values) < ENTROPY_ENOUGH:
        return names
    fitted = line(values)
    if progress <= EXPLORATION:
        if fitted[0] > ENTROPY_RISE:
            names.append("entropy-rises")
        elif abs(fitted[0]) < ENTROPY_STILL:
            names.append("entropy-stagnates")
        bend = np.gradient(np.gradient(values[-ENTROPY_LAST:]))
        if np.mean(bend < ENTROPY_BEND) >= ENTROPY_BENT_SHARE:
            names.append("entropy-falls-fast")
    if residual(values, fitted, ENTROPY_LAST) > ENTROPY_RESIDUAL:
        names.append("entropy-fluctuates")
    return names


def exploration(values: Values) -> list[str]:
    """Judge an exploration parameter that should fall from 1 to 0."""
    names = []
    slope = line(values)[0]
    if slope > EXPLORATION_STILL:
        names.append("exploration-rises")
    if np.any(np.abs(np.gradient(np.gradient(values))) > EXPLORATION_BEND):
        names.append("exploration-changes-fast")
    return names


def smoothness(values: Values) -> float:
    """Return the share of values at which a series does not turn from rising to falling."""
    if len(values) < 1:
        return 1.0
    turns = np.count_nonzero(np.diff(values[1:] / values[:-1] > 1))
    return (len(values) - turns) / len(values)


def loss(values: Values) -> list[str]:
    """Judge the losses so far."""
    names = []
    last = values[-LOSS_WINDOW:]
    if len(last) == LOSS_WINDOW:
        if np.all((last[:-1] - last[1:]) / last[:-1] < LOSS_DECREASE):
            names.append("loss-stagnates")
        if np.all(last[1:] / last[:-1] >= LOSS_GROWTH):
            names.append("loss-diverges")
    if smoothness(values[-SMOOTH_WINDOW:]) < SMOOTH:
        names.append("loss-fluctuates")
    return names


def capped(lengths: Values, rewards: Values, horizon: int, solved: float) -> bool:
    """Whether episodes end at the time limit far from the threshold."""
    long = lengths[-STEP_WINDOW:].mean() >= horizon
    return bool(long and rewards[-STEP_WINDOW:].mean() < solved * STEP_REWARD)


def ask(run: Given) -> list[Alarm]:
    """Judge every row as it would have come in."""
    with np.errstate(divide="ignore", invalid="ignore"):
        findings = (
            *_rewards(run),
            *_entropies(run),
            *_explorations(run),
            *_losses(run),
            *_kls(run),
        )
    return [Alarm(name, WARNING, step) for step, name in findings if name]


def _columns(pairs: Sequence[tuple[int, float]]) -> tuple[list[int], Values]:
    """Split what is logged into steps and values, without what is no number."""
    finite_pairs = [pair for pair in pairs if np.isfinite(pair[1])]
    return [step for step, _ in finite_pairs], np.array([value for _, value in finite_pairs], float)


def _rewards(run: Given) -> list[tuple[int, str]]:
    """Judge each batch of 15 rows, and the limit of steps; both need the reward threshold."""
    if run.solved is None:
        return []
    steps, returns = _columns(run.column("rollout/ep_rew_mean"))
    batch = REWARD_WINDOW * REWARD_START
    findings = [
        (
            steps[index - 1],
            reward(returns[index - batch : index], steps[index - 1] / run.budget, run.solved),
        )
        for index in range(batch, len(steps) + 1, batch)
    ]
    lengths = _columns(run.column("rollout/ep_len_mean"))[1]
    if run.horizon is not None and len(lengths) == len(returns):
        findings += [
            (step, "episodes-capped")
            for index, step in enumerate(steps, 1)
            if step >= EXPLOITATION * run.budget
            and capped(lengths[:index], returns[:index], run.horizon, run.solved)
        ]
    return findings


def _entropies(run: Given) -> list[tuple[int, str]]:
    if run.actions is None:
        return []
    steps, losses = _columns(run.column("train/entropy_loss"))
    return [
        (step, name)
        for index, step in enumerate(steps, 1)
        for name in entropy(-losses[:index], step / run.budget)
    ]


def _explorations(run: Given) -> list[tuple[int, str]]:
    """Judge the setting it starts from, and every tenth of the run what is logged."""
    steps, values = _columns(run.column("rollout/exploration_rate"))
    start = run.settings.get("exploration_initial_eps", EXPLORATION_START)
    findings = (
        [(steps[0], "exploration-starts-wrong")] if steps and start != EXPLORATION_START else []
    )
    period = max(3, round(EXPLORATION_PERIOD * len(steps)))
    for index in range(period, len(steps) + 1, period):
        findings += [(steps[index - 1], name) for name in exploration(values[:index])]
    return findings


def _losses(run: Given) -> list[tuple[int, str]]:
    findings = [
        (step, "loss-not-a-number")
        for row, step in zip(run.rows, run.steps, strict=True)
        if any("loss" in key and not np.isfinite(value) for key, value in row.items())
    ]
    key = {"dqn": "train/loss", "sac": "train/critic_loss", "td3": "train/critic_loss"}
    steps, values = _columns(run.column(key.get(run.algorithm, "")))
    return findings + [
        (step, name) for index, step in enumerate(steps, 1) for name in loss(values[:index])
    ]


def _kls(run: Given) -> list[tuple[int, str]]:
    return [(step, "kl-high") for step, value in run.column("train/approx_kl") if value > KL]


if __name__ == "__main__":
    place = "arXiv:2410.04322; defaults of github.com/rached1997/RLDebugger, commit 1bb210b"
    answer(Tool("RLExplorer (port)", "2024", "formulas", place, NOT_MAPPED), ask)
