"""Diagnose, compare, read, trace, plot and report runs: the functions of `import rlvitals`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, environ
from pathlib import Path
from typing import Any

from rlvitals import settings as options
from rlvitals.checkpoints import progress
from rlvitals.comparison import compare as comparing
from rlvitals.comparison import scores
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison
from rlvitals.diagnosis import batch, load, training_summary
from rlvitals.diagnosis.engine import Diagnosis, add_retractions
from rlvitals.diagnosis.engine import diagnose as judge
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.hosted.address import parse as parse_address
from rlvitals.hosted.address import to_path
from rlvitals.metrics import canonicalize
from rlvitals.options import Plot
from rlvitals.readers.discovery import sources
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.series import to_log
from rlvitals.tracking import clock
from rlvitals.types import Log, Profile, Setting, Trace
from rlvitals.views import notebook
from rlvitals.views import summary as summaries

__all__ = ["compare", "diagnose", "open", "plot", "read", "report", "runs", "summarise", "trace"]

Where = str | PathLike[str]


def diagnose(  # noqa: PLR0913 - the command's options, each by its name
    run: Where | Trace,
    *,
    profile: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002 - as the command line calls it
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    thresholds: Mapping[str, float] | None = None,
    replay: bool = False,
    live: bool | None = None,
    now: float | str | None = None,
) -> Diagnosis:
    """Diagnose a run: a log, a run's folder, or a trace.

    Arguments that are None default to `RLVITALS_*` and `rlvitals.toml`, as on the command line; for
    a trace only the arguments count. The `trace` of the diagnosis of a run folder with 16 MiB or
    more of rows holds the points that were judged; `rlvitals.trace` reads all of them.

    Parameters
    ----------
    run : path or Trace
        A log, a run's folder, the address of a hosted run, or a trace.
    profile : str, optional
        Kind of training, one of `rlvitals.lab.Profile`: "grpo". Default: detected.
    settings : mapping, optional
        Settings of the run, as with `--set`: `{"target_kl": 0.02}`. They take precedence over the
        log; a framework's own name of a setting is accepted.
    map : mapping, optional
        Metrics of logged keys, as with `--map`: `{"my/score": "outcome/return"}`.
    only, ignore : sequence of str, optional
        Names of the rules to use (default: all), and of those not to use.
    thresholds : mapping, optional
        Thresholds of rules, as with `--threshold`: `{"kl-spike.factor": 12.0}`.
    replay : bool
        Judge the run also as it grew, and list warnings that were taken back in `retracted`.
    live : bool, optional
        A run without a recorded end is still training (True) or has ended (False). Default: this
        follows from the log.
    now : float or str, optional
        Time of the judgement, in seconds since the epoch or as an ISO 8601 date. Default: the
        clock. Not used for a trace.

    Raises
    ------
    UnreadableLog
        If there is no log at the path, or it cannot be read.
    UsageError
        If an argument is invalid, there are several runs at the path, or `map` comes with a trace.
    VitalsError
        If a hosted run cannot be fetched.
    """
    notebook.register()
    if isinstance(run, Trace):
        if map:
            raise UsageError("a trace has its names already", hint="rlvitals.trace(path, map=...)")
        clock.now("" if now is None else str(now))  # checked, as a path's is; not used
        rules = load.chosen_rules(only or (), ignore or ())
        diagnosis = judge(_with_settings(run, profile, settings, thresholds, live=live), rules)
        return add_retractions(diagnosis, rules) if replay else diagnosis
    chosen_options = _load_options(
        run, profile, settings, map, only, ignore, thresholds, live=live, now=now
    )
    answer = batch.judge((_find_run(run), chosen_options))
    if isinstance(answer, UnreadableLog):
        raise answer
    rules = load.chosen_rules(chosen_options.diagnose.only, chosen_options.diagnose.ignore)
    return add_retractions(answer, rules) if replay else answer


def summarise(run: Where) -> str:
    """Return a summary of the run at a path, as `rlvitals plot` writes it.

    Raises UnreadableLog if the run cannot be read, UsageError if there are several.
    """
    run_files, saved_progress = _find_run(run), progress.read(to_path(run))
    trained = None if saved_progress is None else saved_progress.trained
    return summaries.page([training_summary.summary(run_files.name, diagnose(run), trained)])


def report(run: Where, path: Where = "report.html") -> Path:
    """Write the HTML page of `rlvitals report RUN` for the run at a path `run`; return `path`.

    Missing folders of `path` are created, and an existing file is replaced. Raises UnreadableLog if
    the run cannot be read, UsageError for invalid settings or several runs, and OSError if the page
    cannot be written.
    """
    from rlvitals.views.report import contents, html
    from rlvitals.views.report.run_subject import subject

    chosen_options, run_files = _load_options(run), _find_run(run)
    now_s = clock.now(chosen_options.diagnose.now)
    content = subject(run_files.name, run_files, diagnose(run), chosen_options, now_s)
    text = html.document([contents.page(content, 0)], now_s)
    page = Path(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_bytes(text.encode("utf-8", "backslashreplace"))
    return page


def plot(
    run: Where | Trace,
    folder: Where = "training_plots",
    *,
    only: Sequence[str] = (),
    theme: str = "light",
    format: str = "png",  # noqa: A002 - as the command line calls it
) -> tuple[Path, ...]:
    """Draw the pictures of `rlvitals plot` into files; return their paths.

    Parameters
    ----------
    run : path or Trace
        A log, a run's folder, the address of a hosted run, or a trace.
    folder : path
        Folder of the pictures, created if missing.
    only : sequence of str
        Names of pictures. One whose metrics are not logged is left out. Default: all.
    theme : {"light", "dark"}
        Colours of the pictures.
    format : {"png", "svg", "pdf", "json"}
        Format of the files; "json" is the data of a picture.

    Raises
    ------
    UnreadableLog
        If there is no log at the path, or it cannot be read.
    UsageError
        If a name, theme or format is unknown, or the folder cannot be created.
    VitalsError
        If matplotlib is not installed, unless `format` is "json".
    """
    from rlvitals.views import figures
    from rlvitals.views.drawing import picture_folder
    from rlvitals.views.figures.figure import Subject
    from rlvitals.views.figures.panels import picture

    options.check("plot", {"theme": theme}, "plot(theme=...)")
    plot_options = Plot(theme=theme, format=(format,))
    picture_folder.check(plot_options)
    chosen_figures = figures.choose(only, "plot(only=...)")
    diagnosis = diagnose(run)
    drawings = (
        picture(each, [Subject(diagnosis.trace.name, diagnosis)]) for each in chosen_figures
    )
    logged = (drawing for drawing in drawings if drawing is not None)
    target = Path(folder)
    return tuple(target / name for name in picture_folder.write(logged, target, plot_options))


def compare(  # noqa: PLR0913 - the command's options, each by its name
    *runs: Where | Trace,
    by: Sequence[str] = (),
    metric: str = "",
    at: str = str(comparing.DEFAULT_SCORE_AT),
    axis: str = "steps",
    level: float | None = None,
    short_fails: bool = False,
    live: bool | None = None,
) -> Comparison:
    """Compare groups of runs with the first group.

    A run that ends before the others of its task cuts all of them there.

    Parameters
    ----------
    *runs : path or Trace
        A run, a folder of runs, the address of hosted runs, or a trace.
    by : sequence of str
        Settings to group by; "path" is the path in `runs`. Default: all but the seed.
    metric : str
        Metric, or the last part of its name: "return". Default: the outcome that most runs log.
    at : str
        Part of a run that its score is taken from: "last", "best" or "mean of last N %".
    axis : {"steps", "samples", "episodes", "tokens", "time"}
        Axis on which the runs are aligned.
    level : float, optional
        Value of the metric, in its unit, to which the time is measured. Default: 90 % of the way
        from chance, or from the start of the runs, to the score of the first group.
    short_fails : bool
        A run that ends before the others counts as failed and cuts none.
    live : bool, optional
        As in `diagnose`.

    Raises
    ------
    UnreadableLog
        If a path cannot be read.
    UsageError
        If there is no run, an argument is invalid, no run logs the metric, or a run lacks the axis.
    """
    members: list[Member] = []
    seen_runs: set[tuple[Path, str]] = set()
    for run in runs:
        if isinstance(run, Trace):
            members.append(Member(_with_settings(run, live=live)))
            continue
        run_members, wrong = load.members(
            to_path(run), load.run_overrides(_load_options(run, live=live)), seen_runs
        )
        if wrong:
            raise wrong[0]
        members += run_members
    request = comparing.CompareOptions(
        by=tuple(by),
        metric=metric,
        at=scores.parse_score_at(at),
        axis=scores.parse_axis(axis),
        short_fails=short_fails,
        level=level,
    )
    return comparing.compare(members, request)


def trace(
    path: Where,
    *,
    profile: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002 - as the command line calls it
    live: bool | None = None,
) -> Trace:
    """Read one run with canonical metric names.

    Parameters
    ----------
    path : path
        A log, a run's folder, or the address of a hosted run.
    profile, settings, map, live : optional
        As in `diagnose`.

    Raises
    ------
    UnreadableLog
        If there is no log at the path, or it cannot be read.
    UsageError
        If an argument is invalid, or there are several runs at the path.
    VitalsError
        If a hosted run cannot be fetched.
    """
    notebook.register()
    chosen_options = _load_options(path, profile, settings, map, live=live)
    return load.load(_find_run(path), load.run_overrides(chosen_options))


def runs(path: Where) -> tuple[Trace, ...]:
    """Read every run below a folder, or of a hosted project.

    Raises UnreadableLog if there is none, or one of them cannot be read.
    """
    given_options = load.run_overrides(_load_options(path))
    return tuple(load.load(run, given_options) for run in load.runs(to_path(path)))


def open(address: Where) -> Trace | Mapping[str, Trace]:  # noqa: A001 - as of other readers of files
    """Read a folder, a log, a hosted run or a page of `rlvitals serve`: one trace or several.

    `http://host:8265/run/KEY` is one run. `http://host:8265` is all runs of the server, each read
    on first access. The address may contain the server's token: `?token=...`. Raises
    UnreadableLog, UsageError for an invalid address, VitalsError if the server is unreachable.
    """
    from rlvitals.hosted import served_runs

    notebook.register()
    if parse_address(address) is None and served_runs.is_address(str(address)):
        return served_runs.open_address(str(address))
    found_runs = load.runs(to_path(address))
    given_options = load.run_overrides(_load_options(address))
    traces = {run.name: load.load(run, given_options) for run in found_runs}
    return next(iter(traces.values())) if len(traces) == 1 else traces


def read(path: Where) -> tuple[Log, ...]:
    """Read one run's files with their original names; one log for each program that wrote them.

    Saved rollouts without a log are one: their means at each step. Raises UnreadableLog if none of
    the files can be read, UsageError if there are several runs.
    """
    run = _find_run(path)
    return sources.read(run) if run.files else (to_log(rollout_index.read(run.root)),)


def _with_settings(
    run: Trace,
    profile: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    thresholds: Mapping[str, float] | None = None,
    *,
    live: bool | None = None,
) -> Trace:
    """Apply a caller's profile, settings and thresholds to a trace."""
    if live is not None and not run.lifecycle.over:
        cycle = replace(run.lifecycle, live=live, live_by=f"live={live} says so")
        run = replace(run, lifecycle=cycle)
    if profile:
        options.check("diagnose", {"profile": profile}, "diagnose(profile=...)")
    kind = Profile(profile) if profile else run.profile
    run_settings = options.check("settings", settings or {}, "diagnose(settings=...)")
    numbers = options.check("thresholds", thresholds or {}, "diagnose(thresholds=...)")
    canonical_settings = {**run.settings, **load.canonical(run_settings)}
    # A budget of environment steps says nothing of an axis that counts episodes.
    counts_steps = "total_steps" in run_settings or run.step_unit in {"steps", "environment steps"}
    budget = canonicalize.budget(canonical_settings.get("total_steps")) if counts_steps else None
    return replace(
        run,
        profile=kind,
        settings=canonical_settings,
        budget=budget or run.budget,
        thresholds={**run.thresholds, **load.thresholds(numbers)},
    )


