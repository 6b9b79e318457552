"""Read the worlds benchmark, `faults/tier-2`, and label its runs by their true returns.

A world is a trainer, an environment and settings. `runs.jsonl` holds what a tracker would know of a
run, `labels.jsonl` its fault and its evaluations on the environment's own reward, which are not in
the log, `worlds.json` what random actions get. `scripts/record_worlds.py` writes all three.

Worlds are `dev` or `test` by a hash of their names, or `unseen`, as `worlds.json` states: those
score rules, and none is written by them.
"""

import hashlib
import io
import json
import math
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from rlvitals.faults.folder import INDEX_NAME, decompress
from rlvitals.faults.ground_truth import Label

LEARNED_GAIN = 0.25  # of the way from random or untrained to the world's healthy runs
FINAL_EVALUATIONS = 3  # of about 12: their mean is the outcome


class Outcome(StrEnum):
    """The outcome of a run by its true returns, in the words of `faults/real`."""

    LEARNED = "learning"
    SOLVED = "flat-solved"
    FLAT = "flat-poor"
    LOST = "lost-from-best"
    BELOW = "below-start"
    CRASHED = "crashed"
    CUT = "cut"

    @property
    def is_bad(self) -> bool:
        """True if the policy that the run ended with is poor, or the run did not end."""
        return self not in {Outcome.LEARNED, Outcome.SOLVED}


# The verdicts that are right for each outcome; `unknown` is never right.
VERDICTS_BY_OUTCOME: Mapping[Outcome, frozenset[str]] = {
    Outcome.LEARNED: frozenset({"learning", "converged", "plateau"}),
    Outcome.SOLVED: frozenset({"converged", "plateau"}),
    Outcome.FLAT: frozenset({"stalled", "failed"}),
    Outcome.LOST: frozenset({"collapsed", "unstable"}),
    Outcome.BELOW: frozenset({"collapsed", "stalled", "unstable", "failed"}),
    Outcome.CRASHED: frozenset({"failed"}),
    Outcome.CUT: frozenset({"failed", "hung"}),
}


