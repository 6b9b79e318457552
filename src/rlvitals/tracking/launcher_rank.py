"""Read the rank of this process from the launcher's environment variables."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The rank of a process within its launch."""

    rank: int = 0
    world_size: int = 1
    launch: str = ""  # "" for a single process, or where it is unknown
    first_of_node: bool = True  # True for one process of each machine, where the launcher sets it


def read_place(environ: Mapping[str, str]) -> Place:
    """Read the launcher's variables; what is no number counts as not set.

    SLURM sets its own for a batch script too: they count where there is more than one task.
    """
    world = _first(environ, ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    rank = _first(
        environ, ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")
    )
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


def tune_experiment() -> str:
    """Return the name of the Ray Tune experiment whose trial this process is; "" outside of one."""
    ray, tune = sys.modules.get("ray"), sys.modules.get("ray.tune")
    try:
        if ray is None or tune is None or not ray.is_initialized():
            return ""  # to ask for its context would start a Ray
        if ray.get_runtime_context().get_actor_id() is None:
            return ""  # outside of a worker Tune prints a warning
        return str(tune.get_context().get_experiment_name() or "")
    except Exception:  # noqa: BLE001 - another library's, and a name only
        return ""
