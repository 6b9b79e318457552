"""How a run lives, as it is told: it begins, goes bad, recovers, stops, comes back, ends."""

import math
import os
import time
from pathlib import Path

from following import Followed, assert_as_read_at_once, judge, kinds, of, points

from rlvitals import diagnose
from rlvitals.following import changes
from rlvitals.following.folder_tree import MAX_SCAN_SECONDS
from rlvitals.following.loop import LOOK_SECONDS, MAX_REST_SECONDS, REST_FACTOR, Watch, follow
from rlvitals.rules.rule import Severity
from rlvitals.views.follow import status

HEAD = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,train/clip_fraction\n"


def row(number, *, returns=None, kl=0.01):
    wave = 2 * math.sin(number)
    level = 20 + 400 * (1 - math.exp(-number / 60)) if returns is None else returns
    return f"{2048 * number},{level + wave:.3f},{kl * (1 + 0.01 * wave):.5f},{2 * kl:.4f}\n"


def write(folder, first=1, last=30, **how):
    """Append rows to a run's log as SB3 does, a header first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "progress.csv"
    with path.open("a") as file:
        file.write(HEAD if not file.tell() else "")
        file.writelines(row(number, **how) for number in range(first, last + 1))
    return path


def test_what_is_there_is_told_once(tmp_path):
    write(tmp_path / "ppo")
    followed = Followed(tmp_path)
    first = followed.look()
    assert kinds(first)[0] == "Found"
    assert not first[0].new
    assert points(first)["rollout/ep_rew_mean"] == 30
    assert of(changes.Points, first)[0].first
    assert of(changes.Judged, first)[0].turned
    assert followed.look() == followed.look() == []
    write(tmp_path / "ppo", 31, 33)
    told = followed.look()
    assert points(told)["rollout/ep_rew_mean"] == 3
    assert of(changes.Points, told)[0].series["train/approx_kl"].steps.tolist() == [
        2048 * n for n in (31, 32, 33)
    ]


def test_a_run_that_goes_bad_fires_once_and_clears_with_the_reason(tmp_path):
    followed = Followed(tmp_path)
    told = []
    for n in range(1, 260):
        bad = 60 <= n < 130
        level = 20 + 400 * (1 - math.exp(-min(n, 60) / 60))
        level *= math.exp(-(n - 60) / 15) if bad else 1.0
        write(tmp_path / "ppo", n, n, returns=level, kl=0.2 if bad else 0.01)
        told += followed.look(4.0)
    about = [one for one in told if getattr(one, "rule", None) is not None]
    collapse = [one for one in about if one.rule.name == "return-collapse"]
    assert [type(one).__name__ for one in collapse] == ["Fired", "Regraded", "Cleared"]
    fired, graver, cleared = collapse
    assert (fired.finding.severity, graver.finding.severity) == (Severity.NOTE, Severity.ERROR)
    assert 60 * 2048 < fired.step <= graver.step < 130 * 2048 < cleared.step
    assert cleared.why.startswith("it no longer holds")
    spike = [one for one in about if one.rule.name == "kl-above-target"]
    assert isinstance(spike[0], changes.Fired)
    severities = [one.finding.severity for one in spike if type(one) is not changes.Cleared]
    assert severities[0] is Severity.NOTE  # until it has stood for a while
    assert max(severities) >= Severity.WARNING
    words = [one.diagnosis.verdict.word for one in of(changes.Judged, told) if one.turned]
    assert words[:3] == ["unknown", "learning", "collapsed"]
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


def test_a_symptom_names_its_cause(tmp_path):
    write(tmp_path / "ppo", 1, 60, returns=100.0, kl=0.2)
    fired = of(changes.Fired, Followed(tmp_path).look())
    causes = {one.rule.name: one.cause for one in fired}
    found = diagnose(tmp_path / "ppo")
    expected = {below.rule.name: case.rule.name for case in found.every for below in case.symptoms}
    assert {rule: cause for rule, cause in causes.items() if cause} == expected


def test_judged_at_most_every_ten_seconds_and_five_percent(tmp_path):
    write(tmp_path / "ppo", 1, 100)
    followed = Followed(tmp_path)
    followed.look()
    write(tmp_path / "ppo", 101, 120)
    assert not of(changes.Judged, followed.look(9.0)), "grown enough, but too early"
    assert of(changes.Judged, followed.look(1.0))
    write(tmp_path / "ppo", 121, 125)
    assert not of(changes.Judged, followed.look(500.0)), "4 % more"
    write(tmp_path / "ppo", 126, 126)
    assert of(changes.Judged, followed.look(1.0))


def test_the_last_rows_are_judged_when_nothing_more_comes(tmp_path):
    write(tmp_path / "ppo", 1, 100)
    followed = Followed(tmp_path)
    followed.look()
    write(tmp_path / "ppo", 101, 102)
    followed.look()
    told = followed.look(600.0)
    assert kinds(told) == ["Quiet"]
    assert of(changes.Judged, told)[0].diagnosis.trace.last_step == 102 * 2048
    later = [bool(followed.look(600.0)) for _ in range(20)]
    assert sum(later) == 4, "asked again when the silence has doubled: 20, 40, 80, 160 min"


def test_quiet_is_measured_by_the_run_s_own_pace(tmp_path):
    write(tmp_path / "ppo", 1, 30)
    followed = Followed(tmp_path)
    followed.look()
    for n in range(31, 40):
        write(tmp_path / "ppo", n, n)
        followed.look(10.0)
    assert not of(changes.Quiet, followed.look(90.0))
    quiet = of(changes.Quiet, followed.look(10.0))
    assert quiet[0].seconds == 100.0
    assert quiet[0].step == 39 * 2048
    assert not of(changes.Quiet, followed.look(50.0)), "said once"
    write(tmp_path / "ppo", 40, 40)
    resumed = of(changes.Resumed, followed.look(10.0))
    assert "after 3 min" in resumed[0].why


def test_a_run_that_comes_up_under_the_folder(tmp_path):
    followed = Followed(tmp_path)
    assert followed.look() == []
    assert [tree.path for tree in followed.watch.waiting] == [tmp_path]
    write(tmp_path / "deep" / "er" / "ppo_1", 1, 1)
    told = followed.look(2.0)
    assert kinds(told) == ["Found"]
    assert told[0].new
    assert not followed.watch.waiting
    write(tmp_path / "deep" / "er" / "ppo_2", 1, 1)
    assert {one.run for one in followed.look(2.0) if isinstance(one, changes.Found)} == {
        "deep/er/ppo_2"
    }


def test_a_path_that_comes_up(tmp_path):
    followed = Followed(tmp_path / "later" / "ppo")
    assert followed.look() == []
    write(tmp_path / "later" / "ppo", 1, 1)
    assert kinds(followed.look(2.0)) == ["Found"]
    followed = Followed(tmp_path / "progress.csv")
    assert followed.look() == []
    write(tmp_path, 1, 1)
    assert kinds(followed.look(2.0)) == ["Found"]


def test_a_file_that_only_becomes_a_log(tmp_path):
    path = tmp_path / "ppo" / "progress.csv"
    path.parent.mkdir()
    path.write_text("")
    followed = Followed(tmp_path)
    assert followed.look() == []
    path.write_text(HEAD + row(1))
    assert kinds(followed.look()) == ["Found"]


def test_a_run_that_is_called_otherwise_beside_another(tmp_path):
    (tmp_path / "a.csv").write_text("step,loss\n1,2\n")
    followed = Followed(tmp_path)
    assert followed.look()[0].run == tmp_path.name
    (tmp_path / "b.csv").write_text("step,loss\n1,2\n")
    told = followed.look(2.0)
    assert kinds(told) == ["Renamed", "Found"]
    assert (told[0].before, told[0].run, told[1].run) == (tmp_path.name, "a", "b")
    assert points(told) == {"loss": 1}, "of the new one alone"


def test_two_paths_with_runs_of_one_name(tmp_path):
    for place in ("x", "y"):
        write(tmp_path / place / "ppo")
    followed = Followed(tmp_path / "x", tmp_path / "y")
    followed.look()
    assert [one.name for one in followed.watch.runs] == ["ppo", f"{tmp_path / 'y'} ppo"]


def test_a_run_that_vanishes_and_comes_back(tmp_path):
    path = write(tmp_path / "ppo")
    text = path.read_text()
    followed = Followed(tmp_path)
    followed.look()
    path.unlink()
    assert followed.look() == []
    assert kinds(followed.look(4.0)) == ["Vanished"]
    assert followed.look(60.0) == []
    path.write_text(text + row(31))
    told = followed.look(6.0)
    assert kinds(told) == ["Resumed"]
    assert told[0].why == "its files are back"
    assert points(told)["train/approx_kl"] == 1


def test_a_run_that_is_started_anew_in_its_place(tmp_path):
    path = write(tmp_path / "ppo", 1, 60, returns=100.0, kl=0.2)
    followed = Followed(tmp_path)
    fired = of(changes.Fired, followed.look())
    path.unlink()
    write(tmp_path / "ppo", 1, 2, returns=50.0)
    told = followed.look(20.0)
    assert {one.rule.name for one in of(changes.Cleared, told)} == {r.rule.name for r in fired}
    assert all("anew" in one.why for one in of(changes.Cleared, told))
    assert len(of(changes.Restarted, told)) == 1
    assert points(told)["train/approx_kl"] == 2
    assert of(changes.Points, told)[0].anew
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


def test_a_resumed_run_goes_back(tmp_path):
    write(tmp_path / "ppo", 1, 40)
    followed = Followed(tmp_path)
    followed.look()
    write(tmp_path / "ppo", 21, 60)
    told = followed.look(20.0)
    assert [one.step for one in of(changes.Resumed, told)] == [21 * 2048]
    assert "a new attempt" in of(changes.Resumed, told)[0].why


def test_a_file_that_cannot_be_read_for_a_while(tmp_path):
    path = tmp_path / "trainer_state.json"
    whole = '{"log_history": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}], "max_steps": 9}'
    path.write_text(whole)
    followed = Followed(tmp_path)
    followed.look()
    path.write_text("{")
    assert followed.look(1.0) == [], "it may be in the middle of a write"
    told = followed.look(5.0)
    assert kinds(told) == ["Unreadable"]
    assert told[0].where == "trainer_state.json"
    assert "cut short" in told[0].problem
    assert followed.look(5.0) == []
    assert followed.trace()["optimiser/loss"].values.tolist() == [2.0, 1.5]
    path.write_text(whole.replace("1.5}", '1.5}, {"step": 3, "loss": 1.0}'))
    told = followed.look(1.0)
    assert kinds(told) == ["Readable"]
    assert points(told) == {"loss": 1}


def test_half_a_write_is_no_new_start(tmp_path):
    path = tmp_path / "trainer_state.json"
    rows = ",".join(f'{{"step": {n}, "loss": {9 / n}}}' for n in range(1, 9))
    path.write_text(f'{{"log_history": [{rows}]}}')
    followed = Followed(tmp_path)
    followed.look()
    path.write_text(f'{{"log_history": [{rows}'[:90])
    assert followed.look() == []
    path.write_text(f'{{"log_history": [{rows}, {{"step": 9, "loss": 1.0}}]}}')
    told = followed.look()
    assert kinds(told) == []
    assert points(told) == {"loss": 1}


def test_what_ended_a_run(tmp_path):
    path = tmp_path / "ppo" / "train.log"
    path.parent.mkdir()
    text = (Path(__file__).parent.parent / "readers" / "console" / "sb3.log").read_text()
    path.write_text(text)
    followed = Followed(tmp_path)
    assert not of(changes.Ended, followed.look())
    with path.open("a") as file:
        file.write("Traceback (most recent call last):\n")
        file.write('  File "train.py", line 3, in <module>\n')
        file.write("RuntimeError: CUDA out of memory\n")
    told = followed.look()
    (ended,) = of(changes.Ended, told)
    assert (ended.how, ended.why) == ("failed", "RuntimeError: CUDA out of memory")
    assert of(changes.Judged, told)[0].diagnosis.verdict.word == "failed"
    assert followed.watch.is_over
    with path.open("a") as file:
        file.write(text)
    told = followed.look(20.0)
    assert "though its log says" in of(changes.Resumed, told)[0].why


def test_the_budget_is_done(tmp_path):
    path = tmp_path / "trainer_state.json"
    rows = [f'{{"step": {n}, "loss": {9 / n}}}' for n in range(1, 31)]

    def state(count):
        return f'{{"log_history": [{",".join(rows[:count])}], "max_steps": 30}}'

    path.write_text(state(29))
    followed = Followed(tmp_path)
    assert not of(changes.Ended, followed.look())
    path.write_text(state(30))
    followed.look()
    assert not followed.watch.is_over
    told = followed.look(12.0)
    assert [(one.how, one.step) for one in of(changes.Ended, told)] == [("budget spent", 30)]
    assert followed.watch.is_over


def test_following_ends_when_every_run_is_over(tmp_path):
    write(tmp_path / "a", 1, 30)
    followed = Followed(tmp_path)
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        followed.now += max(seconds, 100.0)

    told = list(follow(followed.watch, until_end=True, sleep=sleep))
    assert "Quiet" not in kinds(told), "nobody saw it grow: its silence is no news"
    assert 5 <= len(slept) <= 8, "it is taken to be over after ten minutes"


def test_looking_rests_the_longer_the_more_it_costs(tmp_path):
    spent = [0.0]

    def timer():
        spent[0] += 0.25  # passes whenever it is asked
        return spent[0]

    write(tmp_path / "ppo")
    quick = Followed(tmp_path).watch
    list(quick.look())
    assert quick.pause() == LOOK_SECONDS
    slow = Watch({tmp_path: judge}, timer=timer)
    list(slow.look())
    list(slow.look())  # reading a run for the first time is not repeated, and does not count
    assert slow.pause() == REST_FACTOR * 0.25
    for n in range(20):
        write(tmp_path / f"other_{n}", 1, 1)
    many = Watch({tmp_path: judge}, timer=timer)
    list(many.look(patient=True))
    list(many.look())
    assert many.pause() == MAX_REST_SECONDS


def test_reading_is_never_put_off_by_judging(tmp_path):
    """Where a judgement takes long, one a look is made, what waited longest first."""
    for name in "abc":
        write(tmp_path / name, 1, 30)
    seconds = [0.0]

    def slow(*asked):
        seconds[0] += 0.4
        return judge(*asked)

    now = [1.8e9]
    watch = Watch({tmp_path: slow}, clock=lambda: now[0], timer=lambda: seconds[0])
    looks = []
    for _ in range(3):
        told = list(watch.look())
        looks.append([one.run for one in of(changes.Judged, told)])
        now[0] += 1.0
    assert looks == [["c"], ["b"], ["a"]], "the newest first"
    assert len(list(Watch({tmp_path: slow}, timer=lambda: seconds[0]).look(patient=True))) >= 9


def test_the_run_that_grows_is_read_and_judged_before_many_old_ones(tmp_path):
    old = [write(tmp_path / f"a_{n}", 1, 30) for n in range(8)]
    for n, file in enumerate(old):
        os.utime(file, (1e9 + n, 1e9 + n))
    write(tmp_path / "live", 1, 30)
    seconds = [0.0]

    def timer():
        seconds[0] += 0.2  # whenever it is asked: a look reads three runs and judges two
        return seconds[0]

    now = [time.time()]
    watch = Watch({tmp_path: judge}, clock=lambda: now[0], timer=timer)
    told = list(watch.look())
    assert [one.run for one in of(changes.Found, told)] == ["live", "a_7", "a_6"]
    assert of(changes.Judged, told)[0].run == "live"
    assert "not judged yet" in status(watch, now[0])
    assert not watch.is_over
    for _ in range(20):
        now[0] += 1.0
        told += list(watch.look())
    assert len(of(changes.Found, told)) == len(of(changes.Judged, told)) == 9
    assert "not judged yet" not in status(watch, now[0])


def test_a_lost_sign_of_a_new_run_is_made_good(tmp_path, monkeypatch):
    """A disk whose folders keep their times still: it is looked through every half minute."""
    from rlvitals.following import folder_tree

    write(tmp_path / "a")
    followed = Followed(tmp_path)
    followed.look()
    followed.look(5.0)
    monkeypatch.setattr(folder_tree, "_signs", lambda _, held=followed.watch._trees[0]: held._signs)
    write(tmp_path / "b")
    assert followed.look(5.0) == []
    assert kinds(followed.look(MAX_SCAN_SECONDS))[0] == "Found"
