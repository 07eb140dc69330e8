"""A headless browser through its DevTools pipe: what a page asks the network for, what it draws."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip

DRAWN = """
[...document.querySelectorAll('[role=img]')].map(e => ({
  label: e.getAttribute('aria-label') || e.getAttribute('alt') || '',
  width: e.getBoundingClientRect().width,
  height: e.getBoundingClientRect().height,
  drawn: e.tagName === 'IMG' ? e.naturalWidth > 0 : e.getBBox().width > 0,
}))
"""


class Browser:
    """One page at a time; `requests` lists every URL that the last page asked for but its own."""

    def __init__(self, program: str, profile: Path) -> None:
        inward, self._write = os.pipe()
        self._read, outward = os.pipe()
        line = f'exec "$@" 3<&{inward} 4>&{outward}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(inward, outward),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inward)
        os.close(outward)
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        made = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = made["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self._call(f"{domain}.enable")
        self.requests: list[str] = []

    def open(self, page: Path, width: int = 1200) -> None:
        """Load a file and wait until all that it asks for has come or failed."""
        self._events.clear()
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=1000,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._call("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._message())
        asked = [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]
        self.requests = [u for u in asked if u != page.as_uri() and not u.startswith("data:")]

    def printing(self, on: bool) -> None:
        """Lay pages out as for paper."""
        self._call("Emulation.setEmulatedMedia", media="print" if on else "")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def drawn(self) -> list[dict[str, Any]]:
        """Every figure: its label, its size on the page, whether it has ink."""
        return self.value(DRAWN)

    def close(self) -> None:
        """End the browser."""
        self._call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]
            self._events.append(reply)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser closed its pipe"
            self._buffer += part
        head, _, self._buffer = self._buffer.partition(b"\0")
        found = json.loads(head)
        return found if "method" in found or "id" in found else self._message()
