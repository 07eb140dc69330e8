"""The checkpoint of the tiny model, served by vLLM over HTTP for the whole session."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

START_S = 600
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
os.environ.update(ENVIRONMENT)
ON_A_GPU = ["--gpu-memory-utilization", "0.3"] if shutil.which("nvidia-smi") else []
"""Server, engine in process and library share one device there."""


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    from bench_lib.dollhouse.training import tiny

    return tiny.checkpoint("tiny", 42)


@pytest.fixture(scope="session")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an OpenAI-compatible vLLM server of the checkpoint, named `tiny`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    # The CPU build's own command refuses its name; the module is the same server.
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint),
        "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager",
        "--limit-mm-per-prompt", '{"image": 64, "video": 1}', "--max-model-len", "8192",
        "--port", str(port), *ON_A_GPU,
    ]  # fmt: skip
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        address = f"http://127.0.0.1:{port}/v1"
        deadline = time.monotonic() + START_S
        while True:
            assert process.poll() is None, f"vLLM ended:\n{log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, "vLLM does not start"
            try:
                if httpx.get(f"{address}/models").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(2)
        yield address
        process.terminate()
