"""Gather the facts needed to repeat a run: code, packages, machine, seeds, command.

It takes tenths of a second (git, the list of packages), so `gather` is called on a
thread. What cannot be had is left out; nothing is raised. Secrets are taken out, and no path
leads to a person's own folder.
"""

import hashlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.storage import redact
from rlvitals.storage.redact_patterns import is_drawn
from rlvitals.tracking import launcher_rank

MAX_DIFF_BYTES = 256 * 1024  # of a diff that is kept
MAX_GIT_OUTPUT_BYTES = (
    4 * MAX_DIFF_BYTES
)  # of git's output: a checked-in data file can change by gigabytes
SEED_NAME = lazy_pattern(r"(?:^|[/_.\-])(?:random_?)?seeds?(?:$|[/_.\-])|_rng$", re.IGNORECASE)
# The names of folders are PyPA's: "Recording installed projects".
PACKAGE_FOLDER = lazy_pattern(
    r"([A-Za-z0-9][\w.]*)-([^-]+?)(?:-py[\d.]+)?\.(?:dist-info|egg-info|egg)"
)
SECRET_FILE = lazy_pattern(
    r"[ /](?:[\w.-]*\.env|\.env\.[\w.-]+|\.(?:netrc|npmrc|pypirc|pgpass|htpasswd)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[\w.-]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|tfvars)"
    r"|\.?(?:credentials|secrets?)(?:\.\w+)?)$"
)
QUOTED_TEXT = lazy_pattern(r"([\"'])([\w+/=.-]{16,200})\1")


