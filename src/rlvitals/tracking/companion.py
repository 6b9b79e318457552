"""Start commands of rlvitals as separate processes while a run is recorded.

`rlvitals follow PATH` judges the run, sends alerts and asks the run to stop. A process takes no
time from the training loop's interpreter and outlives it, so that the end of a killed training is
told as well.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

from rlvitals.options import Recording
from rlvitals.tracking.run import Run


def begin(run: Run, recording: Recording) -> None:
    """Start the process where alerts or a stop are wanted; a failure is a note of the run."""
    flags = ["--alerts"] if recording.alerts else []
    flags += ["--stop-on", recording.stop_on] if recording.stop_on else []
    if flags:
        launch(run, ["follow", str(run.folder), "--until-end", *flags], "no alerts and no stop")


def launch(
    run: Run, arguments: Sequence[str], failure: str, niceness: int = 10
) -> "subprocess.Popen[bytes] | None":
    """Start a command; return its process. A failure is a note that begins with `failure`."""
    import psutil  # noqa: PLC0415 - most runs have no companion

    # -P: a module in the training's working folder must not take the place of ours.
    command = [sys.executable, "-P", "-m", "rlvitals", *arguments]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread that waits
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, env=environ, start_new_session=True,
        )  # fmt: skip
        psutil.Process(process.pid).nice(psutil.Process().nice() + niceness)
    except (OSError, psutil.Error) as error:
        run.note(f"{failure}: {type(error).__name__}: {error}")
        return None

    def wait() -> None:
        code = process.wait()
        errors.seek(0)
        if code in {2, 3}:  # wrong settings, nothing to read
            text = errors.read(2_000).decode(errors="replace").strip()
            run.note(f"{failure}: {text}")
            sys.stderr.write(f"rlvitals: {failure}: {text}\n")
        errors.close()

    threading.Thread(target=wait, name="rlvitals-companion", daemon=True).start()
    return process
