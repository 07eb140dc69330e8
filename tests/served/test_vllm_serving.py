"""vLLM, over HTTP and in this process, answers as the library's own model does on the same frames.

Needs an environment of its own: `make test-vllm`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm")

from bench_lib.chat.preflight import canary
from bench_lib.evaluate.job import Evaluation
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Contract, Frames, Message, Text
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Key
from bench_lib.video.stream import ArrayFrame

KINDS = ("choice", "adaptive_choice", "adaptive_text")
GIVEN: dict[str, Any] = {
    "source": "dollhouse-small",
    "max_pixels": 12_544,
    "prompts": "compact",
    "max_new_tokens": dict.fromkeys(KINDS, 24),
}
ENGINE = {
    "dtype": "float32", "enforce_eager": True, "max_model_len": 8192,
    "limit_mm_per_prompt": {"image": 64, "video": 1},
    **({"gpu_memory_utilization": 0.3} if shutil.which("nvidia-smi") else {}),
}  # fmt: skip


def texts(**given: Any) -> dict[Key, str]:
    job = Evaluation.open(EvalParams(**{**GIVEN, **given}))
    job.execute(progress=False)
    found = {r.key: r for r in job.responses()}
    assert not [r.error for r in found.values() if r.status in ("error", "refused", "not_run")]
    return {key: r.raw_text for key, r in found.items()}


def compared(mine: dict, theirs: dict) -> float:
    assert set(mine) == set(theirs)
    assert len(set(mine.values())) >= 4, "too few distinct answers to tell anything"
    return sum(mine[key] == theirs[key] for key in mine) / len(mine)


@pytest.fixture
def library(checkpoint: Path, outputs: Path) -> dict[Key, str]:
    return texts(method="simplestream", backbone=str(checkpoint))


def test_a_server_answers_as_the_library_does(
    server: str, checkpoint: Path, library: dict, outputs: Path
) -> None:
    served = texts(
        method="simplestream",
        backbone=f"endpoint:tiny@{server}",
        # The revision keeps replies of another checkpoint on the same port apart.
        backbone_args={"image_format": "png", "revision": checkpoint.name},
    )
    assert compared(library, served) >= 0.99


def test_the_engine_in_process_answers_as_the_library_does(
    checkpoint: Path, library: dict, outputs: Path
) -> None:
    served = texts(
        method="simplestream", backbone=f"vllm:{checkpoint}", backbone_args={"engine": ENGINE}
    )
    assert compared(library, served) >= 0.99


def test_log_probabilities_agree(server: str, checkpoint: Path) -> None:
    """The largest gap of the first token's best log-probabilities, on the same frames."""
    from bench_lib.opening import chat

    remote = chat.open(f"endpoint:tiny@{server}", image_format="png", logprobs=20)
    local = chat.open(str(checkpoint))
    dice = np.random.default_rng(0)
    gaps = []
    for _ in range(8):
        blocks = dice.integers(0, 256, (4, 7, 7, 3), dtype=np.uint8)
        frames = tuple(
            ArrayFrame(float(k), np.kron(b, np.ones((16, 16, 1), np.uint8)))
            for k, b in enumerate(blocks)
        )
        asked = [
            Message("system", (Text("You see what the wearer sees."),)),
            Message("user", (Frames(frames), Text("What is there?"))),
        ]
        given = Generation(max_new_tokens=1, keep_logits=True)
        ours = local.complete(asked, Contract("free"), given).logits
        theirs = remote.complete(asked, Contract("free"), given).logits
        assert ours is not None
        assert theirs is not None
        best = np.sort(ours - np.logaddexp.reduce(ours))[::-1]
        top = np.sort(theirs[np.isfinite(theirs)])[::-1][:20]
        gaps.append(np.abs(best[: len(top)] - top).max())
    print(f"largest gap of log-probabilities: {max(gaps):.2e}")
    assert max(gaps) < 1e-3


def test_the_canary_sings(server: str) -> None:
    from bench_lib.opening import chat

    assert canary(chat.open(f"endpoint:tiny@{server}", logprobs=5)).ok


def test_media_that_went_once_are_known_by_their_ids(server: str, checkpoint: Path) -> None:
    """The second request is a fraction of the first and has the same answer."""
    from bench_lib.opening import chat

    once = chat.open(f"endpoint:tiny@{server}", image_format="png", media="once", logprobs=20)
    sizes: list[int] = []
    send = once._once
    once._once = lambda body: (sizes.append(len(str(body))), send(body))[1]
    dice = np.random.default_rng(1)
    frames = tuple(
        ArrayFrame(float(k), dice.integers(0, 256, (112, 112, 3), dtype=np.uint8)) for k in range(4)
    )
    given = Generation(max_new_tokens=8, keep_logits=True)
    asked = [Message("user", (Frames(frames), Text("What is there?")))]
    first, second = (once.complete(asked, Contract("free"), given) for _ in range(2))
    assert len(sizes) == 2, "no request was turned away"
    assert sizes[1] < sizes[0] / 10
    assert first.text == second.text
    assert np.allclose(first.logits, second.logits, atol=1e-4)
    assert first.usage["prompt_tokens"] == second.usage["prompt_tokens"]


def test_the_server_tells_its_version_and_its_cache(server: str) -> None:
    import vllm

    from bench_lib.chat.server import servers
    from bench_lib.opening import chat

    (found,) = servers(chat.open(f"endpoint:tiny@{server}"))
    assert found.version == vllm.__version__
    assert found.cache_tokens > 8192
    assert found.engine["block_size"].isdecimal()


@pytest.mark.gpu
def test_cuda_serves_as_the_library_does_on_the_same_gpu(
    server: str, checkpoint: Path, outputs: Path
) -> None:
    """The comparisons above with CUDA on every side, which the CPU build cannot show."""
    import torch
    from vllm.platforms import current_platform

    if not current_platform.is_cuda():
        pytest.skip("a GPU is there, but vLLM's CPU build is installed")
    free, whole = torch.cuda.mem_get_info()
    assert whole - free > 0.2 * whole, "the server has taken no memory of the GPU"
    shown = {"method": "simplestream", "device": "cuda", "dtype": "float32"}
    mine = texts(**shown, backbone=str(checkpoint))
    named = {"image_format": "png", "revision": f"cuda-{checkpoint.name}"}
    served = texts(**shown, backbone=f"endpoint:tiny@{server}", backbone_args=named)
    assert compared(mine, served) >= 0.99
    inside = texts(**shown, backbone=f"vllm:{checkpoint}", backbone_args={"engine": ENGINE})
    assert compared(mine, inside) >= 0.99
