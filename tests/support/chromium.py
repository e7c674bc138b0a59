"""Headless Chromium, driven through its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip
_LONGEST = 1 << 16


class Page:
    """One page. ``session`` is DevTools' id of it."""

    def __init__(self, writer: int, reader: int) -> None:
        self._writer, self._reader, self._rest = writer, reader, b""
        self._session = ""
        self._number = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command; returns its result. Raises `AssertionError` if it is refused."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        answer = next(m for m in self._messages() if m.get("id") == self._number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._reader, _LONGEST)
                assert data, "Chromium ended"
                self._rest += data
            message, _, self._rest = self._rest.partition(b"\0")
            yield json.loads(message)

    def open(self, file: Path, width: int, height: int = 900) -> None:
        """Loads a file in a window of this size."""
        if not self._session:
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            self.send("Page.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        self.send("Page.navigate", url=file.as_uri())
        next(m for m in self._messages() if m.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """Clicks the middle of an element with the mouse."""
        place = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            f" return {{x: r.x + r.width / 2, y: r.y + r.height / 2}}; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place
            )  # fmt: skip

    def screenshot(self, file: Path) -> None:
        """Writes the window's contents as PNG."""
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """Starts Chromium, whose profile is in a folder; ends it after the block."""
    assert PROGRAM is not None
    commands, answers = os.pipe(), os.pipe()  # Chromium reads from file 3 and writes to file 4

    def place() -> None:
        reader, writer = os.dup(commands[0]), os.dup(answers[1])
        os.dup2(reader, 3)
        os.dup2(writer, 4)

    # Chromium may not start with the library that `nox -s core_sanitized` preloads.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    child = subprocess.Popen(
        [PROGRAM, *_OPTIONS, f"--user-data-dir={folder}"], preexec_fn=place, pass_fds=(3, 4),
        env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield Page(commands[1], answers[0])
    finally:
        child.kill()
        child.wait()
        os.close(commands[1])
        os.close(answers[0])
