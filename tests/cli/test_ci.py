"""What a check of many runs does with a baseline, with mutes, with thresholds: on real runs."""

import json
import shutil
from pathlib import Path

import pytest

RUNS = Path(__file__).parent.parent / "runs"
HEALTHY, SPIKE, KL = "ppo-cartpole-healthy", "ppo-cartpole-lr-spike", "rlhf-kl-explodes"


def put(folder, name):
    (folder / name).mkdir(parents=True)
    for path in (RUNS / name).glob("run.*"):
        if path.suffix not in {".toml", ".txt"}:
            shutil.copy(path, folder / name)


@pytest.fixture
def runs(tmp_path):
    for name in (HEALTHY, SPIKE):
        put(tmp_path / "runs", name)
    return tmp_path / "runs"


def test_a_check_fails_on_what_is_new_alone(call, runs, tmp_path):
    assert call("diagnose", "runs")[0] == 1
    code, out, _ = call("diagnose", "runs", "--write-baseline", "known.json")
    assert code == 0
    assert "known.json holds" in out
    baseline_runs = json.loads(Path("known.json").read_text())["runs"]
    assert {*baseline_runs} == {HEALTHY, SPIKE}
    assert str(tmp_path) not in Path("known.json").read_text()

    code, out, _ = call("diagnose", "runs", "--baseline", "known.json")
    assert code == 0
    assert "none new" in out
    # The same from the run's own folder, by its whole path, and out of the settings file.
    assert call("diagnose", runs / SPIKE, "--baseline", "known.json")[0] == 0
    (tmp_path / "rlvitals.toml").write_text('[diagnose]\nbaseline = "known.json"')
    assert call("diagnose", "runs")[0] == 0

    put(runs, KL)
    code, out, _ = call("diagnose", "runs")
    assert code == 1
    assert f"new: {KL}: warning[kl-spike]" in " ".join(out.split())
    assert "new: ppo" not in out
    code, out, err = call("diagnose", "runs", "--json")
    assert code == 1
    new = {document["trace"]["name"]: document["new"] for document in json.loads(out)}
    assert "kl-spike" in new[KL]
    assert new[SPIKE] == new[HEALTHY] == []
    assert f"new: {KL}" in err
    code, out, _ = call("diagnose", "runs", "--markdown")
    assert code == 1
    assert f"- new: {KL}: warning" in out

    shutil.rmtree(runs / KL)
    baseline_runs[HEALTHY].append(
        {"rule": "kl-clamped", "severity": "note", "metric": "policy/approx_kl"}
    )
    Path("known.json").write_text(json.dumps({"format": 1, "runs": baseline_runs}))
    code, out, _ = call("diagnose", "runs")
    assert code == 0
    assert "1 of the baseline's findings is gone: rewrite it" in out


def test_the_baseline_of_a_settings_file_lies_beside_it(call, runs):
    call("diagnose", "runs", "--write-baseline", runs / "known.json")
    (runs / "rlvitals.toml").write_text('[diagnose]\nbaseline = "known.json"')
    assert call("diagnose", "runs")[0] == 0
    (runs / "known.json").unlink()
    code, _, err = call("diagnose", "runs")
    assert code == 2
    assert "no such baseline" in err


def test_a_run_that_could_not_be_told_before_fails_no_check(call, poor):
    assert call("diagnose", poor)[0] == 4
    assert call("diagnose", poor, "--write-baseline", "known.json")[0] == 0
    assert call("diagnose", poor, "--baseline", "known.json")[0] == 0
    Path("empty.json").write_text('{"format": 1, "runs": {}}')
    assert call("diagnose", poor, "--baseline", "empty.json")[0] == 4


MUTE = """
[[muted]]
rule = "{rule}"
run = "{run}"
reason = "ticket 12"
"""


