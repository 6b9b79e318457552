"""Start `rlvitals follow PATH` beside a run that is recorded, as a process of its own.

It judges the run, sends alerts and asks the run to stop. A process takes no time from the training
loop's interpreter and outlives it, so that the end of a killed training is told as well.
"""

import os
import subprocess
import sys
import tempfile
import threading

import psutil

from rlvitals.options import Recording
from rlvitals.tracking.run import Run


def begin(run: Run, recording: Recording) -> None:
    """Start the process where alerts or a stop are wanted; a failure is a note of the run."""
    flags = ["--alerts"] if recording.alerts else []
    flags += ["--stop-on", recording.stop_on] if recording.stop_on else []
    if not flags:
        return
    # -P: a module in the training's working folder must not take the place of ours.
    command = [sys.executable, "-P", "-m", "rlvitals", "follow", str(run.folder), "--until-end"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread that waits
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, env=environ, start_new_session=True,
        )  # fmt: skip
        psutil.Process(process.pid).nice(psutil.Process().nice() + 10)
    except (OSError, psutil.Error) as error:
        run.note(f"no alerts and no stop: {type(error).__name__}: {error}")
        return

    def wait() -> None:
        code = process.wait()
        errors.seek(0)
        if code in {2, 3}:  # wrong settings, nothing to read
            text = errors.read(2_000).decode(errors="replace").strip()
            run.note(f"no alerts and no stop: {text}")
            sys.stderr.write(f"rlvitals: no alerts and no stop: {text}\n")
        errors.close()

    threading.Thread(target=wait, name="rlvitals-companion", daemon=True).start()
