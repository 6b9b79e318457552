"""A wheel with compiled code in it, and one without: both record."""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = """
import sys, rlvitals
with rlvitals.start(sys.argv[1]) as run:
    for step in range(3000):
        run.log(step, {"x": step, "y": 0.5})
print(run.compiled, rlvitals.__file__)
"""
COMPILER = shutil.which((sysconfig.get_config_var("LDSHARED") or "none").split()[0])
HEADERS = Path(sysconfig.get_path("include"), "Python.h")
needs_compiler = pytest.mark.skipif(
    not (COMPILER and HEADERS.is_file()), reason="no C compiler, or no Python.h"
)


def wheel(folder, word, **more):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    env = {**os.environ, "RLVITALS_BUILD_COMPILED": word, **more}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    (made,) = folder.glob("*.whl") if done.returncode == 0 else [None]
    return made, done.stderr


@pytest.mark.soak
@pytest.mark.parametrize(
    ("word", "tag", "compiled"),
    [
        pytest.param("require", "cp311-abi3-", True, marks=needs_compiler),
        ("off", "py3-none-any", False),
    ],
)
def test_a_wheel_records(tmp_path, word, tag, compiled):
    made, errors = wheel(tmp_path / "dist", word)
    assert made, errors
    assert f"-{tag}" in made.name
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(made).extractall(unpacked)
    assert not list(unpacked.rglob("*.c"))
    assert (unpacked / "rlvitals" / "py.typed").is_file()
    launchers = unpacked / "rlvitals" / "trainers" / "language" / "configs"
    assert (launchers / "deepspeed_zero3.yaml").is_file()
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    words = [sys.executable, "-c", RECORD, str(tmp_path / "run")]
    for variable, expected in (("on", compiled), ("off", False)):
        env |= {"PYTHONPATH": str(unpacked), "RLVITALS_COMPILED": variable}
        said = subprocess.check_output(words, env=env, cwd=tmp_path, text=True).split()
        assert said == [str(expected), str(unpacked / "rlvitals" / "__init__.py")]


@pytest.mark.soak
def test_without_a_compiler_a_wheel_is_pure_or_refused(tmp_path):
    made, _ = wheel(tmp_path / "auto", "auto", CC=str(tmp_path / "none"))
    assert made.name.endswith("-py3-none-any.whl")
    made, errors = wheel(tmp_path / "required", "require", CC=str(tmp_path / "none"))
    assert made is None
    assert "No such file or directory" in errors
    made, errors = wheel(tmp_path / "else", "perhaps")
    assert made is None
    assert "cannot be 'perhaps': one of auto, off, require" in errors


@pytest.mark.soak
@pytest.mark.parametrize("word", ["off", pytest.param("require", marks=needs_compiler)])
def test_a_fresh_environment_installs_it_by_its_name_and_judges_a_run(tmp_path, word):
    """The dependencies come from pip's own index, which is not ours to fake."""
    pytest.importorskip("hatchling")
    release = runpy.run_path(str(ROOT / "scripts" / "release.py"))
    wheel = release["build"](tmp_path / "dist", word)
    trial = release["install_and_diagnose"](wheel, tmp_path / "fresh")
    assert "error[" in trial.report
    assert "learning-rate" in trial.report
    assert trial.core_mb <= release["MAX_CORE_MB"]
    assert trial.own_mb <= release["MAX_OWN_MB"]
    uvx = release["diagnose_by_uvx"](wheel, tmp_path / "fresh")
    assert uvx is None or "learning-rate" in uvx[1]
    python = tmp_path / "fresh" / "bin" / "python"
    missing = "import importlib.util as u; print(u.find_spec('matplotlib'))"
    assert subprocess.check_output([python, "-c", missing], text=True) == "None\n"
    plot = [tmp_path / "fresh" / "bin" / "rlvitals", "plot", ROOT / "examples" / "failing"]
    done = subprocess.run(plot, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert 'pip install "rlvitals[plot]"' in done.stderr
    report = [plot[0], "report", ROOT / "examples" / "failing", "-o", tmp_path / "page.html"]
    subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
    assert "learning-rate" in (tmp_path / "page.html").read_text()


def test_the_version_is_that_of_the_changelog():
    script = [sys.executable, ROOT / "scripts" / "release.py", "--check"]
    assert subprocess.run(script, check=False, stdout=subprocess.DEVNULL).returncode == 0
