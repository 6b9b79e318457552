"""Record which test executes which line and its cost, cached per test file.

`record` runs in a process of its own, with coverage of `packages` and one context per test. Lines
executed in processes that a test starts or forks count for that test. Lines that a fixture
executes count for all tests of its file: it may be shared.
"""

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=line", "-x")
RC = """[run]
source =
    {sources}
data_file = {data}
parallel = true
patch = fork, _exit
context = ${{RLVITALS_TEST}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse
"""
FIXTURES = "fixtures"  # the context of what runs before and after a test


class Clock:
    """A pytest plugin: the context of coverage, and what each test costs."""

    def __init__(self, cov: Any) -> None:
        self.cov = cov
        self.costs: dict[str, float] = {}  # CPU seconds of a passed test, its processes' included
        self.began = 0.0

    def pytest_runtest_logstart(self) -> None:
        self.began = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        self._enter(item.nodeid)
        try:
            return (yield)
        finally:
            self._enter(FIXTURES)

    def _enter(self, context: str) -> None:
        os.environ["RLVITALS_TEST"] = context
        self.cov.switch_context(context)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.costs[report.nodeid] = _cpu() - self.began


def _cpu() -> float:
    return sum(os.times()[:4])


def record(test_file: str, packages: Iterable[str], out: Path) -> None:
    """Run a test file and write what its tests cost and execute to `out`, as JSON.

    `packages` are folders relative to the current one, the root of the tree.
    """
    with tempfile.TemporaryDirectory() as folder:
        rc, data = Path(folder) / "coveragerc", Path(folder) / "data"
        sources = "\n    ".join(str(Path(option).resolve()) for option in packages)
        rc.write_text(RC.format(sources=sources, data=data))
        os.environ.pop("RLVITALS_TEST", None)
        cov = coverage.Coverage(config_file=str(rc))
        os.environ["COVERAGE_PROCESS_START"] = str(rc)
        cov.start()
        clock = Clock(cov)
        pytest.main([*(option for option in QUIET if option != "-x"), test_file], plugins=[clock])
        cov.stop()
        cov.save()
        all_data = coverage.CoverageData(basename=str(Path(folder) / "all"))
        for data_file in Path(folder).glob("data.*"):
            try:
                option = coverage.CoverageData(basename=str(data_file))
                option.read()
                all_data.update(option)
            except coverage.CoverageException:
                continue  # of a process that was killed
        result = {"costs": clock.costs, "lines": _lines(all_data, set(clock.costs))}
    out.write_text(json.dumps(result))


def _lines(all_data: Any, passed: set[str]) -> dict[str, dict[str, list[str]]]:
    """Return, by file and line, the tests that execute it; FIXTURES among them."""
    root = f"{Path.cwd()}{os.sep}"
    return {
        path.removeprefix(root): {
            str(line): names
            for line, contexts in all_data.contexts_by_lineno(path).items()
            if (
                names := sorted(
                    context for context in contexts if context in passed or context == FIXTURES
                )
            )
        }
        for path in all_data.measured_files()
    }


@dataclass(slots=True)
class Covering:
    """What was recorded of all test files."""

    costs: dict[str, float] = field(default_factory=dict)  # by test
    lines: dict[tuple[str, int], set[str]] = field(default_factory=dict)  # by file and line

    def add(self, test_file: str, recorded: Path) -> None:
        """Take in what `record` wrote of a test file."""
        results = json.loads(recorded.read_text())
        self.costs |= results["costs"]
        all_of_file = {name for name in results["costs"] if name.split("::")[0] == test_file}
        for path, lines in results["lines"].items():
            for line, names in lines.items():
                tests = all_of_file if FIXTURES in names else set(names)
                self.lines.setdefault((path, int(line)), set()).update(tests)

    def tests(self, places: Iterable[tuple[str, int]]) -> set[str]:
        """Return the tests that execute one of these lines."""
        return set().union(*(self.lines.get(place, ()) for place in places))

    def chosen(self, tests: Iterable[str], *, seconds: float, most: int) -> list[str]:
        """Return the cheapest tests within a budget, each test function before its next case."""
        turns: dict[str, int] = {}
        ranked = []
        for name in sorted(tests, key=lambda one: (self.costs[one], one)):
            function = name.partition("[")[0]
            turns[function] = turns.get(function, -1) + 1
            ranked.append((turns[function], self.costs[name], name))
        selected: list[str] = []
        for _, cost, name in sorted(ranked):
            if not selected or (cost <= seconds and len(selected) < most):
                selected.append(name)
                seconds -= cost
        return selected