def _find_run(path: Where) -> sources.Run:
    found_runs = load.runs(to_path(path))
    if len(found_runs) > 1:
        raise UsageError(
            f"{len(found_runs)} runs are here: {', '.join(run.name for run in found_runs[:5])}",
            where=str(path),
            hint="name one of them, or diagnose each trace of rlvitals.runs(path)",
        )
    return found_runs[0]


def _load_options(  # noqa: PLR0913, PLR0917 - diagnose's own arguments
    path: Where,
    profile: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    mapping: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    thresholds: Mapping[str, float] | None = None,
    *,
    live: bool | None = None,
    now: float | str | None = None,
) -> options.Settings:
    arguments: dict[str, Any] = {"profile": profile, "only": only, "ignore": ignore}
    if live is not None:  # over what a layer below says
        arguments |= {"live": live, "finished": not live}
    arguments["now"] = None if now is None else str(now)
    values = {key: value for key, value in arguments.items() if value is not None}
    flags = {
        "diagnose": options.check("diagnose", values, "diagnose(...)"),
        "metrics": options.check("metrics", mapping or {}, "diagnose(map=...)"),
        "settings": options.check("settings", settings or {}, "diagnose(settings=...)"),
        "thresholds": options.check("thresholds", thresholds or {}, "diagnose(thresholds=...)"),
    }
    return options.load(to_path(path), flags, environ)
