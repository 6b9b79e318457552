"""A resume compares the training code with the code that saved the checkpoint."""

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import rlvitals
from rlvitals.checkpoints import manifest, training_code
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.training_code import TrainingCode, tree_digest

TRAIN = '''
"""A training of one step."""
import sys

import numpy
import rlvitals
import helper
from package import model

state = rlvitals.State(w=numpy.zeros(3), step=0)
checkpoints = rlvitals.Checkpoints(sys.argv[1], every=1)
checkpoints.restore_state(state)
state["step"] += 1
import late  # not loaded yet when the training resumes
checkpoints.save_state(state["step"], state)
'''
SAME = "bit-exact on this machine, with these versions, threads and processes"


@pytest.fixture
def project(tmp_path):
    """A project of five files."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text("RATE = 0.1  # of learning\n")
    (tmp_path / "late.py").write_text("LATE = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "model.py").write_text("def model(x):\n    return x + 1\n")
    return tmp_path


def trained(project, *command):
    """Run the training once more; return how its resume was called."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = command or ("train.py",)
    done = subprocess.run(
        [sys.executable, *command, "run"], cwd=project, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stderr.strip().removeprefix("rlvitals: ")
    return said.partition(": ")[2] or said


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_a_resume_names_the_files_that_differ(project):
    trained(project)
    assert trained(project) == SAME
    edit(project / "helper.py", "# of learning", "# of the optimizer")
    edit(project / "train.py", '"""A training of one step."""', '"""A training."""\n\n')
    assert trained(project) == SAME, "comments, docstrings and layout"
    edit(project / "helper.py", "0.1", "0.2")
    assert trained(project) == "continues, not bit-exact because helper.py changed"
    edit(project / "late.py", "1", "2")
    edit(project / "package" / "model.py", "x + 1", "x - 1")
    said = "continues, not bit-exact because late.py and package/model.py changed"
    assert trained(project) == said, "late.py is loaded after the resume"
    (project / "extra.py").write_text("")
    edit(project / "helper.py", "RATE", "import extra\nRATE")
    edit(project / "train.py", "import late", "#")
    (project / "late.py").unlink()
    assert trained(project) == (
        "continues, not bit-exact because helper.py and train.py changed; extra.py is new; "
        "late.py is gone"
    )
    assert trained(project) == SAME


def test_code_without_a_file_is_no_promise(project):
    command = ("-c", (project / "train.py").read_text())
    trained(project, *command)
    assert trained(project, *command) == (
        f"{SAME}, if the code is the same (unverified: code without a file (a notebook, -c) "
        "cannot be compared)"
    )


def test_a_module_run_by_its_name_is_the_same_file(project):
    (project / "package" / "train.py").write_text(TRAIN)
    trained(project, "-m", "package.train")
    sealed = manifest.read(project / "run" / "checkpoint-1")
    assert "package/train.py" in sealed.code
    assert trained(project, "-m", "package.train") == SAME


def test_a_checkpoint_without_a_record_is_no_promise(tmp_path):
    one = Checkpoints(tmp_path, tell=lambda _: None)
    with one.save(1) as folder:
        (folder / "x").write_text("x")
    sealed = manifest.read(tmp_path / "checkpoint-1")
    assert __name__.rpartition(".")[2] + ".py" in " ".join(sealed.code)
    manifest.write(tmp_path / "checkpoint-1", manifest.replace(sealed, code={}))
    found = Checkpoints(tmp_path, tell=lambda _: None).restore()
    assert not found.differs
    assert found.unverified == ("the checkpoint does not record the training code",)
    assert "if the code is the same" in found.sentence


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x  =  1  # one\n\n"),
        ("def f(a): return a\n", "def f(\n    a,\n):\n    return (a)\n"),
        ('def f():\n    """Old."""\n    return 1\n', "def f():\n    return 1\n"),
        ("x = 'a'\n", 'x = "a"\n'),
        ('"""Module."""\nx = 1\n', "x = 1\n"),
    ],
)
def test_layout_comments_and_docstrings_do_not_count(before, after):
    assert tree_digest(before.encode()) == tree_digest(after.encode()) != ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 2\n"),
        ("x = 1\n", "x = 1.0\n"),
        ("x = 1\n", "x = True\n"),
        ("x = 0.1\n", "x = 0.10000000000000002\n"),
        ("x = None\n", "x = ...\n"),
        ("x = a + b\n", "x = b + a\n"),
        ("x = a - b\n", "x = a + b\n"),
        ("if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
        ("f(a, b)\n", "f(a)(b)\n"),
        ("f(a, *b)\n", "f(*b, a)\n"),
        ("f(x=1)\n", "f(y=1)\n"),
        ("def f(a, b=1): ...\n", "def f(a, *, b=1): ...\n"),
        ("def f(a, /, b): ...\n", "def f(a, b): ...\n"),
        ("x = {None: 1, **a}\n", "x = {**a, None: 1}\n"),
        ("return_ = 1\n", "Return_ = 1\n"),
        ("import a as b\n", "import b as a\n"),
        ("from . import a\n", "from .. import a\n"),
        ("def f():\n    return\n", "def f():\n    return None\n"),
        ("async def f(): ...\n", "def f(): ...\n"),
        ("try:\n    a\nexcept B:\n    c\n", "try:\n    a\nexcept B:\n    pass\n"),
        ("x = f'{a!r}'\n", "x = f'{a!s}'\n"),
        ("x = b'a'\n", "x = 'a'\n"),
        ("del a, b\n", "del b, a\n"),
        ("a[1:]\n", "a[:1]\n"),
        ("a < b < c\n", "a < b > c\n"),
    ],
)
def test_what_a_program_does_counts(before, after):
    assert tree_digest(before.encode()) != tree_digest(after.encode())


