"""What must be the same for a resumed run to go on bit for bit, and what is different now."""

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

# Of what is loaded, what computes: another version of it may round otherwise.
PACKAGES = (
    "torch", "numpy", "gymnasium", "stable_baselines3", "transformers", "trl", "peft", "accelerate",
    "jax", "numba", "ale_py", "bitsandbytes", "datasets", "deepspeed", "envpool", "flash_attn",
    "flax", "jaxlib", "lightning", "mujoco", "optax", "pufferlib", "pytorch_lightning", "ray",
    "sb3_contrib", "scipy", "tokenizers", "triton", "vllm", "xformers",
)  # fmt: skip
DISTRIBUTIONS = {"stable_baselines3": "stable-baselines3"}
THREADS = "OMP_NUM_THREADS"


def now() -> dict[str, str]:
    """Name what this process computes with: versions, machine, threads."""
    found = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "host": naming.host(),
        "threads": _threads(),
    }
    for name in PACKAGES:
        if name in sys.modules:
            found[name] = _version(name)
    return found


def settings_hash(settings: Mapping[str, object]) -> str:
    """Tell settings from others in 16 characters: as they are stored, without secrets."""
    text = dumps(redact.clean_mapping(dict(settings)), sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def compare(
    sealed: Manifest, world_size: int, settings: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare this process with the one that saved: what differs, and what cannot be compared."""
    compared = code.compare(sealed.code)
    differs = differences(sealed, now(), world_size, settings)
    return (*differs, *compared.differs), compared.unverified


def differences(
    sealed: Manifest, versions: Mapping[str, str], world_size: int, settings: str
) -> tuple[str, ...]:
    """Say why a run that goes on from a checkpoint may not do so bit for bit; empty: it does."""
    found = []
    if sealed.world_size != world_size:
        found.append(_other_world(sealed.world_size, world_size))
    if sealed.settings_hash and settings and sealed.settings_hash != settings:
        found.append("the settings are others")
    for name, then in sealed.versions.items():
        today = versions.get(name)
        if name == "host":
            if today != then:
                found.append("this is another machine")
        elif today is not None and today != then:
            found.append(f"{name} is {today}, it was {then}")
        elif today is None and (there := _installed(name)) != then:
            found.append(f"{name} is {there or 'not installed'}, it was {then}")
    lost = sealed.facts.get("not_saved", ())
    if isinstance(lost, list | tuple):
        found += [f"{what} was not saved" for what in lost]
    return tuple(found)


def _other_world(then: int, now: int) -> str:
    first, last = min(then, now), max(then, now) - 1
    who = f"process {last}" if first == last else f"processes {first} to {last}"
    lost = f"the random streams of {who} are lost" if then > now else f"{who} had no random streams"
    by = f"{then} process{'es' * (then > 1)}, {now} go{'es' * (now == 1)} on"
    return f"it was saved by {by}: the data order changes, and {lost}"


def _threads() -> str:
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(torch.get_num_threads())
    return os.environ.get(THREADS, str(os.cpu_count()))


def _version(name: str) -> str:
    own = getattr(sys.modules[name], "__version__", None)
    if own is not None:
        return str(own)
    return _installed(name) or "unknown"


def _installed(name: str) -> str:
    try:
        return metadata.version(DISTRIBUTIONS.get(name, name))
    except metadata.PackageNotFoundError:
        return ""
