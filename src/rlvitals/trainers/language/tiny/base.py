"""Make a tiny model once in its folder, atomically, and read it afterwards."""

import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import xxhash
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)
from transformers.utils import logging as logs

from rlvitals import VitalsError
from rlvitals.lab import quantity
from rlvitals.trainers.language import warm_start
from rlvitals.trainers.language.tiny import lm, vlm
from rlvitals.trainers.language.warm_start import Lessons

RECIPE_FILE, LOSSES_FILE, WEIGHTS_FILE = "made.json", "warm_start.json", "model.safetensors"
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """Functions that make, teach and read one of the tiny models."""

    task: str  # that it is taught
    make: Callable[[int], tuple[Any, Any]]
    lessons: Callable[..., Lessons]
    learning_rate: float  # of the warm start
    read: Callable[[Path], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that the weights of a tiny model come from."""

    name: str
    seed: int
    steps: int  # of the warm start
    noise: float  # share of wrong answers in it


def _read_lm(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(folder)


def _read_vlm(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    return model, AutoProcessor.from_pretrained(folder)


TINY_MODELS: Mapping[str, Kind] = MappingProxyType(
    {
        lm.LM_NAME: Kind("sums of four digits", lm.make, lm.lessons, lm.LM_LEARNING_RATE, _read_lm),
        vlm.VLM_NAME: Kind(
            "charts of different values", vlm.make, vlm.lessons, vlm.VLM_LEARNING_RATE, _read_vlm
        ),
    }
)


def load(
    recipe: Recipe, folder: Path, tell: Callable[[str], None] = logger.info
) -> tuple[Any, Any]:
    """Read the model and its processor from `folder`; make them there first where nothing is.

    Raises VitalsError for a folder of another recipe, or whose weights are not those that were
    written.
    """
    make(recipe, folder, tell)
    with quiet():
        _check(recipe, folder)
        model, processor = TINY_MODELS[recipe.name].read(folder)
    return model.eval(), processor


def make(recipe: Recipe, folder: Path, tell: Callable[[str], None] = logger.info) -> None:
    """Make the model in `folder` if it does not exist; `tell` gets the warm start's result.

    Several processes may do so at once: the first that is done is read by all.
    """
    if not folder.exists():
        with quiet():
            _make(recipe, folder, tell)


def _make(recipe: Recipe, folder: Path, tell: Callable[[str], None]) -> None:
    kind = TINY_MODELS[recipe.name]
    start = time.perf_counter()
    if recipe.steps:
        tell(f"{recipe.name} is made, and taught for {quantity(recipe.steps, 'step')} first ...")
    with _isolate_torch(recipe.seed):
        model, processor = kind.make(recipe.seed)
        losses = warm_start.teach(
            model, processor, kind.lessons(processor, noise=recipe.noise, seed=recipe.seed),
            steps=recipe.steps, learning_rate=kind.learning_rate,
        )  # fmt: skip
    if losses:
        took = time.perf_counter() - start
        tell(
            f"Warm start of {recipe.name}: {quantity(len(losses), 'step')}, "
            f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, {took:.0f} s"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise VitalsError(
            f"it cannot be written: {error.strerror}", where=str(folder), hint="--output-dir DIR"
        ) from None
    try:
        temporary.chmod(0o755)
        model.save_pretrained(temporary)
        processor.save_pretrained(temporary)
        (temporary / LOSSES_FILE).write_text(json.dumps({"loss": losses}), encoding="utf-8")
        document = {**asdict(recipe), "task": kind.task, "weights": _digest(temporary)}
        (temporary / RECIPE_FILE).write_text(json.dumps(document, indent=1), encoding="utf-8")
        _to_disk(temporary)
        _rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _isolate_torch(seed: int) -> Iterator[None]:
    """Compute in one thread, where a tiny model is fastest, with a separate random state."""
    threads, random_state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(random_state)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress bars: there is nothing to wait for."""
    is_enabled = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()
    try:
        yield
    finally:
        if is_enabled:
            logs.enable_progress_bar()


def _digest(folder: Path) -> str:
    return xxhash.xxh3_128_hexdigest((folder / WEIGHTS_FILE).read_bytes())


def _to_disk(folder: Path) -> None:
    """Have the files written before their folder gets its name: none of them is ever half there."""
    for file in folder.iterdir():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _rename(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError:
        if not (folder / RECIPE_FILE).exists():  # another process was faster, else it is an error
            raise


def _check(recipe: Recipe, folder: Path) -> None:
    hint = "name another run's folder, or remove this one: the model is made anew"
    try:
        document = json.loads((folder / RECIPE_FILE).read_text(encoding="utf-8"))
        saved_digest, digest = document.pop("weights"), _digest(folder)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise VitalsError(
            f"the tiny model cannot be read: {error}", where=str(folder), hint=hint
        ) from None
    if saved_digest != digest:
        raise VitalsError(
            "the tiny model's weights are not those that were written",
            where=str(folder / WEIGHTS_FILE), hint=hint,
        )  # fmt: skip
    task = TINY_MODELS[recipe.name].task
    # What a model was taught whose folder does not say it: the first ones did not.
    tasks = {lm.LM_NAME: "sums of two digits", vlm.VLM_NAME: "charts"}
    taught = document.get("task", tasks.get(recipe.name))  # what an earlier version asked
    if document.get("name") == recipe.name and taught != task:
        raise VitalsError(
            f"the {recipe.name} here was taught {taught}; it is taught {task} now",
            where=str(folder),
            hint="train into another folder: what this one became answers other questions",
        )
    expected = asdict(recipe)
    differences = [
        f"{key} {document.get(key)}, not {to}"
        for key, to in expected.items()
        if document.get(key) != to
    ]
    if differences:
        raise VitalsError(
            f"the tiny model here was made with {'; '.join(differences)}",
            where=str(folder),
            hint=hint,
        )
