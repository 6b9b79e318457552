"""The public API: what it exports, that it loads late, and that no module overwrites a function."""

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlvitals
from rlvitals import api, lab

SB3 = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl\n"


def write(folder, rows=60):
    folder.mkdir(parents=True)
    lines = (f"{i * 2048},{i * 5 + i % 3},0.01\n" for i in range(1, rows + 1))
    (folder / "progress.csv").write_text(SB3 + "".join(lines))
    return folder


def test_exported_names():
    assert rlvitals.__all__ == sorted(rlvitals.__all__)
    assert len(rlvitals.__all__) <= 30
    assert lab.__all__ == sorted(lab.__all__)
    assert not set(lab.__all__) & set(rlvitals.__all__)
    assert set(api.__all__) <= {*rlvitals.__all__, *lab.__all__}
    assert dir(rlvitals) == rlvitals.__all__
    for name in rlvitals.__all__:
        assert getattr(rlvitals, name) is not None
    for name in lab.__all__:
        assert getattr(rlvitals, name) is getattr(lab, name)  # an alias, not listed
    assert all(f"`{name}`" in lab.__doc__ for name in lab.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'diagnoze': did you mean diagnose"):
        _ = rlvitals.diagnoze
    for name in ("_diagnose", "qqqqqq", "Chart"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(rlvitals, name)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("config", "run.config"), ("summary", "run.summary"), ("watch", "wandb"),
        ("alert", "run.alert"), ("url", "run.url"), ("Table", "wandb"), ("Image", "wandb"),
    ],
)  # fmt: skip
def test_what_other_trackers_have_is_told_where_it_is_here(name, instead):
    with pytest.raises(AttributeError, match=rf"'{name}': .*{instead}"):
        getattr(rlvitals, name)
    assert not hasattr(rlvitals, name)


def public_calls():
    """Each public function and method, by name, with the docstring that describes it.

    A dataclass describes its fields where they are declared.
    """
    for name in [*rlvitals.__all__, *lab.__all__]:
        item = getattr(rlvitals, name)
        if inspect.isroutine(item):
            yield name, item, item.__doc__
        methods = inspect.getmembers(item, inspect.isroutine) if inspect.isclass(item) else ()
        for method, call in methods:
            if not (getattr(call, "__module__", None) or "").startswith("rlvitals."):
                continue  # inherited from Python
            if method == "__init__" and not dataclasses.is_dataclass(item):
                yield f"{name}()", call, f"{item.__doc__}\n{call.__doc__}"
            elif not method.startswith("_"):
                yield f"{name}.{method}", call, call.__doc__


def is_named(parameter, text):
    entry = rf"^ *(\*{{0,2}}\w+, )*\*{{0,2}}{parameter}(, \*{{0,2}}\w+)* :"
    return f"`{parameter}`" in text or re.search(entry, text, re.MULTILINE) is not None


def test_docstrings_name_each_of_several_parameters():
    calls = {name: (call, text) for name, call, text in public_calls()}
    assert len(calls) > 100
    missing = {}
    for name, (call, text) in calls.items():
        names = [p for p in inspect.signature(call).parameters if p[0] != "_" and p != "self"]
        if len(names) > 1 and (gaps := [p for p in names if not is_named(p, text or "")]):
            missing[name] = gaps
    assert missing == {}


def test_importing_the_package_loads_nothing_else():
    code = "import sys, rlvitals; print(*(m for m in sys.modules if m.startswith('rlvitals.')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not done.stdout.split()


def test_no_module_is_named_like_a_public_name():
    modules = {path.stem for path in Path(rlvitals.__file__).parent.iterdir()}
    assert modules & set(rlvitals.__all__) == {"lab"}


