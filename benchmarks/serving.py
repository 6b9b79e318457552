"""The live page's costs: many viewers, large and growing runs, a first page of many runs.

RUNS run folders are served once with an empty index and once more. VIEWERS browsers
listen to one stream of messages, of ours and of a bare starlette loop. A compacted run of
LARGE_POINTS, in one metric and in METRICS of them, is opened, and zoomed into at once and after
REST_SECONDS; the peak is of the server's memory from its start until the first chart. A run of
LARGE_POINTS that is not compacted is opened while rows are written to it; its peak is until the
last of them was served. CPU is of the server until the first answer that holds the series.
"""

import asyncio
import base64
import compileall
import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Self

import numpy as np
import psutil
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import rlvitals
from rlvitals.server.channel import Channel
from rlvitals.storage.blocks import Writer

PEAK = 500.0  # of a spike of one point
RUNS = 5_000
LARGE_POINTS, METRICS = 20_000_000, 20
REST_SECONDS = 15.0  # after which the server has let go of the points
VIEWERS, MESSAGES, MESSAGE_SECONDS = 50, 400, 0.01
MESSAGE = {"points": "x" * 400}  # about what a row of ten metrics takes
PORT = 18_265
OURS = f"http://127.0.0.1:{PORT}/api/charts?key=long&name=run0-chart0"
ROWS = f"http://127.0.0.1:{PORT}/api/series?key=long&metric=optimiser/loss&first=%d&last=%d"


def answer(url: str | urllib.request.Request) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:  # noqa: S310 - our own address
            return reply.read()
    except (urllib.error.URLError, OSError):
        return b""


def until(check: Callable[[], object]) -> float:
    start = time.perf_counter()
    while not check():
        time.sleep(0.02)
    return time.perf_counter() - start


