"""Say how good a trained policy is: its newest whole checkpoint, on what it was not trained on.

A run of `rlvitals train ppo`: a scheduler by the latency of held-out arrivals, beside schedulers
that do not learn with --baselines; any other policy by the return of whole episodes.

exit code: 0; 2 where the folder holds no such run.

examples:
  rlvitals evaluate outputs/ppo --baselines
  rlvitals evaluate runs/cartpole --episodes 100 --json
"""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from rlvitals.cli.command import Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, how much is played, and how to show it."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--baselines", action="store_true", help="schedulers that do not learn too")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="streams of arrivals (5)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first of them (0)")
    parser.add_argument("--envs", type=int, default=32, metavar="N", help="clusters of each (32)")
    parser.add_argument(
        "--steps", type=int, default=1200, metavar="N", help="decisions of each cluster (1200)"
    )
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="of other environments (100)"
    )
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: Namespace) -> int:
    """Evaluate and print."""
    from rlvitals.trainers.ppo import cluster, evaluate

    trained = evaluate.load(args.run)
    env = trained.config.training.env
    if env == cluster.ID:
        found = evaluate.on_cluster(
            trained,
            seeds=range(args.seed, args.seed + args.seeds),
            envs=args.envs,
            steps=args.steps,
            baselines=args.baselines,
        )
        if args.json:
            rows = {name: [asdict(one) for one in each] for name, each in found.items()}
            print(json.dumps({"env": env, "step": trained.step, "evaluations": rows}))
        else:
            print(f"{env} at step {trained.step:,}, {args.seeds} streams of held-out arrivals\n")
            print(cluster.table(found))
        return 0
    played = evaluate.on_episodes(trained, seed=args.seed + 10_000, episodes=args.episodes)
    if args.json:
        print(json.dumps({"env": env, "step": trained.step, **asdict(played)}))
    else:
        print(_episodes(env, trained.step, played.returns))
    return 0


def _episodes(env: str, step: int, returns: tuple[float, ...]) -> str:
    from statistics import fmean, median, stdev

    spread = stdev(returns) if len(returns) > 1 else 0.0
    return (
        f"{env} at step {step:,}: mean return {fmean(returns):.1f} of {len(returns)} episodes "
        f"(median {median(returns):.1f}, sd {spread:.1f}, {min(returns):.1f} to {max(returns):.1f})"
    )


COMMAND = Command("evaluate", __doc__, add_arguments, run)
