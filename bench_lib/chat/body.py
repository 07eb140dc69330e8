"""What comes over one connection: within a limit of bytes, and over at its deadline."""

from __future__ import annotations

import codecs
import contextlib
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bench_lib.chat.reply_stream import Fault

MOST_BYTES = 4 * 2**20
"""A body larger than this, decompressed, is no reply of a server in its senses."""
PIECE = 2**16
"""Most bytes that are decompressed at a time."""


def text(raw: Iterable[bytes], coding: str, most: int) -> Iterator[str]:
    """A body as text, in pieces as it comes; raises Fault past `most` bytes or if it is no UTF-8.

    JSON and server-sent events are UTF-8 by their definition, whatever a header says. `coding` is
    the `Content-Encoding`: none is asked for, gzip and deflate are read, others are a fault.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    come = 0
    try:
        for data in _plain(raw, coding.strip().lower()):
            come += len(data)
            if come > most:
                raise Fault(f"it grew past {most:,} bytes")
            yield decoder.decode(data)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise Fault(f"no UTF-8 ({error.reason} at byte {error.start})") from None


def _plain(raw: Iterable[bytes], coding: str) -> Iterable[bytes]:
    if coding in ("", "identity"):
        return raw
    if coding in ("gzip", "x-gzip", "deflate"):
        return _inflated(raw)
    raise Fault(f"a body of the encoding {coding[:40]!r}, which was not asked for")


def _inflated(raw: Iterable[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(32 + zlib.MAX_WBITS)  # gzip or zlib, by its head
    try:
        for data in raw:
            while data and not inflate.eof:
                yield inflate.decompress(data, PIECE)
                data = inflate.unconsumed_tail
            if inflate.eof:
                return
    except zlib.error as error:
        raise Fault(f"a damaged compressed body ({error})") from None
    raise Fault("a compressed body that broke off")


def lines(pieces: Iterable[str]) -> Iterator[str]:
    """Lines ended by LF or CRLF, and what follows the last of them."""
    held: list[str] = []
    for piece in pieces:
        *ended, rest = piece.split("\n")
        for line in ended:
            yield ("".join(held) + line).removesuffix("\r")
            held.clear()
        held.append(rest)
    yield "".join(held)


@contextlib.contextmanager
def deadline(ends_at: float) -> Iterator[Callable[[str, Any], None]]:
    """Cuts a request's connection at an instant of `time.monotonic`, whatever is awaited there.

    A timeout of httpx is one of each single read, so a server that drips has no end without this.
    Yields the request's `trace` extension, by which the connection becomes known.
    """
    streams: list[Any] = []

    def trace(event: str, told: Any) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            streams.append(told["return_value"])

    def cut() -> None:
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, ends_at - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield trace
    finally:
        timer.cancel()
