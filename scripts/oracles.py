"""Freeze the product's outputs and check them after a refactoring; `make soak` checks them.

A rename or a move must not change one byte that a user, a reader or a checkpoint sees. `--freeze`
hashes the output of each group, `--check` computes the hashes again and lists what differs.

    diagnose     `diagnose --json` of the recorded runs, the traces of the rules, the examples, the
                 logs of the fault benchmark, and the folders given by --logs
    report       the HTML report of the recorded runs and the examples
    recording    every file of a run folder with all sinks that need no account; the clock, the
                 host, the process id, the run id and the versions are pinned
    checkpoints  the tensors of PPO, GRPO and RLHF after a few updates with a seed
    resume       a run folder and its checkpoint as an earlier version wrote them, resumed:
                 tests/oracles/earlier_run.tar.xz, PPO with the settings below, 200 steps

    scripts/oracles.py --freeze
    scripts/oracles.py --check --only diagnose,report --keep /tmp/outputs
"""

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
FROZEN = ROOT / "tests" / "oracles"
EPOCH = 1_700_000_000.0  # s: the pinned clock starts here
OUTSIDE = "logs/"  # names of what lies outside the repository begin so
ON = " on "  # before the processor's vendor: those of others are not compared
ARCHIVE = FROZEN / "earlier_run.tar.xz"

Outputs = Iterator[tuple[str, bytes]]  # the name of an item, and its bytes


def program(*arguments: object) -> bytes:
    """Run one command of rlvitals in this process; return its exit code and output."""
    from rlvitals.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        code = main([str(argument) for argument in arguments])
    return f"{code}\n{output.getvalue()}".encode()


def folders() -> list[Path]:
    """Return the runs and traces of the repository."""
    parents = (ROOT / "examples", ROOT / "tests/runs", ROOT / "tests/traps", ROOT / "tests/traces")
    runs = [run for parent in parents for run in sorted(parent.iterdir()) if run.is_dir()]
    return [*runs, *(p for run in runs if run.parent.name == "traces" for p in subfolders(run))]


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, in order."""
    return sorted(path for path in folder.iterdir() if path.is_dir())


def diagnose(logs: list[Path]) -> Outputs:
    """Diagnose every run here, every fault log, and what lies in `logs`."""
    common = ("--json", "--finished", "--fail-on", "never", "--jobs", 1)
    for folder in folders():
        yield str(folder.relative_to(ROOT)), program("diagnose", folder, *common)
    for log in sorted((ROOT / "faults").glob("*/**/*.zst")):
        yield str(log.relative_to(ROOT)), program("diagnose", log, *common)
    for path in logs:
        for folder in subfolders(path):
            yield f"{OUTSIDE}{path.name}/{folder.name}", program("diagnose", folder, *common)


def report(logs: list[Path]) -> Outputs:  # noqa: ARG001 - the groups share a signature
    """Write the report of every recorded run."""
    for folder in [*subfolders(ROOT / "tests/runs"), *subfolders(ROOT / "examples")]:
        with tempfile.TemporaryDirectory() as scratch:
            page = Path(scratch, "report.html")
            answer = program("report", folder, "--output", page, "--finished", "--now", EPOCH)
            name = str(folder.relative_to(ROOT))
            written = page.read_bytes() if page.exists() else b""  # an example without a log
            yield name, answer.replace(scratch.encode(), b"") + written


def recording(logs: list[Path]) -> Outputs:  # noqa: ARG001
    """Record a run into every sink, with all that differs between two runs pinned."""
    import rlvitals

    with tempfile.TemporaryDirectory() as scratch, pinned():
        run = rlvitals.start(
            Path(scratch, "run"), settings={"learning_rate": 3e-4, "env_id": "CartPole-v1"},
            tags=["oracle"], durable=True, sinks=("csv", "jsonl", "tensorboard", "parquet"),
        )  # fmt: skip
        for step in range(50):
            run.log(step, {"outcome/return": step * 0.5, "policy/entropy": 1 / (1 + step)})
        run.event("curriculum", 25, level=2)
        run.log_text(30, "sample", "an answer")
        run.log_histogram(40, "weights", [0.0, 1.0, 2.0, 2.0])
        run.finish()
        folder = Path(scratch, "run")
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            if path.suffix != ".beat":  # it holds the machine's boot, and what a thread saw last
                yield path.relative_to(folder).as_posix(), path.read_bytes()


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Pin the clock, the host, the process and random names.

    The clock stands still: a sink opens its file on a thread, at no certain time.
    """
    numbers = itertools.count(1)
    pins = {
        (time, "time"): lambda: EPOCH,
        (time, "time_ns"): lambda: int(EPOCH * 1e9),
        (os, "getpid"): lambda: 4711,
        (os, "urandom"): lambda size: next(numbers).to_bytes(size, "big"),
        (socket, "gethostname"): lambda: "host",
        (sys, "argv"): ["oracle.py"],
    }
    # What the machine does and what is installed on it differs from place to place.
    variables = {"RLVITALS_RECORDING_FACTS": "false", "RLVITALS_RECORDING_MACHINE_SECONDS": "0"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, variables))
        for (module, name), replacement in pins.items():
            stack.enter_context(mock.patch.object(module, name, replacement))
        yield


