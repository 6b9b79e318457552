"""Start the services of a run: its lifecycle, machine sampler and environment facts."""

import threading
from collections.abc import Mapping
from typing import cast

from rlvitals.storage.events import Events
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.tracking import environment, lifecycle
from rlvitals.tracking.machine import Sampler
from rlvitals.tracking.run import Run
from rlvitals.tracking.writer_thread import WriterThread


def begin(
    run: Run, pump: WriterThread, events: Events, *, machine_seconds: float, learn: bool
) -> None:
    """Start all services on threads: `learn` the facts, sample the machine (0 s: never)."""
    folder = run.folder
    handle = lifecycle.begin(
        folder,
        events,
        attempt=run.attempt,
        rank=run.rank,
        step=lambda: run.step,
        note=run.note,
    )
    run.at_finish(handle.end)
    if machine_seconds > 0:
        # The machine's measurements are logged with the newest row, and the remaining ones at the
        # end.
        sampler = Sampler(machine_seconds, folder).start()

        def log_last(_: str) -> None:
            sampler.stop()
            pump.measure_machine = dict
            if row := sampler.take():
                run.log(run.step, row)

        pump.measure_machine = sampler.take
        run.at_finish(log_last)
    if learn:
        _start_facts(run)


def _start_facts(run: Run) -> None:
    """Gather the facts on a thread, shortly after the start."""
    hurry = threading.Event()

    def gather() -> None:
        hurry.wait(0.3)  # seconds that a start has to itself
        try:
            facts = environment.gather(run.settings)
            folder = RunFolder.open(run.folder)
            if run.attempt == 1:
                run_fields: dict[str, object] = {
                    name: facts[name] for name in ("git", "host") if name in facts
                }
                if "command" in facts:
                    run_fields["command"] = tuple(cast("list[str]", facts["command"]))
                extra = {name: value for name, value in facts.items() if name not in run_fields}
                folder.update(**run_fields, more={**folder.about.more, **extra})
            elif changed := _changed_facts(folder.about, facts):
                run.event("facts", None, **changed)
                if "job" in changed:
                    folder.update(more={**folder.about.more, "job": changed["job"]})
        except Exception as error:  # noqa: BLE001 - a thread of the recorder: nothing is raised
            run.note(f"facts not recorded: {type(error).__name__}: {error}")

    def finish(_: str) -> None:
        hurry.set()
        thread.join(3.0)  # the end of a run waits for its facts
        if thread.is_alive():
            run.note("facts not recorded in time: git, packages or the machine took over 3 s")

    thread = threading.Thread(target=gather, name="rlvitals-facts", daemon=True)
    thread.start()
    run.at_finish(finish)


def _changed_facts(info: About, facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts that differ from the first attempt's; of packages, the changed ones."""
    recorded: dict[str, object] = {"git": info.git, "host": info.host, **info.more}
    recorded["command"] = list(info.command)
    changed = {name: value for name, value in facts.items() if recorded.get(name) != value}
    packages, recorded_packages = facts.get("packages"), recorded.get("packages")
    if (
        isinstance(packages, Mapping)
        and isinstance(recorded_packages, Mapping)
        and "packages" in changed
    ):
        changed["packages"] = {
            name: packages.get(name, "")
            for name in sorted({*packages, *recorded_packages})
            if packages.get(name) != recorded_packages.get(name)
        }
    return changed
