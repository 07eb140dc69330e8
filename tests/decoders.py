"""The decoding processes that this one has started; other tests may keep a browser open."""

from __future__ import annotations

import psutil


def decoders() -> list[psutil.Process]:
    return [
        c for c in psutil.Process().children() if "bench_lib.video.decode.process" in c.cmdline()
    ]
