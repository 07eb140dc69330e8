"""What a process was: code, packages, machine and devices, as far as they can change a number.

What is not there is None, so that nothing is taken for the same because nobody looked.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from bench_lib import __version__, paths

PACKAGES = (
    "torch", "torchvision", "transformers", "tokenizers", "safetensors", "accelerate", "vllm",
    "triton", "flash-attn", "av", "decord", "numpy", "scipy", "pandas", "pillow", "httpx",
    "pydantic", "faster-whisper", "ctranslate2", "onnxruntime",
)  # fmt: skip
"""Packages that can change an answer, a score or a time."""
READERS = (
    "readings", "score", "report", "widgets", "benches", "judge", "compare", "ablate", "arena",
)  # fmt: skip
"""Rooms that read runs and give no answers: their code is no part of `code`."""
PACKAGE = paths.root() / "bench_lib"
CODE = (".py", ".txt", ".json", ".yaml")


def process(params: Mapping[str, Any], stamp: str, device: str) -> dict[str, Any]:
    """The manifest's entry for this process.

    Args:
        params: What was asked of it.
        stamp: What the names of its files hold.
        device: What its times depend on most (`device_of`, or the address of a server).
    """
    shown = {k: paths.short(v) if isinstance(v, str) else v for k, v in params.items()}
    names, driver = accelerators()
    return {
        "params": shown,
        "stamp": stamp,
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "revision": revision(),
        "code": code(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "cpu": processor(),
        "device": device,
        "accelerators": list(names),
        "driver": driver,
        "versions": {"bench_lib": __version__, **{name: version(name) for name in PACKAGES}},
        "ffmpeg": ffmpeg(),
        **torch_facts(),
    }


def version(package: str) -> str | None:
    """Version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def code(home: Path = PACKAGE) -> str:
    """A digest of the code that gives answers, prompts and tables among it."""
    found = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        room = path.relative_to(home)
        if path.suffix in CODE and room.parts[0] not in READERS:
            found.update(f"{room.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def code_of(process: Mapping[str, Any]) -> str:
    """The code of a process for people: revision and digest."""
    if "code" not in process:
        return "code that was not recorded"
    return f"{process['revision'] or 'no git revision'} ({process['code']})"


def revision() -> str:
    """Git revision of this package with `+` where it has uncommitted changes; empty outside git."""
    head = _told("git", "-C", str(paths.root()), "rev-parse", "--short", "HEAD")
    changed = ("git", "-C", str(paths.root()), "status", "--porcelain", "--", "bench_lib")
    return f"{head}+" if head and _told(*changed) else head


@functools.cache
def accelerators() -> tuple[tuple[str, ...], str | None]:
    """Names of all accelerators of this machine, and their driver's version."""
    listed = _told("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    rows = [line.rpartition(",") for line in listed.splitlines() if "," in line]
    if rows:
        return tuple(name.strip() for name, _, _ in rows), rows[0][2].strip()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return tuple(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))), None
    return (), None


@functools.cache
def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def device_of(place: str) -> str:
    """The name of a device as torch writes it (`cuda:1`, `cpu`)."""
    kind, _, number = place.partition(":")
    if kind == "cpu":
        return f"{processor()}, {os.cpu_count()} cores"
    torch = sys.modules.get("torch")
    if kind == "cuda" and torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name(int(number or torch.cuda.current_device())))
    return place


def ffmpeg() -> dict[str, str] | None:
    """Versions of the libraries that decode video."""
    try:
        import av
    except ImportError:
        return None
    return {name: ".".join(map(str, found)) for name, found in av.library_versions.items()}


def torch_facts() -> dict[str, Any]:
    """What torch computes with, where it has been loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return dict.fromkeys(("cuda", "cudnn", "threads", "matmul"))
    return {
        "cuda": torch.version.cuda or getattr(torch.version, "hip", None),
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "threads": torch.get_num_threads(),
        "matmul": torch.get_float32_matmul_precision(),
    }


def _told(*words: str) -> str:
    """What a command prints; empty where it fails or is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