@pytest.fixture
def without_tests(monkeypatch):
    """Leave out the files of the tests: 450 trees."""
    real, tests = training_code._is_training_code, Path(__file__).parents[1]

    def is_training_code(dotted, path, places):
        return tests not in path.parents and real(dotted, path, places)

    monkeypatch.setattr(training_code, "_is_training_code", is_training_code)


def loaded(monkeypatch, folder, name, source):
    """Load a module from a file, as an import does."""
    (folder / f"{name}.py").write_bytes(source)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.usefixtures("without_tests")
def test_what_was_imported_counts_not_what_lies_there_later(tmp_path, monkeypatch):
    module = loaded(monkeypatch, tmp_path, "edited_later", b"X = 1\n")
    code = TrainingCode()
    first = code.record()["edited_later.py"]
    (tmp_path / "edited_later.py").write_text("X = 22\n")
    assert code.record()["edited_later.py"] == first
    importlib.reload(module)
    assert code.record()["edited_later.py"] != first


@pytest.mark.soak
@pytest.mark.usefixtures("without_tests")
def test_what_cannot_be_parsed_or_is_huge_is_compared_by_its_text(tmp_path, monkeypatch):
    loaded(monkeypatch, tmp_path, "of_another_language", b"X = 1\n")
    loaded(
        monkeypatch,
        tmp_path,
        "generated",
        b"X = 1\n" * (training_code.MAX_TREE_FILE_BYTES // 6 + 1),
    )
    (tmp_path / "of_another_language.py").write_bytes(b"let x = 1;\n")
    sealed = TrainingCode().record()
    assert " " not in sealed["of_another_language.py"]
    assert " " not in sealed["generated.py"]
    assert TrainingCode().compare(sealed).differs == ()
    (tmp_path / "generated.py").write_bytes(b"X = 2\n")
    assert TrainingCode().compare(sealed).differs == ("generated.py changed",)


def test_trees_are_built_up_to_a_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(training_code, "MAX_TREE_BYTES", 0)
    loaded(monkeypatch, tmp_path, "beyond_the_budget", b"X = 1\n")
    sealed = TrainingCode().record()
    assert not any(" " in digests for digests in sealed.values())
    assert TrainingCode().compare(sealed).differs == ()


@pytest.mark.usefixtures("without_tests")
def test_installed_packages_and_the_recorder_are_no_training_code(tmp_path, monkeypatch):
    compiled = types.ModuleType("numpy._compiled_graph")  # as torch writes them to a cache
    compiled.__file__ = str(tmp_path / "graph.py")
    (tmp_path / "graph.py").write_text("X = 1\n")
    monkeypatch.setitem(sys.modules, "numpy._compiled_graph", compiled)
    importlib.import_module("rlvitals.trainers.signal_handlers")
    names = TrainingCode().record()
    assert "rlvitals/trainers/signal_handlers.py" in names
    others = [one for one in names if one.startswith("rlvitals/") and "trainers" not in one]
    assert not others
    for name in ("numpy", "pytest", "json"):
        assert not [one for one in names if one.split("/")[0] in {name, f"{name}.py"}]


@pytest.mark.soak
@pytest.mark.usefixtures("without_tests")
def test_a_process_that_loads_more_after_its_save_is_the_same_program(tmp_path, monkeypatch):
    code = TrainingCode()
    sealed = code.record()
    loaded(monkeypatch, tmp_path, "loaded_after_the_save", b"X = 1\n")
    assert code.compare(sealed).differs == ()
    assert TrainingCode().compare(sealed).differs == ("loaded_after_the_save.py is new",)


# A process of its own holds few objects: a collection costs microseconds.
COLLECT_AND_RECORD = """
import gc, sys, types
from rlvitals.checkpoints.training_code import TrainingCode

class ImportedWhenCollected:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        sys.modules[f"collected_{id(self)}"] = types.ModuleType("collected")

for _ in range(20):
    gc.set_threshold(0)
    gc.collect()
    ImportedWhenCollected()
    gc.set_threshold(50)  # reached within a loop over all modules
    TrainingCode().compare({"absent.py": "0"})
"""


def test_modules_may_be_loaded_by_a_garbage_collection_in_between():
    subprocess.run([sys.executable, "-c", COLLECT_AND_RECORD], check=True)


def test_the_thread_s_locks_are_not_inherited_by_a_fork():
    code = training_code.code
    with code._building, code._reading:
        child = os.fork()
        if not child:
            free = code._building.acquire(timeout=5) and code._reading.acquire(timeout=5)
            os._exit(0 if free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_names_from_a_checkpoint_lead_nowhere_else(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("X = 1\n")
    found = TrainingCode().compare({str(secret): "0", f"../{secret.name}": "0"})
    assert not any("changed" in one for one in found.differs)
    assert rlvitals  # the recorder itself is loaded
