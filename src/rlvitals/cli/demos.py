"""Collect demonstrations for a warm start: states and decisions of heuristic schedulers.

A warm start clones them: `rlvitals train ppo --demo-path demos.npz`. --config sets the cluster;
flags take precedence.

exit code: 0; 2 for wrong settings.

examples:
  rlvitals demos -o demos.npz
  rlvitals demos -o demos.npz --policies lor/speed lor --steps 500 --loads 0.5 1 2 --replicas 8
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import Command

# Cluster settings that have a flag here; the schema, which is slow to import, checks them.
CLUSTER_FLAGS = {
    "replicas": (int, "N", "replicas, 2 to 64"),
    "speeds": (float, "X", "their speeds; repeated where there are more replicas"),
    "load": (float, "X", "arrivals as a share of the cluster's capacity"),
    "qps": (float, "QPS", "requests/s instead"),
    "arrivals": (str, "KIND", "poisson or gamma; trace with --trace"),
    "trace": (str, "FILE", "CSV of time (s), prompt tokens, output tokens"),
}
DEFAULT_POLICIES, DEFAULT_STEPS, DEFAULT_LOADS = ("lor/speed",), 700, (0.5, 1.0, 2.0)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the schedulers, the cluster and the output file."""
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write: .npz"
    )
    parser.add_argument(
        "--policies", nargs="+", default=DEFAULT_POLICIES, metavar="NAME",
        help=f"schedulers (default: {' '.join(DEFAULT_POLICIES)})",
    )  # fmt: skip
    parser.add_argument(
        "--steps", type=int, default=DEFAULT_STEPS, metavar="N",
        help=f"decisions per scheduler, cluster and load (default: {DEFAULT_STEPS})",
    )  # fmt: skip
    parser.add_argument(
        "--loads", nargs="+", type=float, default=DEFAULT_LOADS, metavar="X",
        help=f"multiples of the cluster's load (default: {' '.join(map(str, DEFAULT_LOADS))})",
    )  # fmt: skip
    parser.add_argument("--envs", type=int, default=16, metavar="N", help="clusters at once (16)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (0)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a training's JSON settings")
    cluster = parser.add_argument_group("the cluster, over --config")
    for name, (kind, item, doc) in CLUSTER_FLAGS.items():
        flags = ("--replicas", "--num-replicas") if name == "replicas" else (f"--{name}",)
        cluster.add_argument(
            *flags, type=kind, nargs="+" if name == "speeds" else None, metavar=item, help=doc,
            dest=f"cluster.{name}",
        )  # fmt: skip


def run(args: Namespace) -> int:
    """Collect and save the demonstrations, and print a summary."""
    from rlvitals.errors import UsageError
    from rlvitals.trainers import schema
    from rlvitals.trainers.ppo import demonstrations, factory
    from rlvitals.trainers.ppo.config import Config

    if args.steps < 1 or args.envs < 1 or min(args.loads) <= 0:
        raise UsageError("nothing to collect", hint="--steps and --envs from 1 on, --loads above 0")
    said = factory.fit_speeds(schema.flag_values(vars(args), Config))
    config = schema.load(Config, args.config and factory.settings_file(args.config), said)
    found = demonstrations.collect(
        config.environment, policies=args.policies, steps=args.steps, loads=args.loads,
        envs=args.envs, seed=args.seed,
    )  # fmt: skip
    demonstrations.save(found, args.output)
    facts = found.facts()
    print(
        f"{len(found):,} decisions of {', '.join(found.names)}, {facts['state_dim']} numbers each"
    )
    print(f"actions: {facts['action_distribution']}")
    print(f"{args.output}: rlvitals train ppo --demo-path {args.output}")
    return 0


COMMAND = Command("demos", __doc__, add_arguments, run)
