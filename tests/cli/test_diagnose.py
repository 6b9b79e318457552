"""What `rlvitals diagnose` prints, and what its exit code promises."""

import io
import json
import re
import shutil

import pytest
from loading import RUNS
from small_logs import write

NAMES = {"healthy", "poor", "failing"}
TARGET = ("--set", "target_kl=0.02")


def test_a_healthy_run_passes(call, healthy):
    code, out, err = call("diagnose", healthy, *TARGET)
    assert (code, err) == (0, "")
    assert out.startswith(" LEARNING  return is rising")


def test_a_failing_run_fails_and_says_why(call, failing):
    code, out, _ = call("diagnose", failing, *TARGET)
    assert code == 1
    assert "[kl-above-target]" in out
    assert "the run's target_kl" in out


def test_a_run_that_crashed_is_no_pass(call, tmp_path):
    rows = "".join(f"global_step={n}, episodic_return={n / 100}\n" for n in range(100, 6000, 100))
    end = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: nan in loss\n'
    path = tmp_path / "train.log"
    path.write_text(rows + end)
    code, out, _ = call("diagnose", path)
    assert code == 1
    assert "ValueError: nan in loss" in out
    assert call("diagnose", path, "--fail-on", "never")[0] == 0
    path.write_text(rows + end.replace("ValueError: nan in loss", "KeyboardInterrupt"))
    assert call("diagnose", path)[0] == 0


def test_a_poor_run_is_never_a_pass(call, poor):
    code, out, _ = call("diagnose", poor)
    assert code == 4
    assert out.startswith(" UNKNOWN ")
    assert "Log " in out


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("note", 1), ("warning", 1)])
def test_fail_on(call, failing, fail_on, code):
    assert call("diagnose", failing, *TARGET, "--fail-on", fail_on)[0] == code


def test_a_paste_of_dicts_as_python_prints_them(call, monkeypatch):
    row = (
        "{{'loss': 0.0, 'grad_norm': {norm}, 'reward': 0.4, 'reward_std': 0.13,"
        " 'frac_reward_zero_std': 0.0, 'completion_length': 200.0, 'epoch': 0.0{n}}}"
    )
    pasted = "\n".join(row.format(n=n, norm=0.0) for n in range(1, 4))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pasted.encode())))
    code, out, _ = call("diagnose", "-", "--json", "--finished")
    assert code == 1
    assert [cause["name"] for cause in json.loads(out)["causes"]] == ["no-gradient"]


def test_a_paste_on_standard_input(call, monkeypatch):
    rows = "".join(f"Episode {n} Reward {n / 2}\n" for n in range(200)).rstrip()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    code, out, _ = call("diagnose", "-", "--json", "--finished")
    assert code == 0
    assert json.loads(out)["verdict"]["word"] == "learning"


def test_an_empty_paste_is_wrong_usage(call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    code, _, err = call("diagnose", "-")
    assert code == 2
    assert "standard input holds nothing" in err


def test_nothing_readable_is_3(call, tmp_path):
    (tmp_path / "empty").mkdir()
    code, out, err = call("diagnose", tmp_path / "empty")
    assert (code, out) == (3, "")
    assert err.startswith("error: ")
    assert "at:" in err
    assert "try:" in err


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("healthy", "failing"), 1),
        (("healthy", "poor"), 4),
        (("failing", "poor"), 1),
        (("healthy", "healthy2"), 0),
    ],
)
def test_many_runs_are_as_bad_as_the_worst(call, tmp_path, names, code):
    for name in names:
        rows = 3 if name == "poor" else 60
        failing = name == "failing"
        write(tmp_path / "all" / name, rises=not failing, rows=rows, kl=0.1 if failing else 0.01)
    got, out, _ = call("diagnose", tmp_path / "all", *TARGET, "--width", "200")
    assert got == code
    assert len(out.splitlines()) == 1 + len(names)


def test_an_unreadable_run_among_others_is_no_pass(call, tmp_path, healthy):
    (tmp_path / "torn.csv").write_bytes(b"\x00\x01\x02" * 50)
    code, out, _ = call("diagnose", tmp_path / "torn.csv", healthy, *TARGET)
    assert code == 4
    assert "unreadable" in out.splitlines()[1]


