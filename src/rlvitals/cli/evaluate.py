"""Say how good a trained policy is: its newest whole checkpoint, on what it was not trained on.

A run of `rlvitals train ppo`: a scheduler by the latency of held-out arrivals, beside schedulers
that do not learn (--no-baselines: alone); any other policy by the return of whole episodes. A
language model of `rlvitals train grpo | psr | nsr | w-reinforce | rlhf`: its likeliest answers to
held-out questions, and pass@k: how likely one of k sampled answers is right. The run is not
touched.

exit code: 0; 2 where the folder holds no such run.

examples:
  rlvitals evaluate outputs/ppo
  rlvitals evaluate outputs/ppo --replicas 16 --load 0.9
  rlvitals evaluate outputs/ppo --checkpoint best
  rlvitals evaluate runs/cartpole --episodes 100 --json
  rlvitals evaluate runs/sums --base
  rlvitals evaluate runs/sums --checkpoint 100 --samples 256
"""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from rlvitals.cli.command import Command
from rlvitals.errors import UsageError

if TYPE_CHECKING:
    from rlvitals.trainers.language.evaluate_model import Evaluated, Trained

BEST: Final = "best"
STEPS = 300  # decisions for each replica: the same time at every size


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, how much is asked of it, and how to show it."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (0)")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument(
        "--checkpoint", type=_step, metavar="STEP",
        help="of this step, not the newest whole one; of rlvitals train ppo also `best`:"
        " by its --keep-best",
    )  # fmt: skip
    ppo = parser.add_argument_group("a run of rlvitals train ppo")
    ppo.add_argument(
        "--baselines", action=BooleanOptionalAction, default=True,
        help="schedulers that do not learn too (default: yes)",
    )  # fmt: skip
    ppo.add_argument("--seeds", type=int, default=5, metavar="N", help="streams of arrivals (5)")
    ppo.add_argument("--envs", type=int, default=32, metavar="N", help="clusters of each (32)")
    ppo.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help=f"decisions of each cluster ({STEPS} for each of its replicas)",
    )
    ppo.add_argument("--replicas", type=int, metavar="N", help="of another cluster (the run's)")
    ppo.add_argument("--load", type=float, metavar="X", help="another load (the run's)")
    ppo.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="of other environments (100)"
    )
    language = parser.add_argument_group("a language model")
    language.add_argument("--base", action="store_true", help="beside it, as its training began")
    language.add_argument(
        "--questions", type=int, default=0, metavar="N", help="the first so many (0: all)"
    )
    language.add_argument(
        "--samples", type=int, default=64, metavar="N", help="answers to each, for pass@k (64)"
    )


def _step(said: str) -> int | Literal["best"]:
    if said == BEST:
        return BEST
    step = said.rstrip("/").rpartition("-")[2]
    if not step.isdecimal():
        raise ArgumentTypeError(f"{said!r} is neither a step nor a checkpoint's name nor best")
    return int(step)


def run(args: Namespace) -> int:
    """Evaluate and print."""
    for file, evaluate in KINDS.items():
        if (args.run / file).is_file():
            return evaluate(args)
    raise UsageError(
        f"there is no {' or '.join(KINDS)}",
        where=str(args.run),
        hint="rlvitals train nsr",
    )


def _ppo(args: Namespace) -> int:
    from rlvitals.trainers.ppo import cluster, evaluate

    best = args.checkpoint == BEST
    trained = evaluate.load(args.run, step=None if best else args.checkpoint, best=best)
    env = trained.config.training.env
    other = {name: getattr(args, name) for name in ("replicas", "load")}
    other = {name: value for name, value in other.items() if value is not None}
    if other and env != cluster.ID:
        raise UsageError(f"{env} has no {' or '.join(other)}", where=f"--{next(iter(other))}")
    if env == cluster.ID:
        if other:
            trained = evaluate.on_other_cluster(trained, other)
        found = evaluate.on_cluster(
            trained,
            seeds=range(args.seed, args.seed + args.seeds),
            envs=args.envs,
            steps=args.steps or STEPS * trained.config.cluster.replicas,
            baselines=args.baselines,
        )
        if args.json:
            rows = {name: [asdict(one) for one in each] for name, each in found.items()}
            print(json.dumps({"env": env, "step": trained.step, "evaluations": rows}))
        else:
            serving = trained.config.cluster
            print(f"{env} at step {trained.step:,}, {args.seeds} streams of held-out arrivals")
            print(f"{serving.replicas} replicas, load {serving.load:g}\n")
            print(f"{cluster.table(found)}\n\n{cluster.sentence(found)}")
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


