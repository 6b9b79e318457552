"""List what is installed: versions, optional packages, and what each is for."""

import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import rlvitals

# Distribution, what it is for, and the extra that installs it; "" for a part of the core.
PACKAGES = (
    ("numpy", "reading and judging", ""),
    ("rich", "the terminal", ""),
    ("matplotlib", "rlvitals plot", "plot"),
    ("pyarrow", "Parquet", "parquet"),
    ("xlsxwriter", "spreadsheets", "xlsx"),
    ("fsspec", "URLs", "remote"),
    ("wandb", "wandb:entity/project/run", "wandb"),
    ("mlflow-skinny", "mlflow:http://host", "mlflow"),
    ("huggingface_hub", "hf:user/repo", "hub"),
    ("torch", "rlvitals train", "train"),
    ("gymnasium", "rlvitals train ppo", "train"),
    ("trl", "rlvitals train grpo", "language"),
)


def lines() -> list[str]:
    """Return a line for each version, and how to install what is absent."""
    extension = any(Path(rlvitals.__file__).parent.glob("tracking/shortcut*.so"))
    rows = [
        f"rlvitals {rlvitals.__version__} ({'with' if extension else 'without'} compiled code)",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        f"{platform.system()} {platform.release()}, {platform.machine()}",
    ]
    for name, use, extra in PACKAGES:
        version = _version(name)
        text = version or f'absent: pip install "rlvitals[{extra}]"'
        rows.append(f"{name} {text} ({use})")
    return rows


def _version(name: str) -> str:
    """Return a distribution's version; of one without metadata, that it is there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        full = name.removesuffix("-skinny")  # MLflow comes in two sizes
        return "installed" if find_spec(full) else ""
