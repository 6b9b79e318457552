"""Read the rank of this process from the launcher's environment variables."""

import sys
from collections.abc import Mapping
from typing import Any

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The rank of a process within its launch."""

    rank: int = 0
    world_size: int = 1
    launch: str = ""  # "" for a single process, or where it is unknown
    first_of_node: bool = True  # True for one process of each machine, where the launcher sets it


def read_place(environ: Mapping[str, str]) -> Place:
    """Read the launcher's variables; what is no number counts as not set.

    SLURM sets its own for a batch script too: they count where there is more than one task. In a
    worker of Ray they are those of `ray start`, and count for nothing.
    """
    in_ray = "RAY_JOB_ID" in environ
    if in_ray:
        foreign_prefixes = ("SLURM_", "OMPI_", "PMI_", "MPI_")
        environ = {
            key: text for key, text in environ.items() if not key.startswith(foreign_prefixes)
        }
    world = _first(environ, ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    rank = _first(
        environ, ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")
    )
    if in_ray and rank is None:
        # The trainer of a worker of Ray Train may set no variables.
        try:
            context = _train_context()
            if context is None or context.get_world_size() <= 1:
                return Place()
            # Each start has another one.
            group = sys.modules["ray"].util.get_current_placement_group()
            launch = group.id.hex() if group is not None else ""
            rank, size = context.get_world_rank(), context.get_world_size()
            return Place(rank, size, launch, context.get_local_rank() == 0)
        except Exception:  # noqa: BLE001 - another library's: the training goes on as a lone process
            return Place()
    if rank is None or (world is not None and world <= 1):
        return Place()
    size = max(world or 1, rank + 1)
    local = _first(
        environ, ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    )
    first = (rank if local is None else local) == 0
    return Place(rank, size, _launch(environ) if size > 1 else "", first)


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    texts = (environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isascii() and text.isdigit()), None)


def _launch(environ: Mapping[str, str]) -> str:
    # What differs from launch to launch and is the same on all ranks.
    for names in (
        ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
        ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
        ("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"),
    ):
        if environ.get(names[0], "none") != "none" or environ.get(names[-1]):
            return "/".join(environ[name] for name in names if environ.get(name))
    return ""


def ray_experiment() -> str:
    """Return the name of the experiment of Ray Tune or Train that this process works for, or ""."""
    try:
        context = _train_context() or _tune_context()
        return str(context.get_experiment_name() or "") if context else ""
    except Exception:  # noqa: BLE001 - another library's, and a name only
        return ""


def _train_context() -> Any:  # noqa: ANN401 - Ray's
    """Return Ray Train's context; None outside of one of its workers."""
    train = sys.modules.get("ray.train")
    try:
        if train is None or not _is_in_actor():
            return None
        context = train.get_context()  # an error outside of a worker
        return context if isinstance(context.get_world_rank(), int) else None
    except Exception:  # noqa: BLE001 - another library's
        return None


def _tune_context() -> Any:  # noqa: ANN401 - Ray's
    """Return Ray Tune's context; None outside of a worker, where Tune prints a warning."""
    tune = sys.modules.get("ray.tune")
    return tune.get_context() if tune is not None and _is_in_actor() else None


def _is_in_actor() -> bool:
    ray = sys.modules.get("ray")
    # To ask for its context would start a Ray where there is none.
    return bool(
        ray is not None
        and ray.is_initialized()
        and ray.get_runtime_context().get_actor_id() is not None
    )


def with_ray_job(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with the id of Ray's job, which a worker started before it lacks."""
    ray = sys.modules.get("ray")
    try:
        if set(environ.get("RAY_JOB_ID", "")) != {"f"} or ray is None or not ray.is_initialized():
            return environ
        return {**environ, "RAY_JOB_ID": str(ray.get_runtime_context().get_job_id())}
    except Exception:  # noqa: BLE001 - another library's, and a number only
        return environ