def test_several_runs_come_worst_first(call, healthy, failing, poor):
    _, out, _ = call("diagnose", healthy, poor, failing, *TARGET, "--width", "200")
    order = [next(w for w in line.split() if w in NAMES) for line in out.splitlines()[1:]]
    assert order == ["failing", "poor", "healthy"]


def test_runs_of_one_name_are_told_apart(call, healthy, tmp_path):
    twin = shutil.copytree(healthy, tmp_path / "b" / "healthy")
    out = call("diagnose", healthy, twin, "--json")[1]
    assert len({d["trace"]["name"] for d in json.loads(out)}) == 1
    lines = call("diagnose", healthy, twin, "--width", "200")[1].splitlines()
    assert lines[0] == f"in {tmp_path}"  # the folder that both lie in is said once
    assert sum("  b/healthy healthy  " in line for line in lines) == 1


def test_json_of_one_run_is_a_noun_and_of_several_a_list(call, healthy, failing):
    document = json.loads(call("diagnose", failing, *TARGET, "--json")[1])
    assert document["causes"][0]["name"] == "kl-above-target"
    assert document["goes_on"]["live"] is None
    assert document["goes_on"]["why"].startswith("no process record")
    documents = json.loads(call("diagnose", healthy, failing, *TARGET, "--json")[1])
    assert [d["trace"]["name"] for d in documents] == ["failing", "healthy"]


def test_markdown(call, failing):
    _, out, _ = call("diagnose", failing, *TARGET, "--markdown")
    assert out.startswith("## ")
    assert "[`kl-above-target`]" in out


def test_only_and_ignore(call, failing):
    only = ("--only", "kl-above-target", "--json")
    assert json.loads(call("diagnose", failing, *TARGET, *only)[1])["coverage"]["asked"] == 1
    ignore = ("--ignore", "kl-above-target", "--json")
    causes = json.loads(call("diagnose", failing, *TARGET, *ignore)[1])["causes"]
    assert "kl-above-target" not in [cause["name"] for cause in causes]


def test_map_gives_a_key_its_meaning(call, healthy):
    text = (healthy / "progress.csv").read_text()
    (healthy / "progress.csv").write_text(text.replace("rollout/ep_rew_mean", "x"))
    mapped = ("--map", "my/score=outcome/return")
    assert "score is rising" in call("diagnose", healthy)[1]  # by its word
    assert " return is rising" in call("diagnose", healthy, *mapped)[1]


def test_a_key_mapped_in_vain_is_told(call, healthy):
    out = call("diagnose", healthy, "--map", "my/scor=outcome/score")[1]
    assert "my/scor is mapped but not in the log: did you mean my/score?" in out


def test_profile_overrides(call, healthy):
    document = json.loads(call("diagnose", healthy, "--profile", "off-policy", "--json")[1])
    assert document["trace"]["profile"] == "off-policy"


