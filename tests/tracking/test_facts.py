"""What a run cannot be repeated without is stored at its start."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import rlvitals
from rlvitals.storage.redact import REDACTED
from rlvitals.tracking import environment

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT" + "1uV4wX7yZ0cD3fG6"


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    git(folder, "init")
    (folder / "train.py").write_text("lr = 1e-3\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    git(folder, "remote", "add", "origin", f"https://me:{TOKEN}@host.example/code.git")
    return folder


def test_a_clean_repository_is_its_commit(repository):
    found = environment.git(repository)
    commit = subprocess.check_output(["git", "-C", repository, "rev-parse", "HEAD"], text=True)
    assert found == {
        "commit": commit.strip(),
        "branch": "main",
        "dirty": False,
        "remote": f"https://me:{REDACTED}@host.example/code.git",
    }


def test_changes_are_kept_without_their_secrets(repository):
    (repository / "train.py").write_text(f'lr = 3e-4\nHUB = "{TOKEN}"\npassword = "swordfish7"\n')
    (repository / "new.py").write_text("")
    found = environment.git(repository)
    assert found["dirty"]
    assert "+lr = 3e-4\n" in found["diff"]
    assert f'+HUB = "{REDACTED}"\n+password = "{REDACTED}"\n' in found["diff"]
    assert found["untracked"] == ["new.py"]
    assert "diff_cut" not in found


def test_a_large_diff_is_cut_at_a_line(repository):
    (repository / "train.py").write_text("".join(f"x{i} = {i}\n" for i in range(200_000)))
    found = environment.git(repository)
    assert found["diff_cut"]
    assert environment.MAX_DIFF_BYTES * 0.9 < len(found["diff"]) <= environment.MAX_DIFF_BYTES
    assert found["diff"].endswith("\n")


def test_a_repository_s_own_commands_are_not_run(repository, tmp_path):
    for key in ("core.fsmonitor", "diff.external", "core.pager"):
        git(repository, "config", key, f"touch {tmp_path}/ran")
    (repository / "train.py").write_text("lr = 3e-4\n")
    assert environment.git(repository)["dirty"]
    assert not (tmp_path / "ran").exists()


def test_without_a_repository_or_git_there_is_nothing(tmp_path, repository, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert environment.git(tmp_path) == {}
    monkeypatch.setenv("PATH", "")
    assert environment.git(repository) == {}


def test_every_package_is_told_with_its_version():
    found = environment.packages()
    for one in metadata.distributions():
        name = one.metadata["Name"].lower().replace("_", "-").replace(".", "-")
        told = {key.replace(".", "-"): version for key, version in found.items()}
        assert told[name] == one.version


def test_seeds_are_found_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    settings = {"seed": 1, "env": {"seed": 2, "eval_seeds": [4, 5]}, "random_seed": 6}
    settings |= {"seeded": True, "proceed": 7, "model": {"data-seed": 8}}
    found = environment.seeds(settings)
    found.pop("torch", None)
    assert found == {
        "seed": 1,
        "env/seed": 2,
        "env/eval_seeds": [4, 5],
        "random_seed": 6,
        "model/data-seed": 8,
        "PYTHONHASHSEED": "3",
    }


def test_the_environment_is_told_by_a_list(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("RLVITALS_API_KEY", "swordfish7")
    monkeypatch.setenv("MY_OWN", "x")
    found = environment.environment()
    assert found["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found["NCCL_DEBUG"] == "INFO"
    assert found["RLVITALS_API_KEY"] == REDACTED
    assert "MY_OWN" not in found


def test_equal_settings_have_one_hash():
    one = environment.settings_hash({"a": 1, "b": {"c": 2.0, "token": "x"}})
    assert one == environment.settings_hash({"b": {"token": "y", "c": 2.0}, "a": 1})
    assert one != environment.settings_hash({"a": 1, "b": {"c": 2.5}})
    assert len(one) == 16


GUIDE = {  # the hyperparameters that a run must be told by, and what they are called here
    "current_lr": ("learning_rate", 3e-4),
    "clip_epsilon": ("clip_range", 0.2),
    "batch_size": ("batch_size", 64),
    "minibatch_size": ("minibatch_size", 16),
    "epochs": ("n_epochs", 4),
    "entropy_coef": ("entropy_coef", 0.01),
    "value_coef": ("value_coef", 0.5),
    "gamma": ("gamma", 0.99),
    "lambda": ("gae_lambda", 0.95),
    "seed": ("seed", 7),
}


def test_a_run_stores_all_of_it(tmp_path, repository):
    home = tmp_path / "me"
    home.mkdir()
    script = repository / "train.py"
    script.write_text(SCRIPT)
    settings = {name: value for name, (_, value) in GUIDE.items()}
    settings |= {"data": f"{home}/data", "hub": {"token": TOKEN}}
    source = Path(rlvitals.__file__).parents[1]
    environ = {**os.environ, "HOME": str(home), "PYTHONPATH": str(source)}
    subprocess.run(
        [sys.executable, script, tmp_path / "run", json.dumps(settings), "--api-key", "swordfish7"],
        env=environ,
        check=True,
        cwd=home,
    )
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {name: said["settings"][name] for name in GUIDE} == {
        name: value for name, (_, value) in GUIDE.items()
    }
    assert said["settings"]["data"] == "~/data"
    assert said["settings"]["hub/token"] == REDACTED
    assert said["command"][-2:] == ["--api-key", REDACTED]
    assert Path(said["command"][1]).name == "train.py"
    assert said["git"]["dirty"]
    assert "+import rlvitals" in said["git"]["diff"]
    assert said["host"]["cores"] >= 1
    more = said["more"]
    assert more["packages"]["numpy"] == metadata.version("numpy")
    assert more["python"].split()[1] == sys.version.split()[0]
    assert more["seeds"] == {"seed": 7}
    assert more["directory"] == "~"
    written = (tmp_path / "run" / "run.json").read_text()
    assert str(home) not in written
    assert TOKEN not in written
    assert "swordfish7" not in written


SCRIPT = """
import json, sys
import rlvitals
run = rlvitals.start(sys.argv[1], settings=json.loads(sys.argv[2]))
for step in range(3):
    run.log(step, {"reward_mean": 1.0})
run.finish()
"""


def test_what_was_stored_is_known_to_the_diagnosis(tmp_path):
    settings = {name: value for name, (_, value) in GUIDE.items()}
    with rlvitals.start(tmp_path, settings=settings) as run:
        for step in range(30):
            run.log(step, {"reward_mean": float(step)})
    trace = rlvitals.diagnose(tmp_path).trace
    assert {name: trace.settings[name] for name, _ in GUIDE.values()} == dict(GUIDE.values())


def test_another_attempt_tells_what_differs(tmp_path, monkeypatch):
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    for seed in (1, 2):
        with rlvitals.start(tmp_path, settings={"seed": seed}) as run:
            run.log(seed, {"reward_mean": 1.0})
        monkeypatch.setenv("NCCL_DEBUG", "WARN")
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    (told,) = [line for line in lines if line["event"] == "facts"]
    assert told["environment"]["NCCL_DEBUG"] == "WARN"
    assert told["seeds"]["seed"] == 2
    assert not {"packages", "git", "host", "python"} & set(told)
