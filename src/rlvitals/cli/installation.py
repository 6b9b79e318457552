"""List what is installed: versions, optional packages, and what each is for."""

import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import rlvitals

# Distribution, what it is for, and the extra of ours that installs it; "" where none does.
PACKAGES = (
    ("numpy", "reading and judging", ""),
    ("rich", "the terminal", ""),
    ("matplotlib", "pictures as files", "plot"),
    ("pyarrow", "Parquet", "parquet"),
    ("xlsxwriter", "spreadsheets", "xlsx"),
    ("fsspec", "URLs", "remote"),
    ("wandb", "wandb:entity/project/run", ""),
    ("mlflow-skinny", "mlflow:http://host", ""),
    ("huggingface_hub", "hf:user/repo", ""),
    ("torch", "trainings of our own", "train"),
    ("gymnasium", "environments", "train"),
    ("trl", "language models", "language"),
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
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:  # a distribution without metadata may be there
            full = name.removesuffix("-skinny")  # MLflow comes in two sizes
            version = "installed" if find_spec(full) else ""
        package = f'"rlvitals[{extra}]"' if extra else name
        text = version or f"absent: pip install {package}"
        rows.append(f"{name} {text} ({use})")
    return rows
