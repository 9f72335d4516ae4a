"""Chromium without a screen, driven over a pipe by its own protocol: no package is needed, only the browser.

`find_browser` says where one is; ``DPHMM_BROWSER`` names another. The browser gets a profile of its own and no network
but this computer.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
MISSING = "no Chromium or Chrome is installed here (apt-get install chromium), or DPHMM_BROWSER names none"
_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe",
    "--force-color-profile=srgb", "--font-render-hinting=none", "--no-proxy-server",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
_SECONDS = 30.0


def find_browser() -> str | None:
    """The path of a Chromium or Chrome, if there is one that a pipe can drive."""
    named = os.environ.get("DPHMM_BROWSER")
    if named:
        return named if Path(named).is_file() else None
    if os.name != "posix":
        return None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A running browser; answers come in the order of the protocol, and what happens in between is kept."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self._process, self._reading, self._writing = process, reading, writing
        self._number, self._left = 0, b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Ask, and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            if not select.select([self._reading], [], [], _SECONDS)[0]:
                raise RuntimeError("the browser does not answer")
            part = os.read(self._reading, 2**20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, page: Path | str, *, scripts: bool = True, **look: Any) -> Tab:
        """A tab with a page from disk, or of a server of this computer by its address."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.send(f"{domain}.enable")
        tab.look(**look)
        if not scripts:
            tab.send("Emulation.setScriptExecutionDisabled", value=True)
        tab.send("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        tab.until(lambda: any(event["method"] == "Page.loadEventFired" for event in tab.events))
        return tab


class Tab:
    """One page in a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def send(self, method: str, **parameters: Any) -> Any:
        """Ask about this page."""
        return self._browser.send(method, self._session, **parameters)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What has happened on this page."""
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds; fails after half a minute."""
        last = time.monotonic() + _SECONDS
        while not (found := holds()):
            assert time.monotonic() < last, "the page did not get there in half a minute"
            self._browser.send("Target.getTargets")
            time.sleep(0.02)
        return found

    def look(self, width: int = 1100, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        """The size of the window, and what its owner prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key, as a person presses it."""
        text = {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """A click on an element, at a share of its width and height."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{found}.scrollIntoView({{block: 'center'}})")
        box = self.ask(f"(b => [b.left, b.top, b.width, b.height])({found}.getBoundingClientRect())")
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **at)

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and what the page's own policy forbade."""
        found = []
        for event in self.events:
            method, told = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(told["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(str(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """What was asked for, from anywhere, the page itself among it."""
        asked = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [told["request"]["url"] for told in asked]

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """What is seen, as a PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}


@contextmanager
def running(path: str) -> Iterator[Browser]:
    """A browser that is ended, and its profile removed, at the end."""
    to_browser, from_browser = os.pipe(), os.pipe()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []

        import fcntl

        def wire() -> None:
            # The browser reads from 3 and writes to 4; neither end may be overwritten by the other.
            reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser[0], from_browser[1]))
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        process = subprocess.Popen(
            [path, *_FLAGS, *root, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=wire, close_fds=False, env={**os.environ, "HOME": profile},
        )  # fmt: skip
        os.close(to_browser[0])
        os.close(from_browser[1])
        browser = Browser(process, from_browser[0], to_browser[1])
        try:
            yield browser
        finally:
            try:
                browser.send("Browser.close")
                process.wait(10)
            except Exception:
                process.kill()
                process.wait()
            os.close(from_browser[0])
            os.close(to_browser[1])


def quiet(tab: Tab, path: Path) -> None:
    """Nothing was complained of, and nothing asked for but the page."""
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [path.resolve().as_uri()]
