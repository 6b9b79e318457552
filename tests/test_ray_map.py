"""Runs judged on a Ray cluster: the same answers, in order, also when a machine of it dies."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from rlvitals.cli import main
from rlvitals.diagnosis import ray_map as ray_map_module
from rlvitals.diagnosis.ray_map import ray_map
from rlvitals.errors import UsageError

# Ray leaves a socket to the collector, which may run in the next test.
pytestmark = pytest.mark.filterwarnings("default")
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="Ray is not installed"):
        list(ray_map(abs, [1]))


@pytest.fixture
def ray(monkeypatch):
    """Ray, whose workers find this module; skipped where it is not installed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    module = pytest.importorskip("ray", reason="needs the extra rlvitals[ray]")
    module.shutdown()  # Tune's modules, of another test, may have started one
    yield module
    module.shutdown()


@pytest.fixture
def two_cores(ray):
    """A Ray of two cores on this machine."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    return ray


@pytest.fixture
def handed_over(monkeypatch):
    """Count the arguments that are handed to Ray."""
    counts, real = [], ray_map_module._map_chunks

    def count(ray, function, requests, size):
        counts.append(len(requests))
        return real(ray, function, requests, size)

    monkeypatch.setattr(ray_map_module, "_map_chunks", count)
    return counts


@pytest.fixture
def runs(tmp_path):
    """Nine runs: two shipped ones, four times, and one that cannot be read."""
    for number in range(4):
        for name in ("failing", "healthy"):
            shutil.copytree(EXAMPLES / name, tmp_path / "runs" / f"{name}-{number}")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "progress.csv").write_bytes(b"a\x00b\x01")
    return tmp_path / "runs"


def fail(number):
    raise ValueError(number)


def die_once(request):
    """Kill the worker on the first try."""
    number, marker = request
    if number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def process_of(_):
    return os.getpid()


@pytest.mark.soak
@pytest.mark.usefixtures("two_cores")
def test_the_answers_are_those_of_a_single_process(runs, handed_over, capsys, monkeypatch):
    monkeypatch.chdir(runs.parent)  # a relative path means the same to the workers
    for command in ("diagnose", "triage", "compare"):
        arguments = [command, runs.name, "--json", "--finished", "--now", "2026-01-31"]
        code = main(arguments)
        alone = capsys.readouterr()
        assert main([*arguments, "--ray"]) == code
        assert capsys.readouterr().out == alone.out
        assert len(alone.out) > 500
    assert handed_over == [8, 8, 8]


@pytest.mark.soak
@pytest.mark.usefixtures("two_cores")
def test_an_error_of_the_function_is_raised_as_it_is():
    with pytest.raises(ValueError, match="0"):
        list(ray_map(fail, range(8)))


@pytest.mark.soak
@pytest.mark.usefixtures("two_cores")
def test_a_worker_that_is_killed_is_tried_again(tmp_path):
    requests = [(number, tmp_path / "marker") for number in range(20)]
    assert list(ray_map(die_once, requests)) == [number * number for number in range(20)]
    assert (tmp_path / "marker").exists()


@pytest.mark.soak
@pytest.mark.usefixtures("two_cores")
def test_what_a_worker_does_not_see_is_computed_by_the_process_that_asks(tmp_path):
    """A bucket's copies, for one, lie in the cache of its machine."""
    mine = Path(f"/proc/self/task/{os.getpid()}")  # other processes have no such thread
    answers = list(ray_map(process_of, [tmp_path, mine, tmp_path], path_of=Path, chunk=1))
    assert [answer == os.getpid() for answer in answers] == [False, True, False]


@pytest.mark.soak
def test_machines_that_are_lost_midway_cost_no_answer_of_a_diagnosis(
    ray, runs, handed_over, capsys, monkeypatch
):
    """Six machines; one dies after the first answers, another after more of them."""
    from ray.cluster_utils import Cluster

    from rlvitals.views import progress

    for number in range(4, 40):
        shutil.copytree(EXAMPLES / "failing", runs / f"failing-{number}")
    arguments = ["diagnose", str(runs), "--json", "--finished", "--now", "2026-01-31"]
    code = main(arguments)
    alone = capsys.readouterr().out
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    machines = [cluster.add_node(num_cpus=1) for _ in range(5)]

    def lose_machines(answers, _):
        for number, answer in enumerate(answers):
            if number in {3, 12}:
                cluster.remove_node(machines.pop(), allow_graceful=False)
            yield answer

    monkeypatch.setattr(progress, "progress", lose_machines)
    try:
        ray.init(cluster.address, log_to_driver=False)
        assert main([*arguments, "--ray"]) == code
        assert len(machines) == 3
        assert handed_over == [44]
        printed = capsys.readouterr().out
        assert printed[-len(alone) :] == alone  # before it, the words of Ray's own processes
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.soak
def test_no_cluster_at_an_address_is_an_error(ray, monkeypatch):
    def refuse(*_, **__):
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(UsageError, match="no Ray cluster: Could not find"):
        list(ray_map(abs, [1], "auto"))


@pytest.mark.soak
@pytest.mark.usefixtures("two_cores")
def test_the_score_of_the_faults_is_that_of_a_single_process(handed_over, capsys):
    arguments = ["faults", "score", "--tier", "2", "--split", "dev", "--json"]
    assert main([*arguments, "--jobs", "1"]) == 0
    alone = capsys.readouterr().out
    assert main([*arguments, "--ray"]) == 0
    assert capsys.readouterr().out == alone
    assert sum(handed_over) > 100
