"""Evaluate a trained policy: its newest complete checkpoint, on held-out data.

A scheduler of `rlvitals train ppo` is evaluated by its latency on held-out arrivals, together with
heuristic schedulers (--no-baselines: without them); any other policy of it by the return of whole
episodes. A language model of `rlvitals train grpo | psr | nsr | w-reinforce | rlhf` is evaluated
on held-out questions, by its greedy answers and by pass@k, the probability that one of k sampled
answers is right. The run is not changed.

exit code: 0; 2 if the folder contains no such run.

examples:
  rlvitals evaluate outputs/ppo
  rlvitals evaluate outputs/ppo --replicas 16 --load 0.9
  rlvitals evaluate outputs/ppo --checkpoint best
  rlvitals evaluate runs/cartpole --episodes 100 --json
  rlvitals evaluate runs/sums --base
  rlvitals evaluate runs/sums --checkpoint 250 --samples 256
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
from rlvitals.errors import UsageError, quantity

if TYPE_CHECKING:
    from rlvitals.trainers.language.evaluate_model import Evaluated, Trained

BEST_CHECKPOINT: Final = "best"
STEPS_PER_REPLICA = 300  # decisions for each replica: equal simulated time at every cluster size


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the extent of the evaluation and the output."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--checkpoint", type=_step, metavar="STEP",
        help="of this step, not the newest whole one; of rlvitals train ppo also `best`:"
        " by its --keep-best",
    )  # fmt: skip
    ppo = parser.add_argument_group("a run of rlvitals train ppo")
    ppo.add_argument(
        "--baselines", action=BooleanOptionalAction, default=True,
        help="evaluate heuristic schedulers, too (default: yes)",
    )  # fmt: skip
    ppo.add_argument("--seeds", type=int, default=5, metavar="N", help="arrival streams (5)")
    ppo.add_argument("--envs", type=int, default=32, metavar="N", help="clusters per stream (32)")
    ppo.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help=f"decisions of each cluster ({STEPS_PER_REPLICA} for each of its replicas)",
    )
    ppo.add_argument("--replicas", type=int, metavar="N", help="number of replicas (the run's)")
    ppo.add_argument("--load", type=float, metavar="X", help="load of the cluster (the run's)")
    ppo.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="in other environments (100)"
    )
    language = parser.add_argument_group("a language model")
    language.add_argument(
        "--base", action="store_true", help="also evaluate the model before training"
    )
    language.add_argument(
        "--questions", type=int, default=0, metavar="N", help="number of questions (0: all)"
    )
    language.add_argument(
        "--samples", type=int, default=64, metavar="N", help="answers a question for pass@k (64)"
    )


def _step(text: str) -> int | Literal["best"]:
    if text == BEST_CHECKPOINT:
        return BEST_CHECKPOINT
    step = text.rstrip("/").rpartition("-")[2]
    if not step.isdecimal():
        raise ArgumentTypeError(f"{text!r} is neither a step nor a checkpoint's name nor best")
    return int(step)


def run(args: Namespace) -> int:
    """Evaluate and print."""
    for file, evaluate in RUN_EVALUATORS.items():
        if (args.run / file).is_file():
            return evaluate(args)
    raise UsageError(
        f"there is no {' or '.join(RUN_EVALUATORS)}",
        where=str(args.run),
        hint="rlvitals train nsr",
    )


def _ppo(args: Namespace) -> int:
    from rlvitals.trainers.ppo import cluster, evaluate

    best = args.checkpoint == BEST_CHECKPOINT
    trained = evaluate.load(args.run, step=None if best else args.checkpoint, best=best)
    env = trained.config.training.env
    overrides = {name: getattr(args, name) for name in ("replicas", "load")}
    overrides = {name: value for name, value in overrides.items() if value is not None}
    if overrides and env != cluster.ID:
        raise UsageError(
            f"{env} has no {' or '.join(overrides)}", where=f"--{next(iter(overrides))}"
        )
    if env == cluster.ID:
        if overrides:
            trained = evaluate.on_other_cluster(trained, overrides)
        results = evaluate.on_cluster(
            trained,
            seeds=range(args.seed, args.seed + args.seeds),
            envs=args.envs,
            steps=args.steps or STEPS_PER_REPLICA * trained.config.cluster.replicas,
            baselines=args.baselines,
        )
        if args.json:
            rows = {
                name: [asdict(evaluation) for evaluation in each] for name, each in results.items()
            }
            print(json.dumps({"env": env, "step": trained.step, "evaluations": rows}))
        else:
            serving = trained.config.cluster
            print(f"{env} at step {trained.step:,}, {args.seeds} streams of held-out arrivals")
            print(f"{serving.replicas} replicas, load {serving.load:g}\n")
            print(f"{cluster.table(results)}\n\n{cluster.sentence(results)}")
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
    episodes = quantity(len(returns), "episode")
    return (
        f"{env} at step {step:,}: mean return {fmean(returns):.1f} of {episodes} "
        f"(median {median(returns):.1f}, sd {spread:.1f}, {min(returns):.1f} to {max(returns):.1f})"
    )


def _language(args: Namespace) -> int:
    from rlvitals.views.console import emit

    if args.checkpoint == BEST_CHECKPOINT:
        raise UsageError("no checkpoint of a language model is the best", hint="--checkpoint STEP")
    policies = []
    with redirect_stdout(sys.stderr):  # transformers prints there, as with WANDB_MODE=offline
        for trained, evaluation in _evaluate_policies(args):
            policies.append({"step": trained.step, **_to_document(evaluation, args.seed)})
    subject = {"mode": trained.config.training.mode, "task": trained.config.data.dataset_name}
    options = {"questions": evaluation.questions, "samples": evaluation.samples, "seed": args.seed}
    options |= {"judge": trained.judge}
    temperature = trained.policy.temperature
    if args.json:
        print(json.dumps({**subject, **options, "temperature": temperature, "policies": policies}))
        return 0
    if form := _form(args.run, policies):
        print(f"{form}\n")
    print(f"{subject['mode']} on {subject['task']}, {evaluation.questions:,} questions\n")
    from rlvitals.views.lists import columns

    heads = [f"step {each['step']:,}" if each["step"] else "as training began" for each in policies]
    chances = [f"pass@{estimate['k']}" for estimate in policies[0]["pass_at_k"]]
    names = ["right", *chances, "entropy", *policies[0]["rewards"]]
    emit(columns(["", *heads], zip(names, *map(_cells, policies), strict=True)))
    print(f"\nright: the likeliest answer, judged by {trained.judge} (95 % interval: Wilson's).")
    if evaluation.samples:
        print(
            f"pass@k: at least one of k answers is right, told from {evaluation.samples} to each\n"
            f"question, drawn at temperature {temperature:g} (95 % interval: a bootstrap over "
            "questions)."
        )
    if rewards := policies[0]["rewards"]:
        print(f"{', '.join(rewards)}: mean reward of the likeliest answer.")
    for note in trained.notes:
        print(f"{note}.")
    print(f"\n{_sentence(subject, evaluation.questions, policies)}")
    return 0


def _form(run: Path, policies: Sequence[Mapping[str, Any]]) -> str:
    """Return a warning if only the form of the answers improved, else an empty string.

    Compares with the evaluation of the initial policy if there is one, else reads the log.
    """
    import rlvitals
    from rlvitals.rules import form

    base = next((policy for policy in policies[1:] if not policy["step"]), None)
    if base is not None:
        return form.of_evaluations(base, policies[0])
    try:
        return form.describe_form_gain(rlvitals.trace(run))
    except rlvitals.VitalsError:  # the checkpoint is what is evaluated, and may be all there is
        return ""


def _sentence(
    subject: Mapping[str, str], questions: int, policies: Sequence[Mapping[str, Any]]
) -> str:
    """Return the result of the evaluation as one sentence."""
    right = policies[0]["right"]
    baseline = "".join(
        f"; before training {policy['right']['value']:.1%}"
        for policy in policies[1:]
        if not policy["step"]
    )
    unit = "updates" if subject["mode"] == "rlhf" else "steps"
    return (
        f"After {policies[0]['step']:,} {unit} of {subject['mode']}, {right['value']:.1%} of "
        f"{questions:,} held-out questions are answered right "
        f"(95% interval {right['low']:.1%} to {right['high']:.1%}){baseline}."
    )


def _evaluate_policies(args: Namespace) -> Iterator[tuple["Trained", "Evaluated"]]:
    """Evaluate one policy after the other, with a progress bar on stderr."""
    from rlvitals.trainers.language import evaluate_model
    from rlvitals.trainers.language.console import Progress

    evaluate_model.quiet()
    for step in (args.checkpoint, 0) if args.base else (args.checkpoint,):
        trained = evaluate_model.load(args.run, step=step)
        title = f"Evaluating step {trained.step:,}"
        progress = Progress(wanted=True, title=title, stream=sys.stderr)
        evaluation = evaluate_model.evaluate(
            trained, questions=args.questions, samples=args.samples, seed=args.seed,
            progress=progress,
        )  # fmt: skip
        progress.close()
        yield trained, evaluation


def _to_document(evaluation: "Evaluated", seed: int) -> dict[str, Any]:
    from rlvitals.rules.rate import wilson
    from rlvitals.trainers.language import pass_at_k

    share = wilson(evaluation.right, evaluation.questions)
    document: dict[str, Any] = {
        "right": {"value": evaluation.right / evaluation.questions, **asdict(share)},
        "pass_at_k": [],
        "entropy": None,
        "rewards": dict(evaluation.rewards),
    }
    if evaluation.samples:
        ks = pass_at_k.powers(evaluation.samples)
        chances = pass_at_k.estimate(evaluation.right_samples, evaluation.samples, ks, seed=seed)
        document |= {
            "pass_at_k": [asdict(estimate) for estimate in chances],
            "entropy": evaluation.entropy,
        }
    return document


def _cells(policy: Mapping[str, Any]) -> list[str]:
    rows = [policy["right"], *policy["pass_at_k"]]
    shares = [
        f"{estimate['value']:.1%} ({estimate['low']:.1%} to {estimate['high']:.1%})"
        for estimate in rows
    ]
    means = ["-" if value is None else f"{value:.3g}" for value in policy["rewards"].values()]
    entropy = "-" if policy["entropy"] is None else f"{policy['entropy']:.2f} nats a token"
    return [*shares, entropy, *means]


# The settings file in a run's folder identifies the trainer.
RUN_EVALUATORS: Mapping[str, Callable[[Namespace], int]] = MappingProxyType(
    {"ppo_config.json": _ppo, "training_config.json": _language, "rlhf_config.json": _language}
)
COMMAND = Command("evaluate", __doc__, add_arguments, run)
