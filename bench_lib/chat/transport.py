"""HTTP to one server: streaming, timeouts, retries of what may pass, and nothing else."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from reprlib import repr as shown
from typing import Any, TypeVar

import httpx

from bench_lib.chat import body as bodies
from bench_lib.chat.body import MOST_BYTES
from bench_lib.chat.reply_stream import Fault, error_in, events, mended, parsed
from bench_lib.messages import abort
from bench_lib.messages.chat import RequestRefused, RequestUnfit, TransportError
from bench_lib.messages.keys import key_from
from bench_lib.messages.settings import EndpointSettings
from bench_lib.redact import redacted, scrubbed

T = TypeVar("T")
PASSING = frozenset({408, 409, 424, 425, 429, 499})
LASTING = frozenset({501, 505})
"""Statuses that may pass though they are not 5xx, and 5xx that do not; see `_passes`."""
MOST_ERROR = 2**16
"""Characters of a failing status's body that are read."""
UNFIT = frozenset({400, 413, 414, 415, 422})
"""Statuses that another request may not get."""

PLACES, MOST = 8, 64
"""Requests at once where the user leaves it to the server: before it is asked, and at most."""


class Transport:
    """Requests to `url`, at most `places` at once, each tried until it passes or is hopeless.

    A wait that a busy server asks for holds back all requests, not only the one it answered. A
    connection serves one request, so what a server sends after its reply is nobody's reply.
    """

    def __init__(self, url: str, settings: EndpointSettings) -> None:
        self.url = url
        self.settings = settings
        self.places = settings.concurrency or PLACES
        self._slots = threading.BoundedSemaphore(self.places)
        self._resume_at = 0.0
        self._down = False
        self._jitter = random.Random()  # waits only; no reply depends on it
        timeout = httpx.Timeout(
            settings.timeout_s,
            connect=min(10.0, settings.timeout_s, settings.deadline_s),
            pool=None,
        )
        places = httpx.Limits(
            max_connections=settings.concurrency or MOST, max_keepalive_connections=0
        )
        self._client = httpx.Client(
            timeout=timeout, limits=places, headers={"Accept-Encoding": "identity"}
        )

    @contextmanager
    def post(
        self, path: str, body: dict[str, Any], most: int = MOST_BYTES
    ) -> Iterator[Iterator[Any]]:
        """POST once; yields the reply's JSON events, one or a stream of them, of `most` bytes.

        What comes as `text/event-stream` is a stream; everything else must be one JSON value,
        whatever its type says.

        Raises:
            Fault: a failure that may pass.
            RequestRefused: the server declines this request.
        """
        with self._response("POST", path, json=body) as response:
            if "text/event-stream" in response.headers.get("content-type", "").lower():
                yield self._sound(events(bodies.lines(self._chunks(response, most))))
            else:
                yield self._sound([self._json(response, most)])

    def get(self, path: str) -> Any:
        """GET a JSON document; raises TransportError or RequestRefused."""

        def once() -> Any:
            with self._response("GET", path) as response:
                return self._json(response)

        return self.persist(once)

    def allow(self, places: int) -> None:
        """So many requests at once from now on, `MOST` at most; to be called before the first."""
        self.places = max(1, min(MOST, places))
        self._slots = threading.BoundedSemaphore(self.places)

    def told(self, address: str) -> str:
        """What the server says at an address of its own, or nothing where it has none."""
        try:
            with self._response("GET", "", base=address) as response:
                return scrubbed("".join(self._chunks(response)), self.settings.key_env)
        except (Fault, RequestRefused):
            return ""

    def persist(self, once: Callable[[], T]) -> T:
        """Do it, and again after each Fault until the tries are used up (TransportError).

        Once that has happened, each further call gets one try until one passes: a run of thousands
        must not wait for a dead server thousands of times.
        """
        s = self.settings
        with self._slots:
            for attempt in range(s.retries + 1):
                abort.check()
                time.sleep(max(0.0, self._resume_at - time.monotonic()))
                try:
                    result = once()
                except Fault as fault:
                    wait_s = self._wait_s(fault, attempt)
                else:
                    self._down = False
                    return result
                time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _wait_s(self, fault: Fault, attempt: int) -> float:
        """How long to wait after a fault; TransportError where that is in vain."""
        s, wait_s = self.settings, fault.wait_s
        told = redacted(str(fault), s.key_env)
        if self._down or attempt == s.retries:
            self._down = True
            tries = "once" if attempt == 0 else f"{attempt + 1} times"
            raise TransportError(f"{self.url} failed {tries}, last: {told}") from None
        if wait_s is None:
            longest = min(s.max_wait_s, s.backoff_s * 2**attempt)
            return longest * self._jitter.uniform(0.5, 1.0)
        if wait_s > s.max_wait_s:
            raise TransportError(
                f"{self.url} asks to wait {wait_s:g} s, more than max_wait_s={s.max_wait_s:g}: "
                f"{told}"
            ) from None
        self._resume_at = max(self._resume_at, time.monotonic() + wait_s)
        return wait_s * self._jitter.uniform(1.0, 1.1)

    @contextmanager
    def _response(
        self, method: str, path: str, base: str = "", **content: Any
    ) -> Iterator[httpx.Response]:
        key = key_from(self.settings.key_env)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        ends_at = time.monotonic() + self.settings.deadline_s
        try:
            with (
                bodies.deadline(ends_at) as trace,
                self._client.stream(
                    method,
                    f"{base or self.url}{path}",
                    headers=headers,
                    extensions={"trace": trace},
                    **content,
                ) as response,
            ):
                response.extensions["ends_at"] = ends_at
                if response.status_code != 200:
                    told = _message(self._told(response))
                    self._refuse(response.status_code, told, response.headers)
                yield response
        except httpx.HTTPError as error:
            self._late(ends_at)
            if isinstance(error, httpx.TimeoutException):
                raise Fault(f"silent for too long ({type(error).__name__})") from None
            raise Fault(f"{type(error).__name__}: {error}") from None

    def _late(self, ends_at: float) -> None:
        if time.monotonic() > ends_at:
            raise Fault(f"not finished after deadline_s={self.settings.deadline_s:g}") from None

    def _refuse(self, status: int, words: str, headers: Any) -> None:
        """Raise what a failing status means."""
        told = f"HTTP {status}: {words}"
        if _passes(status):
            raise Fault(told, retry_after_s(headers.get("retry-after", "")))
        hint = {
            401: f" (key from {self.settings.key_env or 'no environment variable'})",
            403: f" (key from {self.settings.key_env or 'no environment variable'})",
            404: " (is the address right, /v1 included, and the model's name?)",
        }.get(status, "")
        kind = RequestUnfit if status in UNFIT else RequestRefused
        raise kind(redacted(f"{self.url}: {told}{hint}", self.settings.key_env))

    def _chunks(self, response: httpx.Response, most: int = MOST_BYTES) -> Iterator[str]:
        """The body as it comes, as long as deadline and limit allow."""
        ends_at = response.extensions["ends_at"]
        coding = response.headers.get("content-encoding", "")
        for text in bodies.text(response.iter_raw(), coding, most):
            abort.check()
            self._late(ends_at)
            yield text
        self._late(ends_at)  # a connection that was cut then may look like one that ended

    def _told(self, response: httpx.Response) -> str:
        """The beginning of a failing status's body."""
        told = ""
        with suppress(Fault):
            for text in self._chunks(response):
                told += text
                if len(told) > MOST_ERROR:
                    break
        return told[:MOST_ERROR]

    def _json(self, response: httpx.Response, most: int = MOST_BYTES) -> Any:
        return parsed("".join(self._chunks(response, most)))

    def _sound(self, found: Iterable[Any]) -> Iterator[Any]:
        """Events; one that reports an error, wherever it stands, raises what its code means."""
        for event in found:
            if not isinstance(event, dict):
                raise Fault(f"a reply that is no JSON object: {shown(event)}")
            error = error_in(event)
            if error:
                code = str(error.get("code")) if isinstance(error, dict) else ""
                status = int(code) if re.fullmatch("[45][0-9][0-9]", code) else 500
                self._refuse(status, _words(error), {})
            yield event


def _passes(status: int) -> bool:
    """Whether a status may pass: the server's own failures, and successes that bring no reply.

    Every other one is the server's answer to this request.
    """
    return status in PASSING or 200 <= status < 300 or (status >= 500 and status not in LASTING)


def retry_after_s(header: str) -> float | None:
    """Seconds asked for by a `Retry-After` header, which holds seconds or a date."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _message(text: str) -> str:
    """The server's own words from the body of an error."""
    try:
        body = parsed(text)
    except Fault:
        return _words(text)
    return _words((body.get("error") or body) if isinstance(body, dict) else body)


def _words(error: Any) -> str:
    """An error as a line of at most 300 characters."""
    told = error.get("message", error) if isinstance(error, dict) else error
    return mended(" ".join((told if isinstance(told, str) else shown(told)).split())[:300])
