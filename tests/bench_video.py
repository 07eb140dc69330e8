"""What decoding costs, by reader and from the frame store: `python tests/bench_video.py [VIDEO]`.

Passes are run in turn, several rounds, and compared by the median of paired ratios, so that a busy
machine slows both sides alike. CPU seconds are those of the decoding process; a pass over the store
counts this process, where images are read. Peak memory is that of a fresh decoding process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import psutil
from barcode import session

from bench_lib.video.decode import client
from bench_lib.video.session import inspect, open_session
from bench_lib.video.store import FrameStore
from bench_lib.video.stream import Size

SIZE: Size = (448, 448)


def clip(path: Path, seconds: int, size: Size, options: dict[str, str]) -> Path:
    """A moving scene with a little noise, 30 pictures a second, H.264."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: size[0], : size[1] * 2]
    scene = 120 + 60 * np.sin(x / 50) + 50 * np.cos(y / 37) + rng.normal(0, 4, x.shape)
    wide = scene.clip(0, 255).astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=30, options=options)
        stream.height, stream.width, stream.pix_fmt = *size, "yuv420p"
        for i in range(seconds * 30):
            at = round(i * 3.7) % size[1]
            grey = np.ascontiguousarray(wide[:, at : at + size[1]])
            frame: Any = av.VideoFrame.from_ndarray(grey, "gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = i, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@dataclass
class Cost:
    """One pass."""

    cpu_s: float
    decoded: int
    peak_mib: float
    served: str


def run(file: Path, fps: float, reader: str, store: FrameStore | None = None) -> Cost:
    """One pass in which every frame is looked at."""
    client.end_idle()
    info = inspect(file)
    recorded = session((file, info.first_s, info.last_s))
    begun = time.process_time()
    stretch = (0, recorded.duration_s)
    with open_session(recorded, fps, [stretch], SIZE, reader=reader, store=store) as stream:
        for sample in stream:
            sample.frame.pixels()
        spent = stream.decode_s or time.process_time() - begun
        peaks = [peak_mib(child.pid) for child in psutil.Process().children()]
        return Cost(spent, stream.decoded_frames, max(peaks, default=0.0), stream.served)


def peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def compare(name: str, file: Path, fps: float, rounds: int) -> None:
    """Print a table for one file and one rate."""
    with tempfile.TemporaryDirectory() as folder:
        stores: dict[str, FrameStore] = {
            form: FrameStore(Path(folder) / form, form)  # type: ignore[arg-type]
            for form in ("lossless", "jpeg")
        }
        for form, kept in stores.items():
            first = run(file, fps, "pyav", kept)
            size = sum(path.stat().st_size for path in kept.folder.glob("*.pack")) / 2**20
            print(f"{name}, {fps:g} fps: keeping {form} {first.cpu_s:.2f} CPU s, {size:.1f} MiB")
        ways: dict[str, tuple[str, FrameStore | None]] = {
            "pyav": ("pyav", None),
            "decord": ("decord", None),
            "store, lossless": ("pyav", stores["lossless"]),
            "store, jpeg": ("pyav", stores["jpeg"]),
        }
        costs: dict[str, list[Cost]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, (reader, store) in ways.items():
                costs[way].append(run(file, fps, reader, store))
        for way, found in costs.items():
            ratios = [c.cpu_s / p.cpu_s for c, p in zip(found, costs["pyav"], strict=True)]
            print(
                f"  {way:16} {statistics.median(c.cpu_s for c in found):7.2f} CPU s, "
                f"{statistics.median(ratios):5.2f} of pyav, {found[0].decoded:6} frames decoded, "
                f"peak {max(c.peak_mib for c in found):5.0f} MiB, served by {found[0].served}"
            )


def made(home: Path) -> dict[str, Path]:
    """Clips whose key frames lie far apart and near, and a large one."""
    hd, near = (720, 1280), {"preset": "veryfast", "g": "30"}
    return {
        "720p, key frame each 8 s": clip(home / "a.mp4", 40, hd, {"preset": "veryfast"}),
        "720p, key frame each s": clip(home / "b.mp4", 40, hd, near),
        "4K": clip(home / "c.mp4", 10, (2160, 3840), {"preset": "ultrafast"}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("video", nargs="?", type=Path, help="your own; else clips are made")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fps", type=float, nargs="+", default=[1.0, 4.0])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        files = {args.video.name: args.video} if args.video else made(home)
        for name, file in files.items():
            for fps in args.fps:
                compare(name, file, fps, args.rounds)


if __name__ == "__main__":
    main()