class Server:
    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def peak(self) -> float:
        """Return the most memory that the server has taken, in MB: on Linux."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6

    def numbers(self) -> tuple[float, float]:
        root = psutil.Process(self.process.pid)
        every = [root, *root.children(recursive=True)]
        cpu = sum(sum(p.cpu_times()[:2]) for p in every)
        return cpu, sum(p.memory_info().rss for p in every) / 1e6


def chart_values(data: bytes) -> NDArray[np.float64]:
    """Return what the curve of a chart is drawn from; empty where there is no curve yet."""
    columns = json.loads(data).get("columns")
    if not columns:
        return np.zeros(0)
    values = columns[0]["values"]
    return np.frombuffer(base64.b64decode(values["b"]), f"<f{values['f']}").astype(float)


def is_packed_spike(data: bytes) -> bool:
    return PEAK in chart_values(data)


def fleet(folder: Path) -> None:
    run = rlvitals.start(str(folder / "run-0"), framework="sb3")
    for step in range(100):
        run.log({"rollout/ep_rew_mean": float(step)}, step=step)
    run.finish()
    for number in range(1, RUNS):
        shutil.copytree(folder / "run-0", folder / f"run-{number}")
    url = f"http://127.0.0.1:{PORT}/"
    for name in ("empty index", "again"):
        with Server("rlvitals", "serve", str(folder), "--port", str(PORT)) as server:
            start = until(lambda: answer(url))
            first, _ = server.numbers()
            size = len(answer(url))
            listed = start + until(lambda: f'"total":{RUNS}'.encode() in answer(f"{url}api/runs"))
            cpu, memory = server.numbers()
            print(f"{RUNS:,} runs, {name}: first page {start:.1f} s, CPU {first:.2f} s, "
                  f"{size / 1e3:.0f} kB; "
                  f"all listed {listed:.1f} s; CPU {cpu:.1f} s, {memory:.0f} MB")  # fmt: skip


def large(folder: Path, metrics: int = 1) -> None:
    """Open a compacted run of `metrics` metrics, and zoom to its spike."""
    run = rlvitals.start(str(folder / "long"), framework="sb3")
    rows = LARGE_POINTS // metrics
    spike_step = rows // 3
    others = {f"extra/{number}": float(number) for number in range(1, metrics)}
    for step in range(rows):
        run.log(step, {"train/loss": PEAK if step == spike_step else step % 7, **others})
    run.finish()
    compact = (sys.executable, "-m", "rlvitals", "compact", str(folder / "long"))
    subprocess.run(compact, check=True, stdout=subprocess.DEVNULL)
    with Server("rlvitals", "serve", str(folder), "--port", str(PORT)) as server:
        start = until(lambda: b'"columns"' in answer(OURS))
        cpu, _ = server.numbers()
        peak = server.peak()
        word = "kept" if is_packed_spike(answer(OURS)) else "lost"
        near = f"&first={spike_step - 500}&last={spike_step + 500}"
        zoom = until(lambda: is_packed_spike(answer(OURS + near)))
        time.sleep(REST_SECONDS)
        _, rest = server.numbers()
        zoom_after = until(lambda: is_packed_spike(answer(OURS + near)))
        print(f"{LARGE_POINTS:,} points in {metrics} metrics, compacted: first chart "
              f"{start:.1f} s, CPU {cpu:.1f} s, peak {peak:.0f} MB, spike {word}, "
              f"zoom {zoom:.2f} s; at rest {rest:.0f} MB, zoom {zoom_after:.2f} s")  # fmt: skip


def growing(folder: Path) -> None:
    """Open a large run that is written to, ask for its pixels, and wait for its new rows."""
    run = rlvitals.start(str(folder / "long"), framework="sb3", flush_seconds=0.05)
    run.log(0, {"train/loss": 0.0})
    run.flush()
    writer = Writer(next((folder / "long/blocks").glob("*.rlv")))
    block = 1 << 16
    for first in range(1, LARGE_POINTS, block):
        steps = np.arange(first, min(first + block, LARGE_POINTS))
        values = np.where(steps == LARGE_POINTS // 3, PEAK, steps % 7.0)
        writer.scalars(("train/loss",), steps, np.full(len(steps), time.time()), values[None])
        writer.flush()
    with Server("rlvitals", "serve", str(folder), "--port", str(PORT)) as server:
        start = until(lambda: b'"columns"' in answer(OURS))
        cpu, _ = server.numbers()
        word = "kept" if is_packed_spike(answer(OURS)) else "lost"
        pixels = f"http://127.0.0.1:{PORT}/api/pixels?key=long&metric=train/loss&width=1000"
        drawing = until(lambda: PEAK in json.loads(answer(pixels))["values"])
        delays = []
        for step in range(LARGE_POINTS, LARGE_POINTS + 20):
            run.log(step, {"train/loss": 3.0})
            delays.append(until(lambda: step in json.loads(answer(ROWS % (step, step)))["steps"]))  # noqa: B023 - called at once
        total, _ = server.numbers()
        print(f"{LARGE_POINTS:,} points, written to: first chart {start:.1f} s, CPU {cpu:.1f} s, "
              f"peak {server.peak():.0f} MB, spike {word}, pixels {drawing:.1f} s, "
              f"row served in {max(delays):.2f} s, CPU {total:.1f} s")  # fmt: skip
    writer.abandon()
    run.finish()


def viewers(_: Path) -> None:
    """Compare the CPU time of a channel of ours with that of a bare loop."""
    costs = {}
    for name in ("bare", "ours"):
        command = [sys.executable, __file__, "--stream", name]
        with subprocess.Popen(command) as process:
            until(lambda: answer(f"http://127.0.0.1:{PORT}/ready"))
            before = sum(psutil.Process(process.pid).cpu_times()[:2])
            read_streams()
            costs[name] = sum(psutil.Process(process.pid).cpu_times()[:2]) - before
            process.terminate()
    ratio = costs["ours"] / costs["bare"]
    print(f"{VIEWERS} viewers, {MESSAGES} messages: {costs['ours']:.2f} s of CPU, "
          f"a bare loop {costs['bare']:.2f} s, ratio {ratio:.2f}")  # fmt: skip


def read_streams() -> None:
    """Read as VIEWERS browsers until each has the last message."""
    selector = selectors.DefaultSelector()
    for _ in range(VIEWERS):
        viewer = socket.create_connection(("127.0.0.1", PORT))
        viewer.sendall(b"GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        selector.register(viewer, selectors.EVENT_READ, bytearray())
    answer(f"http://127.0.0.1:{PORT}/go")
    open_count = VIEWERS
    while open_count:
        for key, _ in selector.select():
            tail = key.data
            tail += key.fileobj.recv(1 << 16)
            if b"the last" in tail:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                open_count -= 1
            del tail[:-100]


def stream(name: str) -> None:  # noqa: C901 - a server with both loops
    """Serve a stream of messages: of our channel, or of a queue for each listener."""
    channel, queues = Channel(), set()
    loop: list[asyncio.AbstractEventLoop] = []

    async def bare() -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.add(queue)
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                yield await queue.get()

    def send_bare(content: dict[str, str]) -> None:
        message = f"event: points\ndata: {json.dumps(content)}\n\n".encode()
        for queue in queues:
            loop[0].call_soon_threadsafe(queue.put_nowait, message)

    def send(content: dict[str, str]) -> None:
        if name == "ours":
            channel.publish("points", content)
        else:
            send_bare(content)

    def send_all() -> None:
        for _ in range(MESSAGES):
            send(MESSAGE)
            time.sleep(MESSAGE_SECONDS)
        send({"points": "the last"})

    async def events(_: Request) -> StreamingResponse:
        source = channel.listen("") if name == "ours" else bare()
        return StreamingResponse(source, media_type="text/event-stream")

    async def ready(_: Request) -> StreamingResponse:
        return StreamingResponse(iter(["yes"]))

    async def go(_: Request) -> StreamingResponse:
        loop.append(asyncio.get_running_loop())
        threading.Thread(target=send_all, daemon=True).start()
        return StreamingResponse(iter(["yes"]))

    routes = [Route("/events", events), Route("/ready", ready), Route("/go", go)]
    uvicorn.run(Starlette(routes=routes), port=PORT, log_level="error", http="h11")


def main() -> None:
    if sys.argv[1:2] == ["--stream"]:
        stream(sys.argv[2])
        return

    # An installed package is compiled, also where this environment writes no bytecode.
    compileall.compile_dir(str(Path(rlvitals.__file__).parent), quiet=1)

    def large_wide(folder: Path) -> None:
        large(folder, METRICS)

    measures = (viewers, large, large_wide, growing, fleet)
    for measure in measures:
        if sys.argv[1:] and measure.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
            measure(Path(folder, "runs"))


if __name__ == "__main__":
    main()