def test_muted_findings_are_told_and_fail_nothing(call, runs, tmp_path):
    document = json.loads(call("diagnose", runs / SPIKE, "--json")[1])
    rules = [finding["rule"] for finding in document["findings"]]
    text = "".join(MUTE.format(rule=rule, run=f"*{SPIKE}") for rule in rules)
    (tmp_path / "rlvitals.toml").write_text(text)
    code, out, err = call("diagnose", runs / SPIKE)
    assert code == 0
    assert err == ""
    assert f"{len(rules)} muted: " in out
    assert "(ticket 12)" in out
    code, out, _ = call("diagnose", "runs")
    assert code == 0
    assert f"{len(rules)} muted: " in out
    expired = text + "until = 2020-01-01\n"
    (tmp_path / "rlvitals.toml").write_text(expired)
    code, out, _ = call("diagnose", runs / SPIKE)
    assert "muted until 2020-01-01, which is over" in " ".join(out.split())
    assert f"muted {len(rules)})" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ('rule = "kl-spik"\nreason = "x"', "no rule is called 'kl-spik'", "mean kl-spike?"),
        ('rule = "kl-spike"', "a muted finding needs a reason", 'reason = "..."'),
        ('reason = "x"', "a muted finding needs a rule", 'rule = "..."'),
        ('rule = "kl-spike"\nreason = "x"\nunitl = 1', "no option 'unitl'", "mean until?"),
        ('rule = "kl-spike"\nreason = "x"\nuntil = "soon"', "cannot be 'soon'", "2030-12-31"),
        ('rule = "kl-spike"\nreason = "x"\nuntil_step = -1', "cannot be -1", "50000"),
    ],
)
def test_what_is_wrong_with_a_mute_is_said(call, runs, text, problem, hint):
    Path("rlvitals.toml").write_text(f"[[muted]]\n{text}")
    code, _, err = call("diagnose", runs / SPIKE)
    assert code == 2
    assert problem in err
    assert hint in err
    assert "muted 1" in err


def test_a_threshold_is_set_by_flag_over_environment_over_file(call, runs, tmp_path, monkeypatch):
    def spiked(*more):
        out = call("diagnose", runs / SPIKE, "--only", "kl-spike", "--json", *more)[1]
        return bool(json.loads(out)["causes"])

    assert spiked()
    (tmp_path / "rlvitals.toml").write_text("[thresholds]\nkl-spike.factor = 1e9")
    assert not spiked()
    monkeypatch.setenv("RLVITALS_THRESHOLDS", "kl-spike.factor=8")
    assert spiked()
    assert not spiked("--threshold", "kl-spike.factor=1e9")
    monkeypatch.delenv("RLVITALS_THRESHOLDS")
    (tmp_path / "rlvitals.toml").write_text("[thresholds.kl-spike]\nfactor = 7.5\nfloor = 0.06")
    out = call("diagnose", runs / SPIKE, "--only", "kl-spike")[1]
    assert "as set)" in out


@pytest.mark.parametrize(
    ("said", "problem", "hint"),
    [
        ("kl-spike.facto=3", "no rule judges by 'kl-spike.facto'", "did you mean factor?"),
        ("kl-spike.xyz=3", "no rule judges by", "one of kl-spike.factor, kl-spike.floor"),
        ("nothing.at-all=3", "no rule judges by", "rlvitals explain RULE"),
        ("kl-spike.factor=-3", "cannot be -3", "1 or more: x the median"),
        ("action-collapse.share=80", "cannot be 80", "from 0 to 1"),
        ("kl-spike.factor=ten", "cannot be 'ten'", "a finite number"),
        ("kl-spike.factor=nan", "cannot be nan", "a finite number"),
        ("kl-spike.factor", "is not key=value", "--threshold kl-spike.factor=12"),
    ],
)
def test_a_threshold_that_means_nothing_is_refused(call, runs, said, problem, hint):
    code, out, err = call("diagnose", runs / SPIKE, "--threshold", said)
    assert (code, out) == (2, "")
    assert problem in err
    assert hint in err
