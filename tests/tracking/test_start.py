"""How a run begins: arguments, environment and settings file, ranks, attempts, and `off`."""

import subprocess
import sys

import pytest
from recording_checks import await_machine, happened, points, scans

import rlvitals
from rlvitals.storage.run_folder import RunFolder
from rlvitals.tracking import launcher_rank


def test_a_run_says_who_and_what_it_is(tmp_path):
    with rlvitals.start(
        tmp_path / "one", project="maze", name="try", group="g", seed=7, settings={"lr": 1e-3},
        tags=["a", "b"], notes="first",
    ) as run:  # fmt: skip
        assert (run.name, run.attempt, run.rank, run.world_size) == ("try", 1, 0, 1)
        assert run.folder == tmp_path / "one"
    about = RunFolder.open(tmp_path / "one").about
    assert (about.id, about.name, about.project, about.group) == (run.id, "try", "maze", "g")
    assert (about.seed, about.tags, about.notes) == (7, ("a", "b"), "first")
    assert about.settings == {"lr": 1e-3}


def test_without_a_folder_a_run_gets_one_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = [rlvitals.start(project="maze") for _ in range(2)]
    for run in runs:
        run.finish()
    assert runs[0].folder != runs[1].folder
    assert all(run.folder.parent.as_posix() == "runs/maze" for run in runs)
    assert all(run.attempt == 1 for run in runs)


def test_what_a_call_does_not_say_the_environment_and_the_file_do(tmp_path, monkeypatch):
    (tmp_path / "rlvitals.toml").write_text(
        '[recording]\nproject = "of the file"\ngroup = "g"\nfolder = "here"\ntags = ["x"]\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLVITALS_RECORDING_PROJECT", "of the environment")
    monkeypatch.setenv("RLVITALS_RECORDING_NAME", "nobody")
    with rlvitals.start(name="somebody") as run:
        assert run.folder == tmp_path / "here"
        assert run.name == "somebody"
    about = RunFolder.open(run.folder).about
    assert (about.project, about.group, about.tags) == ("of the environment", "g", ("x",))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"resume": "maybe"}, "resume cannot be 'maybe'"),
        ({"resume": "must"}, "no run to resume is here"),
        ({"flush_seconds": -1}, "-1 is not an amount"),
        ({"name": 3}, "3 is not a text"),
        ({"settings": ["lr"]}, "settings must be a dict, not a list"),
        ({"sinks": ["nothing"]}, "no sink is called 'nothing'"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(tmp_path, given, problem):
    with pytest.raises(rlvitals.UsageError) as error:
        rlvitals.start(tmp_path / "run", **given)
    assert error.value.problem == problem
    assert not (tmp_path / "run").exists()


def test_resuming(tmp_path):
    rlvitals.start(tmp_path, name="first").finish()
    with pytest.raises(rlvitals.UsageError, match="a run is here already"):
        rlvitals.start(tmp_path, resume="never")
    with rlvitals.start(tmp_path, name="second", resume="must") as run:
        assert (run.attempt, run.name) == (2, "first")
    assert [event.facts["attempt"] for event in happened(tmp_path, "start")] == [1, 2]


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, (0, 1, "")),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (0, 1, "")),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8, "")),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "abc",
             "TORCHELASTIC_RESTART_COUNT": "0", "MASTER_PORT": "29500"},
            (1, 2, "abc/0/29500"),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"},
            (1, 2, "n1/29500"),
        ),
        (
            {"SLURM_PROCID": "5", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "77"},
            (5, 16, "77"),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "77"}, (0, 1, "")),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4, "")),
        ({"LOCAL_RANK": "1"}, (1, 2, "")),
        # Of a worker of Ray: the other variables are those of `srun ray start` on its node.
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RAY_JOB_ID": "01000000"}, (0, 1, "")),
        (
            {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "n1", "MASTER_PORT": "29500",
             "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RAY_JOB_ID": "01000000"},
            (3, 4, "n1/29500"),
        ),
        ({"RANK": "first", "WORLD_SIZE": "many"}, (0, 1, "")),
    ],
    ids=str,
)  # fmt: skip
def test_the_usual_variables(environ, place):
    found = launcher_rank.read_place(environ)
    assert (found.rank, found.world_size, found.launch) == place


