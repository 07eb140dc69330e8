"""Does this torch fit this machine? One line that names driver, build and remedy."""

from __future__ import annotations

from bench_lib.install import CUDA_13_DRIVER, driver


def mismatch() -> str:
    """What keeps torch from the accelerator that is there; empty when nothing does."""
    major = driver()
    if major is None:
        return ""
    import torch

    if torch.cuda.is_available():
        return ""
    return explain(major, torch.__version__, torch.version.cuda)


def explain(driver_major: int, version: str, cuda: str | None) -> str:
    """The line for a driver and a build of torch that do not work together."""
    build = f"torch {version} (built for {f'CUDA {cuda}' if cuda else 'the CPU'})"
    if cuda is None:
        remedy = "remove .venv and run make eval again, or pip install -r requirements.lock"
    elif int(cuda.split(".")[0]) >= 13 and driver_major < CUDA_13_DRIVER:
        remedy = f"it needs {CUDA_13_DRIVER} or newer; pip install -r requirements-cuda12.lock"
    else:
        remedy = "check nvidia-smi and CUDA_VISIBLE_DEVICES"
    return f"NVIDIA driver {driver_major} is not used by {build}: {remedy}"
