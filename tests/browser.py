"""Headless Chromium, told what to do over a pipe: no driver, no package, no network.

with Browser() as browser:
    page = browser.open(path)
    page.run("document.title")
"""

import base64
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from waiting import HANG_SECONDS

NAMES = ("chromium", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--mute-audio",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe", "--force-color-profile=srgb",
)  # fmt: skip

# Chromium reads its orders from file 3 and answers into file 4: they are put there, then it runs.
STARTER = """
import fcntl, os, sys
orders, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(orders, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program():
    """Where Chromium is; None where it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_browser = pytest.mark.skipif(
    program() is None and not os.environ.get("RLVITALS_REQUIRE_BROWSER"),
    reason="no Chromium: apt-get install chromium",
)


class Browser:
    """A browser of its own, with a profile of its own, for as long as the block lasts."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        command = [program(), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-SEc", STARTER, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events = 0, b"", []
        self.readable = selectors.DefaultSelector()  # `select` takes no descriptor above 1,023
        self.readable.register(self.back, selectors.EVENT_READ)
        return self

    def __exit__(self, *_):
        try:
            self.ask("Browser.close")
            self.process.wait(HANG_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.readable.close()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, session=None, **params):
        """Ask the browser, and wait for its answer; what happens meanwhile is kept in `events`."""
        self.number += 1
        said = {"id": self.number, "method": method, "params": params}
        if session:
            said["sessionId"] = session
        os.write(self.to, json.dumps(said).encode() + b"\0")
        until = time.monotonic() + HANG_SECONDS
        while True:
            told = self._next(until)
            if told.get("id") == self.number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self.events.append(told)

    def _next(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            assert left > 0, "the browser does not answer"
            if self.readable.select(left):
                part = os.read(self.back, 1 << 20)
                assert part, "the browser has ended"
                self.buffer += part
        one, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(one)

    def open(self, path, width=1100, height=900, *, dark=False, touch=False):
        """Open a file, or an address, in a window of a size, and wait until it is loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.ask("Page.bringToFront")  # a page that is out of sight is not drawn
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        page.look(width, height, dark=dark, touch=touch)
        is_address = str(path).startswith("http://")
        page.ask("Page.navigate", url=path if is_address else Path(path).resolve().as_uri())
        page.until("document.readyState === 'complete'")
        return page


class Page:
    """One page in the browser."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def look(self, width, height, *, dark=False, touch=False):
        """Choose the window's size, and whether its reader likes it dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=touch)  # fmt: skip
        wish = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[wish])

    def run(self, script):
        """Evaluate a script and return its value; an exception in it fails."""
        told = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script):
        """Wait until a script comes to something true."""
        end = time.monotonic() + HANG_SECONDS
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def settle(self):
        """Wait until what came into sight is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x, y, to_x):
        """Press at a point, move, and let go."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        for at in range(1, 6):
            self.mouse("mouseMoved", x + (to_x - x) * at / 5, y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, y, button="left", clickCount=1)
        self.settle()

    def key(self, name, text=None):
        """Press a key; `text` is what it types, where it types anything."""
        typed = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=name, **typed)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=name)
        self.settle()

    def picture(self, path, *, whole=False):
        """Write what is seen as a PNG."""
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(told["data"]))

    def paper(self, path):
        """Print as a PDF."""
        told = self.ask("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
        Path(path).write_bytes(base64.b64decode(told["data"]))

    def complaints(self, allowed="file:"):
        """Every error, warning and exception of the page so far, and whatever it tried to load.

        `allowed`: how the addresses begin that it may load.
        """
        self.run("1")
        said = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    said.append(params["exceptionDetails"])
                case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                    said.append(params["entry"]["text"])
                case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                    said.append(params["args"])
                case "Network.requestWillBeSent" if not params["request"]["url"].startswith(
                    (allowed, "blob:")
                ):
                    said.append(params["request"]["url"])
        return said
