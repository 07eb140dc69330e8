"""Memory stays bounded over large pictures and long files, on both sides of the pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from barcode import picture

from bench_lib.video.stream import Size

MIB = 2**20
PASS = """
import json, sys
sys.path[:0] = {path!r}
from pathlib import Path
from barcode import session
import psutil
from bench_lib.video.session import open_session

def peak(pid):
    lines = Path(f"/proc/{{pid}}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

recorded = session((Path({file!r}), 0, {seconds}))
shown = 0
with open_session(recorded, {fps}, [(0, {seconds})], {size}, reader={reader!r}) as stream:
    for sample in stream:
        shown += 1
        del sample
    ours, (worker,) = peak("self"), psutil.Process().children()
    print(json.dumps([shown, stream.decoded_frames, ours, peak(worker.pid), stream.served]))
"""


def film(path: Path, seconds: int, size: Size, options: dict[str, str]) -> Path:
    """Thirty pictures a second; few are made, and they are used in turn."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=30, options=options)
        stream.height, stream.width, stream.pix_fmt = *size, "yuv420p"
        made = [
            av.VideoFrame.from_ndarray(picture(i * 37, size), "rgb24").reformat(format="yuv420p")
            for i in range(8)
        ]
        for i in range(seconds * 30):
            frame = made[i // 15 % 8]
            frame.pts, frame.time_base = i, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def consumed(file: Path, seconds: int, fps: float, size: Size | None, reader: str) -> list[Any]:
    code = PASS.format(
        path=sys.path, file=str(file), seconds=seconds, fps=fps, size=size, reader=reader
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_minute_of_4k(tmp_path: Path) -> None:
    options = {"preset": "ultrafast", "g": "250"}
    file = film(tmp_path / "large.mp4", 60, (2160, 3840), options)
    shown, decoded, ours, worker, _ = consumed(file, 60, 1, None, "pyav")
    assert (shown, decoded <= 1800) == (60, True)
    assert worker < 400 * MIB
    # Frames of 24 MiB: 64 MiB of them ready, one coming in, one in hand, and Python itself.
    assert ours < 300 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["pyav", "decord"])
def test_an_hour_of_small_pictures(tmp_path: Path, reader: str) -> None:
    file = film(tmp_path / "long.mp4", 3600, (48, 64), {"preset": "ultrafast"})
    shown, decoded, ours, worker, served = consumed(file, 3600, 2, (64, 64), reader)
    assert served.startswith({"pyav": "av", "decord": "decord"}[reader])
    assert (shown, decoded <= 108_000) == (7200, True)
    assert worker < {"pyav": 120, "decord": 400}[reader] * MIB
    assert ours < 250 * MIB