def test_each_rank_has_a_file_and_rank_0_alone_the_run_s(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for attempt in (1, 2):
        for rank in (0, 1):
            monkeypatch.setenv("RANK", str(rank))
            sinks = ["csv"] if attempt == 1 else None
            run = rlvitals.start(tmp_path, settings={"rank": rank}, sinks=sinks)
            assert (run.attempt, run.rank, run.world_size) == (attempt, rank, 2)
            run.log(1, {"x": 0.125 + rank})
            run.finish()
    assert sorted(scans(tmp_path)) == ["1-0", "1-1", "2-0", "2-1"]
    assert RunFolder.open(tmp_path).about.settings == {"rank": 0}
    assert points(tmp_path, "2-1") == {"x": [(1, 1.125)]}
    written = "".join(path.read_text() for path in (tmp_path / "metrics").glob("*.csv"))
    assert "0.125" in written
    assert "1.125" not in written


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({}, True),
        ({"RANK": "0", "WORLD_SIZE": "4"}, True),
        ({"RANK": "2", "WORLD_SIZE": "4"}, False),
        ({"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}, True),
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, False),
        ({"SLURM_PROCID": "8", "SLURM_NTASKS": "16", "SLURM_LOCALID": "0"}, True),
    ],
    ids=str,
)
def test_the_first_of_a_node(environ, first):
    assert launcher_rank.read_place(environ).first_of_node is first


def test_one_process_of_each_node_samples_its_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0.02")
    monkeypatch.setenv("WORLD_SIZE", "4")
    started = []
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("LOCAL_RANK", str(rank % 2))
        started.append(rlvitals.start(tmp_path))
    for run in started[::2]:
        await_machine(run)
    for run in started:
        run.log(1, {"x": 1.0})
        run.finish()
    sampled = [any("machine/" in key for key in points(tmp_path, f"1-{r}")) for r in range(4)]
    assert sampled == [True, False, True, False]
    assert "rank/2/machine/rss_gib" in rlvitals.read(tmp_path)[0].series


def test_many_ranks_need_a_folder_that_all_know(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(rlvitals.UsageError, match="2 ranks need a folder"):
        rlvitals.start()


@pytest.mark.parametrize("word", ["off", "OFF"])
def test_off_touches_nothing(tmp_path, monkeypatch, word):
    monkeypatch.setenv("RLVITALS_MODE", word)
    monkeypatch.chdir(tmp_path)
    with rlvitals.start("run", sinks=["csv"], settings={"lr": 1}) as run:
        assert isinstance(run, rlvitals.Run)
        run.log("no step", {3: object()})
        run.log(1, {"x": 1.0}, episode=1, tokens=2, time=3.0)
        run.log_histogram(1, "x", [1], edges=None, counts=None)
        run.log_text(1, "x", "y")
        run.log_table(1, "x", {})
        run.update_settings({})
        run.event("e", 1, more=2)
        run.note("n")
        run.at_finish(print)
        assert not run.requests()
        assert run.flush()
        assert (run.step, run.overhead, run.settings["lr"]) == (0, 0.0, 1)
    assert list(tmp_path.iterdir()) == []


def test_every_public_call_of_a_run_is_off_when_it_is_off():
    from rlvitals.tracking.null_run import NullRun

    public = {name for name in vars(rlvitals.Run) if not name.startswith("_")}
    assert public - set(vars(NullRun)) == {"settings", "at_close"}  # what is set, not called


def test_starting_loads_nothing_that_judges():
    code = (
        "import sys, rlvitals; rlvitals.start; "
        "print(*(m for m in sys.modules if m.startswith('rlvitals.')))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    areas = {name.split(".")[1] for name in loaded}
    base = {"errors", "options", "settings", "startup", "types"}
    assert areas <= base | {"storage", "tracking"}


def test_declared_columns_make_one_file_of_rows_that_differ(tmp_path):
    run = rlvitals.start(tmp_path / "run", sinks=["csv"], columns=["loss", "return"])
    run.log(0, {"return": 1.0})
    run.log(1, {"loss": 2.0})
    run.finish()
    (file,) = (tmp_path / "run" / "metrics").glob("metrics-*.csv")
    head, *rows = file.read_text().splitlines()
    assert head == "step,time,loss,return"
    assert [row.split(",")[2:] for row in rows] == [["", "1.0"], ["2.0", ""]]


@pytest.mark.parametrize("columns", ["loss", [1, 2]])
def test_columns_that_are_no_names_are_refused(tmp_path, columns):
    with pytest.raises(rlvitals.UsageError, match="columns cannot be"):
        rlvitals.start(tmp_path / "run", columns=columns)
