"""Run the tests against mutants of the code: `make mutants`.

Samples mutants of the trainers, the rules and the resume by a seed, as many of each, and within
each as many of every kind of change. A mutant is written into a copy of the tree; the checkout is
never touched. The tests that execute its line run in a process forked from this one, which has
loaded the heavy libraries and nothing of ours, until the first of them fails.

    killed       a test fails, or the tests do not end
    survived     all tests pass: printed with file, line and diff
    not covered  no test that passes executes the line

Which test executes which line is recorded once and kept in `build/mutants`, anew for a test
file that changes, and for all of them once the code changes. The summary is summary.json there.

    scripts/mutants.py --count 200 --seed 1             # sample
    scripts/mutants.py --only src/rlvitals/rules/rate.py --count 20
"""

import argparse
import gc
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from covering import QUIET, Covering, record  # noqa: E402
from mutation import Mutant, mutants  # noqa: E402
from references import executed_with  # noqa: E402

CACHE = ROOT / "build" / "mutants"
GROUPS = {
    "ppo": ["src/rlvitals/trainers/ppo", "src/rlvitals/trainers"],
    "language": ["src/rlvitals/trainers/language"],
    "rules": ["src/rlvitals/rules"],
    "resume": ["src/rlvitals/checkpoints"],
}
PACKAGES = ["src/rlvitals/trainers", "src/rlvitals/rules", "src/rlvitals/checkpoints"]
TESTS = ["tests/trainers", "tests/rules", "tests/checkpoints", "tests/test_rules.py",
         "tests/integrations/test_transformers_seal.py",
         "tests/test_metamorphic.py", "tests/test_traps.py", "tests/test_examples.py",
         "tests/test_measured_rates.py"]  # fmt: skip
HEAVY = ("numpy", "torch", "pandas", "safetensors.torch", "numba", "gymnasium", "transformers",
         "datasets", "peft", "accelerate", "trl", "hypothesis", "matplotlib", "yaml", "rich",
         "psutil", "coverage", "stable_baselines3")  # fmt: skip
MOST_TESTS = 400  # that one mutant is shown to
RECORD_SECONDS = 1800  # of CPU, for one test file
KILLED, SURVIVED, NOT_COVERED = "killed", "survived", "not covered"


def main() -> int:
    """Sample, run, and print what survives."""
    options = _arguments()
    start_time = time.time()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copied(Path(folder))
        os.chdir(tree)
        preload(tree)
        covering = recorded(options.tests or TESTS)
        sample = list(sampled(options.count, options.seed, options.only))
        results = [(mutant, *judged(mutant, covering, options.seconds)) for mutant in _told(sample)]
        return summed_up(results, options, time.time() - start_time)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation testing of trainers, rules and resume.")
    parser.add_argument("--count", type=int, default=200, help="mutants in all (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--only", nargs="*", default=[], help="files or folders to mutate")
    parser.add_argument("--tests", nargs="*", default=[], help="test files or folders to use")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="CPU seconds of tests for one mutant (60)"
    )
    return parser.parse_args()


# -- a copy of the tree, and processes forked from this one ---------------------------------------


def copied(folder: Path) -> Path:
    """Copy what git tracks or would track, and the compiled module; returns the copy's root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    tree = folder / "tree"
    built = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.so")]
    for name in [*filter(None, listed.split("\0")), *built]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    with suppress(OSError):
        (folder / "shared").symlink_to(ROOT.parent / "shared")  # logs that some tests read
    subprocess.run(  # an unchanged file is not compiled anew, a mutant is
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src",
         "tests"], cwd=tree, check=False,
    )  # fmt: skip
    return tree


def preload(tree: Path) -> None:
    """Load what every test file loads, and nothing of ours; forks share it."""
    os.environ |= {
        "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree / "src")]
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def forked(do: Callable[[], int], cpu: float, output: Path) -> int | None:
    """Call a function in a forked process; returns its exit code, None where it does not end."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 5))
            with output.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            code = int(do())
        finally:
            os._exit(code)
    deadline = time.monotonic() + 5 * cpu + 60  # of waiting, on a machine that is busy
    while time.monotonic() < deadline:
        result, status = os.waitpid(pid, os.WNOHANG)
        if result:
            _end_group(pid)
            return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(0.02)
    _end_group(pid)
    os.waitpid(pid, 0)
    return None


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


# -- which test executes which line ---------------------------------------------------------------


def recorded(tests: Sequence[str]) -> Covering:
    """Return what all test files execute; recorded anew for those that changed."""
    covering = Covering()
    files = sorted({file for name in tests for file in _test_files(Path(name))})
    common = _hash(sorted([*Path("src").rglob("*.py"), *_helpers()]))
    (CACHE / "lines").mkdir(parents=True, exist_ok=True)
    for file in files:
        name = file.as_posix()
        out = CACHE / "lines" / f"{name.replace('/', '.')}-{common[:12]}-{_hash([file])[:12]}.json"
        if not out.exists():
            for old in out.parent.glob(f"{name.replace('/', '.')}-*"):
                old.unlink()
            print(f"recording {name}", flush=True)

            def run(file: str = name, out: Path = out) -> int:
                return record(file, PACKAGES, out) or 0

            forked(run, RECORD_SECONDS, CACHE / "recording.txt")
        if out.exists():
            covering.add(name, out)
    return covering