PPO = (
    "--num-envs", "4", "--rollout-length", "16", "--demo-steps", "10", "--bc-epochs", "1",
    "--diagnose-seconds", "0", "--hidden-sizes", "8", "--seed", "1", "--total-steps",
)  # fmt: skip
EARLIER_STEPS, STEPS = "200", "400"  # environment steps of the archived run, and of a resumed one
TRAININGS = {
    "ppo": (*PPO, EARLIER_STEPS),
    "grpo": ("--vlm-name", "tiny-lm", "--seed", "1", "--max-steps", "2"),
    "rlhf": ("--seed", "1", "--total-episodes", "128", "--batch-size", "64"),
}


def checkpoints(logs: list[Path]) -> Outputs:  # noqa: ARG001
    """Train a few updates, and hash the tensors of the last checkpoint."""
    for trainer, flags in TRAININGS.items():
        with tempfile.TemporaryDirectory() as scratch:
            train(trainer, Path(scratch, "run"), *flags)
            yield f"{trainer}{ON}{processor_vendor()}", tensors(Path(scratch, "run"))


@cache
def processor_vendor() -> str:
    """Return the vendor of the processor: MKL factorises the first weights by the vendor's code."""
    cpus = Path("/proc/cpuinfo")
    match = re.search(r"vendor_id\s*:\s*(\w+)", cpus.read_text()) if cpus.exists() else None
    return match[1] if match else platform.machine()


def is_of_another(name: str) -> bool:
    """Return True for tensors that were frozen on the processor of another vendor."""
    return ON in name and not name.endswith(f"{ON}{processor_vendor()}")


# Kernels are chosen by the processor and add up in another order: these are the same everywhere.
ARITHMETIC = {
    "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}  # fmt: skip


def train(trainer: str, folder: Path, *flags: str) -> None:
    """Train in a process of its own. Raises CalledProcessError."""
    command = [sys.executable, "-m", "rlvitals", "train", trainer, "--output-dir", str(folder)]
    environment = {**os.environ, **ARITHMETIC}
    subprocess.run([*command, *flags], check=True, capture_output=True, env=environment)  # noqa: S603 - no shell


def tensors(folder: Path) -> bytes:
    """Return names, shapes and bytes of all tensors of a run's newest checkpoint."""
    from safetensors.numpy import load_file

    newest = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    content = bytearray()
    for path in sorted(newest.rglob("*.safetensors")):
        for name, values in sorted(load_file(path).items()):
            content += f"{path.name} {name} {values.dtype} {values.shape}\n".encode()
            content += values.tobytes()
    if not content:
        raise SystemExit(f"no tensors in {newest}")
    return bytes(content)


def resume(logs: list[Path]) -> Outputs:  # noqa: ARG001
    """Resume the archived run of an earlier version."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(scratch, filter="data")
        folder = Path(scratch, "run")
        yield "diagnose", program("diagnose", folder, "--json", "--finished", "--fail-on", "never")
        train("ppo", folder, *PPO, STEPS, "--require-resume")
        yield "tensors", tensors(folder)


GROUPS: dict[str, Callable[[list[Path]], Outputs]] = {
    "diagnose": diagnose, "report": report, "recording": recording,
    "checkpoints": checkpoints, "resume": resume,
}  # fmt: skip


def main() -> int:
    """Freeze or check the groups that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--freeze", action="store_true", help="write the hashes")
    action.add_argument("--check", action="store_true", help="compare with the hashes")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, by commas")
    parser.add_argument("--logs", type=Path, action="append", default=[], help="folders of logs")
    parser.add_argument("--keep", type=Path, help="write every output below this folder")
    args = parser.parse_args()
    different = 0
    for group in args.only.split(","):
        hashes = {}
        for name, content in GROUPS[group](args.logs):
            hashes[name] = hashlib.blake2b(content, digest_size=16).hexdigest()
            if args.keep:
                path = args.keep / group / name.replace("/", "+")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        file = FROZEN / f"{group}.json"
        if args.freeze:
            others = json.loads(file.read_text()) if file.exists() else {}
            hashes |= {name: text for name, text in others.items() if is_of_another(name)}
            file.write_text(json.dumps(hashes, indent=0, sort_keys=True) + "\n")
            print(f"{group}: {len(hashes)} outputs frozen")
            continue
        different += compare(group, json.loads(file.read_text()), hashes)
    return min(different, 1)


def compare(group: str, frozen: dict[str, str], hashes: dict[str, str]) -> int:
    """Print what differs; return how many.

    Logs outside the repository may be absent, and tensors of other processors are left out.
    """
    here = {n for n in frozen if not (n.startswith(OUTSIDE) or is_of_another(n))}
    names = sorted(here | hashes.keys())
    changed = [name for name in names if frozen.get(name) != hashes.get(name)]
    print(f"{group}: {len(names) - len(changed)} of {len(names)} outputs as frozen")
    for name in changed:
        print(f"  differs: {name}")
    return len(changed)


if __name__ == "__main__":
    sys.exit(main())