def test_importing_every_module_leaves_the_functions_functions():
    # A hook needs its library, which takes seconds or is not installed.
    hooks = ("rlvitals.integrations", "rlvitals.trainers", "rlvitals.wandb.integration")
    source = Path(rlvitals.__file__).parent
    names = (
        ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(source.rglob("*.py"))
        if path.name != "__main__.py"
    )
    imported = [name for name in names if not name.startswith(hooks)]
    assert len(imported) > 500
    code = (
        f"import {', '.join(imported)}\n"
        "assert callable(rlvitals.diagnose) and callable(rlvitals.explain), rlvitals.diagnose\n"
        "assert callable(rlvitals.read) and callable(rlvitals.runs) and callable(rlvitals.trace)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_diagnose_a_folder(tmp_path):
    found = rlvitals.diagnose(write(tmp_path / "one"), settings={"target_kl": 0.02})
    assert isinstance(found, rlvitals.Diagnosis)
    assert found.verdict.word is rlvitals.Word.LEARNING
    assert found.trace.settings["target_kl"] == 0.02
    assert found.trace.lifecycle.silence is None


def test_diagnose_a_trace_by_its_arguments_alone(tmp_path):
    trace = rlvitals.trace(write(tmp_path / "one"))
    found = rlvitals.diagnose(trace, only=["kl-above-target"], profile="off-policy")
    assert found.trace.profile is rlvitals.lab.Profile.OFF_POLICY
    assert {rule.name for rule in found.clear} <= {"kl-above-target"}
    with pytest.raises(rlvitals.UsageError, match="names already"):
        rlvitals.diagnose(trace, map={"a": "outcome/return"})


@pytest.mark.parametrize("now", ["yesterday", -1.0, float("nan"), float("inf"), "2026-13-01"])
def test_a_time_that_is_none_is_refused_of_a_path_and_of_a_trace(tmp_path, now):
    path = write(tmp_path / "one")
    for run in (path, rlvitals.trace(path)):
        with pytest.raises(rlvitals.UsageError, match="is not a time") as error:
            rlvitals.diagnose(run, now=now)
        assert error.value.hint == "--now 2026-01-31T12:00:00Z"
    assert rlvitals.diagnose(rlvitals.trace(path), now="2026-01-31").verdict


def test_a_framework_s_own_name_for_a_setting_is_understood(tmp_path):
    found = rlvitals.trace(write(tmp_path / "one"), settings={"kl_target": 0.5})
    assert 0.5 in found.settings.values()
    with pytest.raises(rlvitals.UsageError, match="no setting is called"):
        rlvitals.trace(tmp_path / "one", settings={"kl_targett": 0.5})


def test_several_runs_are_named_and_the_way_out_too(tmp_path):
    write(tmp_path / "all" / "one")
    write(tmp_path / "all" / "two")
    assert [t.name for t in rlvitals.runs(tmp_path / "all")] == ["one", "two"]
    for function in (rlvitals.diagnose, rlvitals.trace, rlvitals.read):
        with pytest.raises(rlvitals.UsageError, match="2 runs are here: one, two") as error:
            function(tmp_path / "all")
        assert "rlvitals.runs(path)" in error.value.hint


def test_read_gives_the_logs_as_they_are(tmp_path):
    (log,) = rlvitals.read(write(tmp_path / "one"))
    assert "rollout/ep_rew_mean" in log.series


def test_silence_is_counted_from_the_newest_wall_time_of_a_live_run_alone(tmp_path):
    from rlvitals.diagnosis import load
    from rlvitals.metrics.canonicalize import Given
    from rlvitals.readers.discovery import sources

    live = Given(live=True)
    (run,) = sources.find(write(tmp_path / "one"))
    assert load.load(run, live, now=2e9).lifecycle.silence is None  # its rows have no times
    monitor = tmp_path / "0.monitor.csv"
    head = '#{"t_start": 1700000000.0, "env_id": "CartPole-v1"}\nr,l,t\n'
    monitor.write_text(head + "".join(f"{i}.0,{i},{i}.5\n" for i in range(1, 61)))
    (run,) = sources.find(monitor)
    assert load.load(run, Given(), now=1.7e9 + 100).lifecycle.silence is None
    found = load.load(run, live, now=1.7e9 + 100).lifecycle
    assert found.silence == pytest.approx(100 - 60.5)
    assert found.last_row == pytest.approx(1.7e9 + 60.5)


def test_explain_returns_a_page():
    assert rlvitals.explain("kl-above-target").startswith("# rule kl-above-target")


def test_a_report_and_pictures_are_those_of_the_commands(tmp_path, capsys):
    from rlvitals.cli import main

    run = write(tmp_path / "one")
    page = rlvitals.report(run, tmp_path / "pages" / "page.html")
    assert page == tmp_path / "pages" / "page.html"
    assert main(["report", str(run), "-o", str(tmp_path / "command.html")]) == 0
    assert "<h2" in page.read_text()
    assert abs(page.stat().st_size - (tmp_path / "command.html").stat().st_size) < 100
    drawn = rlvitals.plot(run, tmp_path / "plots", only=["rewards"], format="svg", theme="dark")
    assert drawn == (tmp_path / "plots" / "rewards.svg",)
    command = ["plot", str(run), "--only", "rewards", "--format", "svg", "--theme", "dark"]
    assert main([*command, "-o", str(tmp_path / "command")]) == 0
    assert drawn[0].read_text() == (tmp_path / "command" / "rewards.svg").read_text()
    capsys.readouterr()


def test_a_plot_of_nothing_known_is_refused(tmp_path):
    run = write(tmp_path / "one")
    with pytest.raises(rlvitals.UsageError, match="no picture is called 'reward'") as error:
        rlvitals.plot(run, only=["reward"])
    assert error.value.where == "plot(only=...)"
    for wrong in ({"format": "gif"}, {"theme": "blue"}):
        with pytest.raises(rlvitals.UsageError, match=next(iter(wrong.values()))):
            rlvitals.plot(run, **wrong)
    with pytest.raises(rlvitals.UnreadableLog):
        rlvitals.report(tmp_path / "nothing")


def test_a_run_tells_its_name_state_and_steps_in_a_line(tmp_path):
    run = rlvitals.start(tmp_path / "maze", flush_seconds=0.01)
    assert repr(run) == "<Run 'maze': recording, at step 0>"
    for step in range(5):
        run.log(step, {"train/loss": 1 / (step + 1)})
    assert repr(run) == "<Run 'maze': recording, at step 4>"
    run.finish()
    assert repr(run) == "<Run 'maze': finished, at step 4>"
    assert repr(rlvitals.trace(tmp_path / "maze")) == "<Trace 'maze': ended, steps 0 to 4>"
    with pytest.raises(ZeroDivisionError), rlvitals.start(tmp_path / "bad") as bad:
        bad.log(1 // 0, {"train/loss": 1.0})
    assert repr(bad) == "<Run 'bad': failed, at step 0>"
    assert repr(rlvitals.trace(write(tmp_path / "csv"))).endswith("open, steps 2048 to 122880>")


def test_a_run_that_is_not_recorded_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_MODE", "off")
    assert "not recorded" in repr(rlvitals.start(tmp_path / "x", name="x"))