def _test_files(path: Path) -> Iterator[Path]:
    yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def _helpers() -> Iterator[Path]:
    yield from (path for path in Path("tests").rglob("*.py") if not path.name.startswith("test_"))


def _hash(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


# -- mutants --------------------------------------------------------------------------------------


def sampled(count: int, seed: int, only: Sequence[str]) -> Iterator[Mutant]:
    """Draw mutants: as many of each group, and in it of each kind of change in turn."""
    groups = {name: [name] for name in only} or GROUPS
    random_ = random.Random(seed)
    for i, (name, folders) in enumerate(groups.items()):
        kinds: dict[str, list[Mutant]] = {}
        for file in _sources(folders):
            for mutant in mutants(file.as_posix(), file.read_bytes()):
                kinds.setdefault(mutant.kind, []).append(mutant)
        for pool in kinds.values():
            random_.shuffle(pool)
        needed = count // len(groups) + (i < count % len(groups))
        remaining = [kinds[kind] for kind in sorted(kinds)]
        while needed and any(remaining):
            for pool in remaining:
                if pool and needed:
                    needed -= 1
                    yield pool.pop()
        print(f"{name}: {sum(map(len, remaining))} mutants are not in the sample", flush=True)


def _sources(folders: Sequence[str]) -> Iterator[Path]:
    """List the files of folders with what lies below the first, of the others their own alone."""
    first, *other_folders = map(Path, folders)
    yield from sorted(first.rglob("*.py")) if first.is_dir() else [first]
    for folder in other_folders:
        yield from sorted(folder.glob("*.py"))


def _told(sample: Sequence[Mutant]) -> Iterator[Mutant]:
    for i, mutant in enumerate(sample, 1):
        print(
            f"[{i}/{len(sample)}] {mutant.path}:{mutant.line} {mutant.kind}: ", end="", flush=True
        )
        yield mutant


def judged(mutant: Mutant, covering: Covering, seconds: float) -> tuple[str, list[str], str]:
    """Run a mutant's tests; returns what became of it, the tests, and its diff."""
    path = Path(mutant.path)
    source = path.read_bytes()
    places = executed_with(mutant.path, mutant.line, mutant.last_line)
    tests = covering.chosen(covering.tests(places), seconds=seconds, most=MOST_TESTS)
    diff = mutant.diff(source)
    if not tests:
        print(NOT_COVERED, diff, sep="\n", flush=True)
        return NOT_COVERED, [], diff
    cost = sum(covering.costs[name] for name in tests)

    def run() -> int:
        import pytest

        return int(pytest.main([*QUIET, *tests]))

    try:
        path.write_bytes(mutant.applied(source))
        code = forked(run, 30 + 3 * cost, CACHE / "tests.txt")
    finally:
        path.write_bytes(source)
    if code not in {0, 1, None} and forked(run, 30 + 3 * cost, CACHE / "tests.txt") != 0:
        sys.exit(f"these tests fail without a mutant: {' '.join(tests)}")
    outcome = SURVIVED if code == 0 else KILLED
    if code == 0:
        print(f"{outcome} {len(tests)} tests, {cost:.0f} s", diff, sep="\n", flush=True)
    else:
        print(
            f"{outcome} ({'it does not end' if code is None else f'exit code {code}'})", flush=True
        )
    return outcome, tests, diff


def summed_up(
    results: Sequence[tuple[Mutant, str, list[str], str]], options: argparse.Namespace, took: float
) -> int:
    """Write the summary, print the counts; returns 1 where a mutant survived."""
    counts: dict[str, Counter[str]] = {}
    for mutant, outcome, _, _ in results:
        counts.setdefault(_group(mutant.path), Counter())[outcome] += 1
    rows = [
        {"path": mutant.path, "line": mutant.line, "kind": mutant.kind, "found": outcome,
         "diff": diff, "tests": tests}
        for mutant, outcome, tests, diff in results
    ]  # fmt: skip
    summary = {"seed": options.seed, "seconds": round(took), "counts": counts, "mutants": rows}
    (CACHE / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    for name, count in counts.items():
        print(
            f"{name}: "
            + ", ".join(f"{count[kind]} {kind}" for kind in (KILLED, SURVIVED, NOT_COVERED))
        )
    return int(any(outcome == SURVIVED for _, outcome, _, _ in results))


def _group(path: str) -> str:
    folders = Path(path).parts[2:]
    return "/".join(folders[:2]) if folders[0] == "trainers" and len(folders) > 2 else folders[0]


if __name__ == "__main__":
    sys.exit(main())
