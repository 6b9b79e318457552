"""Make a release ready: `release.py [--check]` checks the version, builds wheels and tries them.

1. The version in `src/rlvitals/__init__.py` is the one of the topmost heading of `CHANGELOG.md`
   (`## 0.2.0` or `## Unreleased (0.2.0)`; the latter is refused without `--draft`).
2. Two wheels are built into `dist/`: a pure one and one with compiled code for this platform.
3. `pip install rlvitals` from an index of these wheels into a fresh environment, then
   `rlvitals diagnose examples/failing`. Sizes and times are printed and held against the limits.
4. `uvx rlvitals diagnose .` with an empty cache, where pip installs uv: seconds to the verdict.

Nothing is uploaded: the last line names the command that does. Needs hatchling, and pip's index
or its cache for the dependencies.
"""

import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(
    r"^## (?:Unreleased \((?P<draft>[\d.]+\w*)\)|(?P<version>[\d.]+\w*))", re.MULTILINE
)
MAX_CORE_MB, MAX_OWN_MB = 115.0, 10.0  # installed, without pip; without Python's caches
INSTALLER = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")
MB = 1e6  # bytes


@dataclass(frozen=True)
class Trial:
    """What a fresh environment came to."""

    install_s: float
    diagnose_s: float
    core_mb: float  # all packages but the installer
    own_mb: float
    report: str


def main(argv: Sequence[str]) -> int:
    version = check_version(draft="--draft" in argv or "--check" in argv)
    print(f"version {version}")
    if "--check" in argv:
        return 0
    dist = ROOT / "dist"
    for old in dist.glob("rlvitals-*.whl"):
        old.unlink()
    wheels = [build(dist, choice) for choice in ("off", "require")]
    for wheel in wheels:
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / MB:.1f} MB")
    for wheel in wheels:
        trial = install_and_diagnose(wheel, ROOT / "build" / "trial")
        print(
            f"{wheel.name}: installed in {trial.install_s:.1f} s, diagnosed in "
            f"{trial.diagnose_s:.1f} s, {trial.core_mb:.0f} MB, of them ours {trial.own_mb:.1f} MB"
        )
        uvx = diagnose_by_uvx(wheel, ROOT / "build" / "trial")
        text = (
            "not tried: pip installs no uv" if uvx is None else f"to the verdict in {uvx[0]:.1f} s"
        )
        print(f"{wheel.name}: uvx rlvitals diagnose . {text}")
        if trial.core_mb > MAX_CORE_MB or trial.own_mb > MAX_OWN_MB:
            raise SystemExit(f"larger than {MAX_CORE_MB:.0f} MB, or ours than {MAX_OWN_MB:.0f} MB")
    print("to publish: twine upload dist/rlvitals-*.whl, then git tag", f"v{version}")
    return 0


def check_version(*, draft: bool) -> str:
    """Compare the package's version with the changelog's. Raises SystemExit where they differ."""
    package = re.search(r'^__version__ = "(.+)"$', _text("src/rlvitals/__init__.py"), re.MULTILINE)
    heading = HEADING.search(_text("CHANGELOG.md"))
    if package is None or heading is None:
        raise SystemExit("no version in src/rlvitals/__init__.py, or no heading in CHANGELOG.md")
    written = heading["version"] or heading["draft"]
    if package[1] != written:
        raise SystemExit(f"the package is {package[1]}, the changelog's top heading {written}")
    if heading["version"] is None and not draft:
        raise SystemExit(f"CHANGELOG.md: rename `{heading[0]}` to `## {written}`, or --draft")
    return written


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def build(folder: Path, compiled: str) -> Path:
    """Build one wheel; `compiled` is the choice of `hatch_build.py`. Raises CalledProcessError."""
    before = set(folder.glob("*.whl"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(  # noqa: S603 - ours
        command, cwd=ROOT, env={**os.environ, "RLVITALS_BUILD_COMPILED": compiled}, check=True
    )
    (wheel,) = set(folder.glob("*.whl")) - before
    return wheel


def install_and_diagnose(wheel: Path, folder: Path) -> Trial:
    """Install a wheel by its project's name into a new environment, and judge the shipped run."""
    index = write_index(wheel, folder)
    venv.create(folder, clear=True, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    # Built here, not published: `pip` finds the wheel by the project's name on a page of ours. As
    # an index it would be asked for the dependencies too, with a warning for each.
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--no-compile", "rlvitals"]
    own_index = ["--find-links", str(index / "rlvitals" / "index.html")]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    start = time.perf_counter()
    subprocess.run([*pip, *own_index, *constraints], env=env, check=True)  # noqa: S603 - ours
    installed = time.perf_counter()
    diagnose = [programs / "rlvitals", "diagnose", ".", "--fail-on", "never"]
    report = subprocess.run(  # noqa: S603 - ours
        diagnose,
        cwd=ROOT / "examples" / "failing",
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    end = time.perf_counter()
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    sizes = {entry.name: _bytes(entry) / MB for entry in site.iterdir()}
    core = sum(size for name, size in sizes.items() if not name.startswith(INSTALLER))
    return Trial(installed - start, end - installed, core, sizes["rlvitals"], report)


def diagnose_by_uvx(wheel: Path, folder: Path) -> tuple[float, str] | None:
    """Return the seconds from nothing to the verdict, and the report; None where pip has no uv."""
    environment = folder.with_name(f"{folder.name}-uv")
    venv.create(environment, clear=True, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "uv"]
    if subprocess.run(pip, check=False).returncode:  # noqa: S603 - ours
        return None
    cache = environment / "cache"  # empty: whoever types this has none of it
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [
        "tool",
        "run",
        "--python",
        sys.executable,
        "--index",
        write_index(wheel, folder).as_uri(),
    ]
    start = time.perf_counter()
    report = subprocess.run(  # noqa: S603 - ours
        [programs / "uv", *words, "rlvitals", "diagnose", ".", "--fail-on", "never"],
        cwd=ROOT / "examples" / "failing",
        env={**env, "UV_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return time.perf_counter() - start, report


def write_index(wheel: Path, folder: Path) -> Path:
    """Write a package index with one wheel beside a folder."""
    index = folder.resolve().with_name(f"{folder.name}-index")
    page = index / "rlvitals" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f'<a href="{wheel.resolve().as_uri()}">{wheel.name}</a>')
    return index


def _bytes(path: Path) -> int:
    """Return what a file or a folder holds, Python's caches left out."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files if "__pycache__" not in file.parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
