"""Following a call, and Ray's hook: without a process of their own."""

import os
import subprocess
import sys
import threading
import time
import zipfile
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.capture import calls, imports, ray_hook, run_folders


def test_a_run_that_was_finished_by_itself_is_not_joined(tmp_path, monkeypatch):
    monkeypatch.delenv(run_folders.FOLDER_VARIABLE, raising=False)
    run = rlvitals.start(tmp_path / "first")
    run_folders.share(run, run_folders.Source("wandb", "1"))
    assert run_folders.join(run_folders.Source("mlflow", "2")) is not None
    run.finish()
    assert run_folders.join(run_folders.Source("trackio", "3")) is None


@pytest.mark.parametrize("other", ["finished", "failed"])
@pytest.mark.parametrize("first", [0, 1])
def test_the_exit_code_of_the_tracker_that_failed_is_the_run_s(tmp_path, monkeypatch, first, other):
    monkeypatch.delenv(run_folders.FOLDER_VARIABLE, raising=False)
    run = rlvitals.start(tmp_path / "run")
    run.log(1, {"reward": 1.0})
    shares = [
        run_folders.share(run, run_folders.Source("wandb", "1")),
        run_folders.join(run_folders.Source("mlflow", "2")),
    ]
    shares[first].finish("failed", exit_code=3)
    shares[not first].finish(other, exit_code=None)
    found = rlvitals.trace(tmp_path / "run").lifecycle
    assert (found.exit_code, found.reason) == (3, "exit code 3")


def test_a_recording_that_fails_is_one_line_and_no_error(capsys):
    library = SimpleNamespace(log=lambda value: value + 1)
    calls.follow(library, "log", lambda *_: 1 / 0)
    assert [library.log(1), library.log(2)] == [2, 3]
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1


class WordlessError(Exception):
    def __str__(self):
        raise ValueError("no text")


def fail_without_words(*_):
    raise WordlessError


def test_an_error_without_a_text_and_a_closed_stderr_stay_inside(monkeypatch):
    library = SimpleNamespace(log=lambda: 1, save=lambda: 2)
    calls.follow(library, "log", fail_without_words)
    calls.follow(library, "save", lambda *_: 1 / 0)
    assert library.log() == 1
    monkeypatch.setattr(sys, "stderr", None)
    assert library.save() == 2


@pytest.fixture
def followed(monkeypatch):
    """Follow imports of the made-up library `tracked`; return the names that were followed."""
    names = []
    monkeypatch.setitem(imports.TRACKERS, "tracked", "none")
    monkeypatch.setattr(imports, "follow", lambda _, module: names.append(module.__name__))
    # Another test's training may have left one: `wandb.init(sync_tensorboard=True)`.
    others = [finder for finder in sys.meta_path if not isinstance(finder, imports.Following)]
    monkeypatch.setattr(sys, "meta_path", [imports.Following(), *others])
    yield names
    for name in ("tracked", "beside"):
        sys.modules.pop(name, None)


def test_of_the_modules_in_one_zip_file_the_tracker_alone_is_followed(
    tmp_path, monkeypatch, followed
):
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("tracked.py", "")
        archive.writestr("beside.py", "")
    monkeypatch.syspath_prepend(tmp_path / "modules.zip")
    __import__("tracked")
    __import__("beside")
    assert followed == ["tracked"]


class OldLoader(Loader):
    """A loader of the kind before `exec_module`."""

    def load_module(self, name):
        module = sys.modules[name] = type(sys)(name)
        return module


class OldFinder:
    def find_spec(self, name, *_):
        return ModuleSpec(name, OldLoader()) if name == "tracked" else None


