"""vLLM, over HTTP and in this process, answers as the library's own model does on the same frames.

Needs an environment of its own: `make test-vllm`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm")

from bench_lib.chat.base import Contract, Frames, Message, Text
from bench_lib.chat.preflight import canary
from bench_lib.evaluation import Evaluation
from bench_lib.methods.base import Generation
from bench_lib.params import EvalParams
from bench_lib.stream import ArrayFrame

KINDS = ("choice", "adaptive_choice", "adaptive_text")
GIVEN: dict[str, Any] = {
    "source": "dollhouse-small",
    "max_pixels": 12_544,
    "max_new_tokens": dict.fromkeys(KINDS, 8),
}
ENGINE = {
    "dtype": "float32", "enforce_eager": True, "max_model_len": 8192,
    "limit_mm_per_prompt": {"image": 64, "video": 1},
}  # fmt: skip


def texts(**given: Any) -> dict[tuple[str, str], str]:
    job = Evaluation.open(EvalParams(**{**GIVEN, **given}))
    job.execute(progress=False)
    found = {(r.candidate, r.probe): r for r in job.responses()}
    assert not [r.error for r in found.values() if r.status in ("error", "refused", "not_run")]
    # An untrained model writes stray bytes, which the two detokenizers show in different ways.
    return {key: r.raw_text.replace("\ufffd", "").rstrip() for key, r in found.items()}


def compared(mine: dict, theirs: dict) -> float:
    assert set(mine) == set(theirs)
    assert len(set(mine.values())) >= 4, "too few distinct answers to tell anything"
    return sum(mine[key] == theirs[key] for key in mine) / len(mine)


@pytest.fixture
def library(checkpoint: Path, outputs: Path) -> dict[tuple[str, str], str]:
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
    from bench_lib import chat

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
    from bench_lib import chat

    assert canary(chat.open(f"endpoint:tiny@{server}", logprobs=5)).ok