@dataclass(frozen=True, slots=True)
class WorldRun:
    """A run of the worlds benchmark and what is true of it."""

    name: str  # <trainer>/<environment>/<number>
    world: str
    trainer: str
    seed: int
    settings: Mapping[str, Any]
    fault: str  # empty: healthy
    onset: float  # share of the run
    expects: tuple[str, ...]  # rules that may name the cause
    decidable: str  # "log", "settings": from these too, "no"
    proven: bool  # broken by construction
    blind: bool  # the fault was written from the rules' names alone
    end: str  # "finished", "killed", or its exception
    truth: tuple[float, ...]  # true returns in the course of the run
    paid: tuple[float, ...]  # the same, of training episodes: means of twelfths, NaN without any
    traits: frozenset[str]  # of the world
    random: float  # the true return of random actions
    split: str  # "dev", "test" or "unseen"

    @property
    def start(self) -> float:
        """The true return of the untrained policy."""
        return self.truth[0] if self.truth else float("nan")

    @property
    def final(self) -> float:
        """The true return at the end."""
        return float(np.mean(self.truth[-FINAL_EVALUATIONS:])) if self.truth else float("nan")

    @property
    def training_return(self) -> float:
        """The true return of the last training episodes; NaN where none ended."""
        late = [value for value in self.paid[-FINAL_EVALUATIONS:] if math.isfinite(value)]
        return float(np.mean(late)) if late else math.nan

    @property
    def best(self) -> float:
        """The best mean of as many successive evaluations."""
        count = min(FINAL_EVALUATIONS, len(self.truth))
        means = [np.mean(self.truth[i : i + count]) for i in range(len(self.truth) - count + 1)]
        return float(max(means, default=float("nan")))

    @property
    def steps(self) -> int:
        """Environment steps that were planned."""
        return int(self.settings["total_timesteps"])


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run with its outcome and its label."""

    run: WorldRun
    outcome: Outcome
    label: Label


def read(root: Path, worlds_root: Path | None = None) -> tuple[WorldRun, ...]:
    """Read every recorded run, sorted by name. `worlds_root`: has `worlds.json`, if not `root`."""
    worlds = json.loads(((worlds_root or root) / "worlds.json").read_text())
    labels = {row["name"]: row for row in _read_rows(root / "labels.jsonl")}
    return tuple(
        _run(row, labels[row["name"]], worlds[row["world"]])
        for row in sorted(_read_rows(root / INDEX_NAME), key=lambda row: str(row["name"]))
        if row["name"] in labels
    )


def _read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def _run(row: dict[str, Any], label: dict[str, Any], world: dict[str, Any]) -> WorldRun:
    return WorldRun(
        name=row["name"],
        world=row["world"],
        trainer=row["trainer"],
        seed=row["seed"],
        settings=row["settings"],
        fault=label["fault"],
        onset=label.get("onset", 0.0),
        expects=tuple(label.get("expects", ())),
        decidable=label.get("decidable", "no"),
        proven=label.get("proven", False),
        blind=label.get("blind", False),
        end=label["ended"],
        truth=tuple(value for _, value in label["truth"]),
        paid=tuple(math.nan if value is None else value for value in label["paid"]),
        traits=frozenset(world["traits"]),
        random=world["random"],
        # Else by the first byte of the SHA-256 of the name.
        split=world.get("split")
        or ("dev", "test")[hashlib.sha256(row["world"].encode()).digest()[0] % 2],
    )


def unpack(root: Path, run: WorldRun, folder: Path) -> None:
    """Write a run's log files into a folder."""
    data = decompress((root / f"{run.name}.tar.zst").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")


def label_runs(runs: Sequence[WorldRun]) -> list[LabelledRun]:
    """Label the runs of each world whose healthy runs learned, or that is solved from the start."""
    labelled: list[LabelledRun] = []
    for world in sorted({run.world for run in runs}):
        world_runs = [run for run in runs if run.world == world]
        reference = _reference([run for run in world_runs if not run.fault])
        if reference is not None:
            labelled += [_label(run, reference) for run in world_runs]
    return labelled


@dataclass(frozen=True, slots=True)
class _Reference:
    """The true returns of a world's healthy runs."""

    start: float  # of random actions or untrained policies, whichever is higher
    usual: float  # median of the ends
    worst: float  # of the ends of those that learned
    way: float  # from start to end
    margin: float  # below the worst: what a run must lose to be broken
    min_training_return: float  # of training episodes, that is as good as healthy runs earn
    is_solved: bool  # from the start


def _reference(healthy: Sequence[WorldRun]) -> _Reference | None:
    finals = [run.final for run in healthy if run.end == "finished"]
    if not finals:
        return None
    usual = float(np.median(finals))
    start = max(healthy[0].random, float(np.median([run.start for run in healthy])))
    scatter = float(np.median([np.std(run.truth[-(len(run.truth) // 3) :]) for run in healthy]))
    way = usual - start
    if is_solved := "saturated" in healthy[0].traits:
        way = max(way, 0.1 * abs(usual))
    elif way <= 2.0 * scatter:  # within the scatter of the last evaluations nobody learns
        return None
    learned = [final for final in finals if is_solved or final - start >= LEARNED_GAIN * way]
    margin = max(0.15 * way, scatter)  # below the worst healthy run
    # 15 % of the gain of training below the worst run.
    runs = [run for run in healthy if run.final in learned]
    returns = [run.training_return for run in runs]
    starts = [next((v for v in run.paid if math.isfinite(v)), math.nan) for run in runs]
    min_training_return = min(returns) - 0.15 * float(np.median(returns) - np.median(starts))
    return _Reference(start, usual, min(learned), way, margin, min_training_return, is_solved)


def _label(run: WorldRun, reference: _Reference) -> LabelledRun:
    outcome = _outcome(run, reference)
    if not run.fault:
        return LabelledRun(run, outcome, Label.OWN_FAILURE if outcome.is_bad else Label.HEALTHY)
    reached = run.final >= reference.worst - reference.margin
    # The episodes of an evaluation are the same each time and others in the next run: their luck is
    # not in the scatter. What hundreds of training episodes earned tells it from harm.
    reached = reached or (
        outcome is Outcome.LEARNED and run.training_return >= reference.min_training_return
    )
    harmed = outcome in {Outcome.CRASHED, Outcome.CUT} or not reached
    return LabelledRun(run, outcome, Label.BROKEN if harmed or run.proven else Label.BENIGN)


def _outcome(run: WorldRun, reference: _Reference) -> Outcome:
    if run.end == "killed":
        return Outcome.CUT
    if run.end != "finished":
        return Outcome.CRASHED
    way = reference.way
    if reference.is_solved and run.final >= reference.usual - reference.margin:
        return Outcome.SOLVED
    gain = run.best - reference.start
    # A policy that stays at its start learns nothing.
    if gain < LEARNED_GAIN * way or run.best - run.start < 0.1 * way:
        fell = run.final < min(run.start, reference.start) - LEARNED_GAIN * way
        return Outcome.BELOW if fell else Outcome.FLAT
    if "regime" in run.traits:  # what it earned before the world changed is no gain lost
        is_lost = run.final - reference.start < LEARNED_GAIN * way
    else:
        is_lost = run.best - run.final > 0.5 * gain
    return Outcome.LOST if is_lost else Outcome.LEARNED