def test_width(call, failing):
    out = call("diagnose", failing, *TARGET, "--width", 60)[1]
    assert 40 < max(len(line) for line in out.splitlines()) <= 60


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (("diagnose", "x", "--only", "kl-above-targe"), "did you mean kl-above-target?"),
        (("diagnose", "x", "--ignore", "kl-above-targe"), "did you mean kl-above-target?"),
        (("diagnose", "x", "--fail-on", "wraning"), "did you mean warning?"),
        (("diagnose", "x", "--profile", "control_ppo"), "did you mean control-ppo?"),
        (("diagnose", "x", "--set", "targetkl=1"), "did you mean target_kl"),
        (("diagnose", "x", "--set", "target_kl"), "target_kl=0.02"),
        (("diagnose", "x", "--set", "target_kl=nan"), "finite"),
        (("diagnose", "x", "--map", "a=outcome/retrun"), "did you mean outcome/return"),
        (("diagnose", "x", "--width", "3"), "40"),
        (("diagnoze", "x"), "did you mean diagnose?"),
        (("explain", "entropyy"), "did you mean entropy"),
        (("metrics", "--framework", "sb4"), "did you mean sb3"),
        (("metrics", "--unmapped"), "rlvitals metrics PATH"),
    ],
)
def test_wrong_usage_is_2_and_says_what_to_try(call, argv, hint):
    code, out, err = call(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert hint in err.split("try:")[1]


def test_the_settings_file_beside_the_run_counts_and_a_flag_overrules_it(call, failing):
    (failing / "rlvitals.toml").write_text('[diagnose]\nfail_on = "never"\n')
    assert call("diagnose", failing, *TARGET)[0] == 0
    assert call("diagnose", failing, *TARGET, "--fail-on", "warning")[0] == 1


def test_a_moved_run_reads_the_same(call, failing, tmp_path):
    output = call("diagnose", failing, *TARGET)[1]
    shutil.move(failing, tmp_path / "elsewhere" / "failing")
    assert call("diagnose", tmp_path / "elsewhere" / "failing", *TARGET)[1] == output


@pytest.mark.parametrize("name", ["no such run", "a\0b", "loop"])
def test_a_path_that_is_none_is_3_not_a_traceback(call, tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    code, out, err = call("diagnose", tmp_path / name)
    assert (code, out) == (3, "")
    assert err.startswith("error: ")


def test_an_outcome_under_another_name_is_proposed_where_none_is_known(call, tmp_path):
    log = tmp_path / "metrics.csv"
    rows = [f"{n},{n % 7},{0.5 / (n + 1)}" for n in range(40)]
    log.write_text("\n".join(["step,reward_a,reward_b", *rows]))
    out = call("diagnose", log)[1]
    verdict = " ".join(" ".join(out.splitlines()[:3]).split())
    assert "reward_a or reward_b may be it: --map reward_a=outcome/reward" in verdict
    out = call("diagnose", log, "--map", "reward_a=outcome/reward")[1]
    assert "may be it" not in out


def test_a_price_tells_the_waste_in_money_and_a_replay_what_was_taken_back(call):
    file = RUNS / "ppo-cartpole-lr-spike" / "run.csv"  # its clock counts less than a minute
    _, out, _ = call("diagnose", file, "--json", "--price", "100", "--replay")
    document = json.loads(out)
    (spent,) = (cause["cost"] for cause in document["causes"] if cause["cost"])
    assert spent["price"] == 100
    assert 0.1 < spent["since_began"]["money"] < 2
    assert isinstance(document["retracted"], list)
    code, _, err = call("diagnose", file, "--price", "dear")
    assert code == 2
    assert "'dear' is not an amount" in err


def test_the_crucial_view_of_one_run_and_of_several(call, healthy, failing):
    code, out, _ = call("diagnose", failing, "--view", "crucial", "--set", "target_kl=0.02")
    assert code == 1  # the exit code is the diagnosis's
    assert "- KL per update" in out
    assert "≤ 0.02 (the run's target_kl)" in out
    code, out, _ = call("diagnose", healthy, failing, "--view", "crucial", "--fail-on", "never")
    assert code == 0
    assert out.index("failing: ") < out.index("healthy: ")  # worst first


def test_the_crucial_view_as_json(call, healthy):
    _, out, _ = call("diagnose", healthy, "--view", "crucial", "--json")
    (document,) = json.loads(out, parse_constant=pytest.fail)["runs"]
    values = {value["title"]: value for value in document["crucial"]["values"]}
    assert values["Return"]["sign"] == "good"
    assert values["KL per update"]["high"] == {"value": 0.02, "origin": "default"}
    code, _, errors = call("diagnose", healthy, "--view", "crucial", "--markdown")
    assert (code, "no Markdown" in errors) == (2, True)


def test_many_rules_that_wait_for_the_same_are_counted_not_listed(call, tmp_path):
    log = tmp_path / "metrics.csv"
    log.write_text("\n".join(["step,return", *(f"{n},{n}" for n in range(40))]))
    short = call("diagnose", log, "--width", "80")[1]
    assert len(short.splitlines()) <= 16
    assert "? Not known from this log: KL, entropy, clipping, critic." in short
    assert re.search(r"cannot judge +\d\d rules: -v prints what is missing", short)
    out = call("diagnose", log, "-v", "--width", "100")[1]
    said = " ".join(out.split())
    assert re.search(r": \d\d rules \(named by `rlvitals rules --coverage PATH`\)", said)
    assert "memory-grows" not in out
    assert "memory-grows" in call("rules", "--coverage", log)[1]