def gather(settings: Mapping[str, object] | None = None) -> dict[str, object]:
    """Gather the facts, each under its own name.

    command [str], directory, git {commit, branch, dirty, diff, untracked, remote}, packages
    {name: version}, python, host {name, os, processor, cores, memory_gib, gpus}, environment
    {variable: value}, seeds {name: number}, settings_hash (of the settings without secrets), job
    {scheduler, id, array_index, node, restarts} where a scheduler started the process.
    """
    # A module that is run keeps its `-m`.
    arguments = list(getattr(sys, "orig_argv", ())) or [sys.executable, *sys.argv]
    facts: dict[str, object] = {
        "command": list(
            redact.command([Path(arguments[0]).name, *arguments[1:]] if arguments else [])
        ),
        "directory": _directory(),
        "git": git(_program_folder()),
        "packages": packages(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "host": host(),
        "environment": environment(),
        "seeds": seeds(settings or {}),
        "settings_hash": settings_hash(settings or {}),
        "job": job(os.environ),
    }
    return redact.clean_mapping({name: fact for name, fact in facts.items() if fact})


def settings_hash(settings: Mapping[str, object]) -> str:
    """Return 16 hex digits that two runs of the same settings share, in whatever order."""
    if not settings:
        return ""
    text = json.dumps(redact.mapping(settings), sort_keys=True, default=str, skipkeys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def seeds(settings: Mapping[str, object]) -> dict[str, object]:
    """Return every seed of the settings, of the environment, and of torch where it is loaded."""
    seeds = dict(_find_seeds("", settings))
    hash_seed = os.environ.get("PYTHONHASHSEED", "")
    if hash_seed:
        seeds["PYTHONHASHSEED"] = hash_seed
    torch = sys.modules.get("torch")
    torch_seed = _call_or_none(lambda: int(torch.initial_seed())) if torch is not None else None
    # torch's default seed is larger, where none was set.
    if isinstance(torch_seed, int) and torch_seed < 2**32:
        seeds["torch"] = torch_seed
    return seeds


def environment() -> dict[str, str]:
    """Return the variables that change what a run does, without secrets."""
    # Variables that change what a run does, by name or by beginning.
    names = {
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONHASHSEED",
        "CUBLAS_WORKSPACE_CONFIG", "TOKENIZERS_PARALLELISM", "WORLD_SIZE", "RANK", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV", "LD_PRELOAD", "PYTHONPATH",
        "MUJOCO_GL", "ACCELERATE_MIXED_PRECISION", "HF_HOME", "HF_HUB_OFFLINE", "TZ",
    }  # fmt: skip
    prefixes = (
        "SLURM_JOB", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_ARRAY", "PBS_JOB", "LSB_JOB", "NCCL_",
        "TORCH_", "PYTORCH_", "TORCHELASTIC_", "XLA_", "JAX_", "VLLM_", "FSDP_", "ACCELERATE_",
        "DEEPSPEED_", "RAY_", "RLVITALS_",
    )  # fmt: skip
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith(prefixes)
    }
    return redact.mapping(dict(sorted(variables.items())))


def job(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the job that a scheduler started this process in: its id, index, node and restarts.

    Of Slurm; of Ray, alone or within the others; and of Kubernetes, where `JOB_NAME`, `NODE_NAME`
    and `JOB_RESTARTS` are set by the job's own file: a container knows only its index.
    Empty outside of them.
    """
    variables = launcher_rank.with_ray_job(variables)
    if "SLURM_JOB_ID" in variables:
        scheduler, names = (
            "Slurm",
            {
                "id": ("SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID"),
                "array_index": ("SLURM_ARRAY_TASK_ID",),
                "node": ("SLURMD_NODENAME",),
                "restarts": ("SLURM_RESTART_COUNT",),
                "partition": ("SLURM_JOB_PARTITION",),
            },
        )
    elif "KUBERNETES_SERVICE_HOST" in variables:
        scheduler, names = (
            "Kubernetes",
            {
                "id": ("JOB_NAME", "HOSTNAME"),
                "array_index": ("JOB_COMPLETION_INDEX",),
                "node": ("NODE_NAME",),
                "restarts": ("JOB_RESTARTS",),
            },
        )
    elif "RAY_JOB_ID" in variables:
        scheduler, names = "Ray", {"id": ("RAY_JOB_ID",)}
    else:
        return {}
    if scheduler != "Ray":
        names = {**names, "ray_job": ("RAY_JOB_ID",)}
    values = {
        name: next((variables[key] for key in keys if variables.get(key)), "")
        for name, keys in names.items()
    }
    return {"scheduler": scheduler, **{name: value for name, value in values.items() if value}}


def packages() -> dict[str, str]:
    """Return every installed package with its version, by name.

    Read from the names of their folders: opening hundreds of files takes a hundred times as long.
    """
    versions: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = [entry.name for entry in os.scandir(folder or ".")]
        except OSError:
            continue
        for name in names:
            if (match := PACKAGE_FOLDER.fullmatch(name)) is not None:
                versions.setdefault(match[1].replace("_", "-").lower(), match[2])
    return dict(sorted(versions.items()))


def host() -> dict[str, object]:
    """Return the machine: its name, system, processor, cores, memory in GiB, graphics cards."""
    from rlvitals.tracking import machine  # noqa: PLC0415 - loads psutil, on the thread of facts

    facts: dict[str, object] = {
        "name": socket.gethostname(),
        "os": platform.platform(terse=True),
        "processor": _processor(),
        "cores": machine.cores(),
        "memory_gib": machine.memory_gib(),
        "gpus": machine.gpus(),
    }
    return {name: value for name, value in facts.items() if value}


def git(folder: Path) -> dict[str, object]:
    """Return the commit, the branch and what is changed in the repository of a folder.

    Empty where there is no repository or no git. Nothing of the repository's own configuration
    is run, and nothing in it is written.
    """
    head = _git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
    if head is None:
        return {}
    commit, _, branch = head.partition("\n")
    status = _git(folder, "status", "--porcelain=v1", "--untracked-files=normal")
    lines = (status or "").splitlines()
    is_dirty = any(not line.startswith("??") for line in lines)
    diff = ""
    if is_dirty or status is None:  # git compares every file once more
        diff = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD") or ""
    diff = redact.text(_drop_secret_files(diff))
    data = diff.encode()
    diff_facts: dict[str, object] = {"diff": diff}
    if len(data) > MAX_DIFF_BYTES:  # its complete lines up to the limit
        text = data[: data.rfind(b"\n", 0, MAX_DIFF_BYTES) + 1].decode(errors="replace")
        diff_facts = {"diff": text, "diff_cut": True}
    untracked = [line[3:] for line in lines if line.startswith("??")]
    facts: dict[str, object] = {
        "commit": commit,
        "branch": branch.strip(),
        "dirty": is_dirty,
        "remote": redact.text((_git(folder, "remote", "get-url", "origin") or "").strip()),
        "untracked": untracked[:100],
        "untracked_count": len(untracked),
        **diff_facts,
    }
    return {name: value for name, value in facts.items() if value or name == "dirty"}


def _drop_secret_files(diff: str) -> str:
    """Redact the files of a diff that contain secrets, and random keys in the others.

    In a program a quoted text that mixes cases and digits is an API key far more often than not.
    """
    sections = re.split(r"(?m)^(?=diff --git )", diff)
    return "".join(
        f"{section.splitlines()[0]}\n{redact.REDACTED}\n"
        if SECRET_FILE.search(section.partition("\n")[0])
        else QUOTED_TEXT.sub(_mask_key, section)
        for section in sections
        if section
    )


def _mask_key(match: re.Match[str]) -> str:
    return f"{match[1]}{redact.REDACTED}{match[1]}" if is_drawn(match[2]) else match[0]


def _git(folder: Path, *arguments: str) -> str | None:
    """Run git and read the beginning of its output; None where it fails or times out."""
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
    try:
        process = subprocess.Popen(  # noqa: S603 - fixed words, no shell
            ["git", "-C", str(folder), *safe, *arguments],  # noqa: S607 - the person's own git
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    with process:
        # The facts of a repository on a slow disk are left out.
        timer = threading.Timer(10.0, process.kill)
        timer.daemon = True
        timer.start()
        output = b"" if process.stdout is None else process.stdout.read(MAX_GIT_OUTPUT_BYTES + 1)
        if len(output) > MAX_GIT_OUTPUT_BYTES:
            process.kill()
        code = process.wait()
        timer.cancel()
    if code and len(output) <= MAX_GIT_OUTPUT_BYTES:
        return None
    return output[:MAX_GIT_OUTPUT_BYTES].decode(errors="replace")


def _program_folder() -> Path:
    """Return the folder of the running program; in a notebook the working folder."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    folder = Path(file).resolve().parent if isinstance(file, str) else None
    return folder if folder is not None and folder.is_dir() else Path()


def _directory() -> str:
    """Return the working folder: relative to the home folder, else its last part.

    No absolute path is kept: a run can be moved.
    """
    folder = _call_or_none(os.getcwd)
    if not isinstance(folder, str):
        return ""
    try:
        return str(Path("~") / Path(folder).relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return Path(folder).name


def _processor() -> str:
    """Return the processor's name; on Linux from /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def _find_seeds(prefix: str, settings: Mapping[str, object]) -> list[tuple[str, object]]:
    seeds: list[tuple[str, object]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            seeds += _find_seeds(f"{name}/", value)
        elif SEED_NAME.search(str(key)) and isinstance(value, int | float | str | list | tuple):
            seeds.append((name, value))
    return seeds


def _call_or_none(ask: Callable[[], object]) -> object:
    """Call another library; None where it raises."""
    try:
        return ask()
    except Exception:  # noqa: BLE001 - a fact that cannot be had must not stop a training run
        return None