@pytest.mark.filterwarnings("ignore::ImportWarning")
def test_a_loader_of_the_old_kind_loads_as_ever(followed):
    sys.meta_path.insert(1, OldFinder())
    assert __import__("tracked").__name__ == "tracked"
    assert followed == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_a_run_begins_can_begin_its_own():
    taken, done = threading.Event(), threading.Event()

    def begin():
        with run_folders._lock:
            taken.set()
            done.wait(HANG_SECONDS)

    thread = threading.Thread(target=begin)
    thread.start()
    taken.wait(HANG_SECONDS)
    child = os.fork()
    if child == 0:
        os._exit(0 if run_folders._lock.acquire(timeout=2) else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert status == 0


def test_ranks_share_a_folder_that_one_of_them_is_just_about_to_name(tmp_path, monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(run_folders.CLAIMS_VARIABLE, str(tmp_path))
    (tmp_path / "1").touch()

    def name_it():
        time.sleep(0.1)
        claimant = f"launch {os.getppid()}, run {len(run_folders._folders) + 1}"
        (tmp_path / "1").write_text(f"{claimant}\nruns/x")

    threading.Thread(target=name_it).start()
    assert run_folders._claim(tmp_path / "run") == tmp_path / "run"


def test_a_notebook_leaves_no_temporary_folder(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = (
        "import os\nfrom rlvitals.capture.load_extension import load_ipython_extension\n"
        "load_ipython_extension(None)\nprint(*os.listdir(os.environ['TMPDIR']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "rlvitals-notebook-" in done.stdout
    assert not list(temporary.iterdir())


def test_a_claim_without_a_folder_is_none(tmp_path):
    (tmp_path / "1").write_text("process 1, run 1\nruns/x")
    (tmp_path / "2").touch()
    assert list(map(str, run_folders.read_claims(tmp_path))) == ["runs/x"]


def test_a_call_inside_a_followed_call_is_not_recorded_again():
    recorded = []
    library = SimpleNamespace(inner=lambda: "in")
    library.outer = lambda: (library.inner(),)
    for name in ("inner", "outer"):
        calls.follow(library, name, recorded.append)
    calls.follow(library, "outer", recorded.clear)  # it is followed already
    assert (library.outer(), library.inner()) == (("in",), "in")
    assert recorded == [("in",), "in"]


def test_an_exception_of_the_library_is_its_own():
    library = SimpleNamespace(log=[].pop)
    calls.follow(library, "log", lambda *_: None)
    with pytest.raises(IndexError):
        library.log()
    with pytest.raises(IndexError):  # the next call is followed as ever
        library.log()


def earlier_hook(environment):
    return {**environment, "pip": ["x"]}


def test_ray_s_workers_get_the_variables_and_an_earlier_hook_its_call(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("/site", "/mine")))
    monkeypatch.setenv("_RLVITALS_CAPTURE", "beside")
    monkeypatch.setenv(ray_hook.RAY_VARIABLE, f"{__name__}.earlier_hook")
    ray_hook.install()
    assert os.environ[ray_hook.RAY_VARIABLE] == "rlvitals.capture.ray_hook.add"
    answer = ray_hook.add({"env_vars": {"PYTHONPATH": "/theirs", "A": "1"}})
    monkeypatch.delenv(ray_hook.NEXT_VARIABLE)
    assert answer["pip"] == ["x"]
    assert answer["env_vars"]["PYTHONPATH"] == os.pathsep.join(("/site", "/theirs"))
    assert (answer["env_vars"]["A"], answer["env_vars"]["_RLVITALS_CAPTURE"]) == ("1", "beside")
    assert ray_hook.add(None)["env_vars"]["PYTHONPATH"] == os.environ["PYTHONPATH"]


@pytest.mark.parametrize("follower", sorted(set(imports.TRACKERS.values())))
def test_a_program_that_is_recorded_loads_nothing_that_reads_or_judges(follower):
    code = (
        f"import sys, rlvitals.{follower}; import rlvitals.wandb.session;"
        "areas = {name.split('.')[1] for name in sys.modules if name.startswith('rlvitals.')};"
        "from rlvitals.readers import READER_FILES as files;"
        "areas |= {file for file in files if f'rlvitals.readers.{file}' in sys.modules};"
        "print(*sorted(areas))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) <= {
        "capture", "errors", "integrations", "options", "readers", "settings", "startup",
        "storage", "tracking", "types", "wandb",
    }  # fmt: skip