def _language(args: Namespace) -> int:
    from rlvitals.views.console import emit
    from rlvitals.views.lists import columns

    if args.checkpoint == BEST:
        raise UsageError("no checkpoint of a language model is the best", hint="--checkpoint STEP")
    told = []
    with redirect_stdout(sys.stderr):  # transformers prints there, as with WANDB_MODE=offline
        for trained, found in _evaluated(args):
            told.append({"step": trained.step, **_told(found, args.seed)})
    at = {"mode": trained.config.training.mode, "task": trained.config.data.dataset_name}
    asked = {"questions": found.questions, "samples": found.samples, "seed": args.seed}
    asked |= {"judge": trained.judge}
    temperature = trained.policy.temperature
    if args.json:
        print(json.dumps({**at, **asked, "temperature": temperature, "policies": told}))
        return 0
    if form := _form(args.run, told):
        print(f"{form}\n")
    print(f"{at['mode']} on {at['task']}, {found.questions:,} questions\n")
    heads = [f"step {one['step']:,}" if one["step"] else "as training began" for one in told]
    others = list(told[0]["rewards"])
    names = ["right", *(f"pass@{one['k']}" for one in told[0]["pass_at_k"]), "entropy", *others]
    emit(columns(["", *heads], zip(names, *map(_cells, told), strict=True)))
    print(f"\nright: the likeliest answer, judged by {trained.judge} (95 % interval: Wilson's).")
    if found.samples:
        print(
            f"pass@k: at least one of k answers is right, told from {found.samples} to each\n"
            f"question, drawn at temperature {temperature:g} (95 % interval: a bootstrap over "
            "questions)."
        )
    if others:
        print(f"{', '.join(others)}: mean reward of the likeliest answer.")
    for note in trained.notes:
        print(f"{note}.")
    print(f"\n{_sentence(at, found.questions, told)}")
    return 0


def _form(run: Path, told: Sequence[Mapping[str, Any]]) -> str:
    """Say that the form of the answers improved and right answers did not; empty where not so.

    By the evaluation where it is beside one of the policy as training began, else by the log.
    """
    import rlvitals
    from rlvitals.rules import form

    base = next((one for one in told[1:] if not one["step"]), None)
    if base is not None:
        return form.of_evaluations(base, told[0])
    try:
        return form.form_alone(rlvitals.trace(run))
    except rlvitals.VitalsError:  # the checkpoint is what is evaluated, and may be all there is
        return ""


def _sentence(at: Mapping[str, str], questions: int, told: Sequence[Mapping[str, Any]]) -> str:
    """Say in one sentence what the evaluation came to."""
    right = told[0]["right"]
    before = "".join(
        f"; before training {one['right']['value']:.1%}" for one in told[1:] if not one["step"]
    )
    unit = "updates" if at["mode"] == "rlhf" else "steps"
    return (
        f"After {told[0]['step']:,} {unit} of {at['mode']}, {right['value']:.1%} of {questions:,} "
        f"held-out questions are answered right "
        f"(95% interval {right['low']:.1%} to {right['high']:.1%}){before}."
    )


def _evaluated(args: Namespace) -> Iterator[tuple["Trained", "Evaluated"]]:
    """Evaluate one policy after the other, and show on stderr how far it is."""
    from rlvitals.trainers.language import evaluate_model
    from rlvitals.trainers.language.console import Progress

    evaluate_model.quiet()
    for step in (args.checkpoint, 0) if args.base else (args.checkpoint,):
        trained = evaluate_model.load(args.run, step=step)
        title = f"Evaluating step {trained.step:,}"
        progress = Progress(wanted=True, title=title, stream=sys.stderr)
        found = evaluate_model.evaluate(
            trained, questions=args.questions, samples=args.samples, seed=args.seed,
            progress=progress,
        )  # fmt: skip
        progress.close()
        yield trained, found


def _told(found: "Evaluated", seed: int) -> dict[str, Any]:
    from rlvitals.rules.rate import wilson
    from rlvitals.trainers.language import pass_at_k

    share = wilson(found.right, found.questions)
    told: dict[str, Any] = {
        "right": {"value": found.right / found.questions, **asdict(share)},
        "pass_at_k": [],
        "entropy": None,
        "rewards": dict(found.rewards),
    }
    if found.samples:
        ks = pass_at_k.powers(found.samples)
        chances = pass_at_k.estimate(found.right_samples, found.samples, ks, seed=seed)
        told |= {"pass_at_k": [asdict(one) for one in chances], "entropy": found.entropy}
    return told


def _cells(told: Mapping[str, Any]) -> list[str]:
    rows = [told["right"], *told["pass_at_k"]]
    shares = [f"{one['value']:.1%} ({one['low']:.1%} to {one['high']:.1%})" for one in rows]
    means = ["-" if value is None else f"{value:.3g}" for value in told["rewards"].values()]
    entropy = "-" if told["entropy"] is None else f"{told['entropy']:.2f} nats a token"
    return [*shares, entropy, *means]


# What the folder of a run holds says who trained it.
KINDS: Mapping[str, Callable[[Namespace], int]] = MappingProxyType(
    {"ppo_config.json": _ppo, "training_config.json": _language, "rlhf_config.json": _language}
)
COMMAND = Command("evaluate", __doc__, add_arguments, run)
