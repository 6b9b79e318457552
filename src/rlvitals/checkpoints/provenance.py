"""The conditions of a bit-exact resume, and what differs now."""

import os
import platform
import sys
from collections.abc import Mapping
from hashlib import blake2b
from importlib import metadata
from json import dumps

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.manifest import Manifest
from rlvitals.checkpoints.training_code import code
from rlvitals.storage import redact


def current_versions() -> dict[str, str]:
    """Return what this process computes with: versions, machine, threads."""
    torch = sys.modules.get("torch")
    if torch is not None:
        threads = str(torch.get_num_threads())
    else:
        threads = os.environ.get("OMP_NUM_THREADS", str(os.cpu_count()))
    versions = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "host": naming.host_id(),
        "threads": threads,
    }
    # Of what is loaded, what computes: another version of it may round otherwise.
    packages = (
        "torch", "numpy", "gymnasium", "stable_baselines3", "transformers", "trl", "peft",
        "accelerate", "jax", "numba", "ale_py", "bitsandbytes", "datasets", "deepspeed", "envpool",
        "flash_attn", "flax", "jaxlib", "lightning", "mujoco", "optax", "pufferlib",
        "pytorch_lightning", "ray", "sb3_contrib", "scipy", "tokenizers", "triton", "vllm",
        "xformers",
    )  # fmt: skip
    for name in packages:
        if name in sys.modules:
            version = getattr(sys.modules[name], "__version__", None)
            if version is not None:
                versions[name] = str(version)
            else:
                versions[name] = _installed_version(name) or "unknown"
    return versions


def hash_settings(settings: Mapping[str, object]) -> str:
    """Return 16 characters that identify settings, as stored without secrets."""
    text = dumps(redact.clean_mapping(dict(settings)), sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def compare(
    sealed: Manifest, world_size: int, settings: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare this process with the one that saved: the differences, and what is unknown."""
    compared = code.compare(sealed.code)
    differs = differences(sealed, current_versions(), world_size, settings)
    return (*differs, *compared.differs), compared.unverified


def differences(
    sealed: Manifest, versions: Mapping[str, str], world_size: int, settings: str
) -> tuple[str, ...]:
    """Return why a run may not continue bit for bit from a checkpoint; empty if it does."""
    reasons = []
    if sealed.world_size != world_size:
        reasons.append(_describe_world_sizes(sealed.world_size, world_size))
    if sealed.settings_hash and settings and sealed.settings_hash != settings:
        reasons.append("the settings are others")
    for name, saved_version in sealed.versions.items():
        version = versions.get(name)
        if name == "host":
            if version != saved_version:
                reasons.append("this is another machine")
        elif version is not None and version != saved_version:
            reasons.append(f"{name} is {version}, it was {saved_version}")
        elif version is None and (installed := _installed_version(name)) != saved_version:
            reasons.append(f"{name} is {installed or 'not installed'}, it was {saved_version}")
    unsaved = sealed.facts.get("not_saved", ())
    if isinstance(unsaved, list | tuple):
        reasons += [f"{part_name} was not saved" for part_name in unsaved]
    return tuple(reasons)


def _describe_world_sizes(saved: int, current: int) -> str:
    first, last = min(saved, current), max(saved, current) - 1
    processes = f"process {last}" if first == last else f"processes {first} to {last}"
    streams = (
        f"the random streams of {processes} are lost"
        if saved > current
        else f"{processes} had no random streams"
    )
    by = f"{saved} process{'es' * (saved > 1)}, {current} go{'es' * (current == 1)} on"
    return f"it was saved by {by}: the data order changes, and {streams}"


def _installed_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
