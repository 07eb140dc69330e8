"""The same code on an accelerator: full width, two layers, against the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from backbone_cases import noise_frames

from bench_lib import methods
from bench_lib.exchange import Generation, Query
from bench_lib.opening import backbones
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

SHAPES = ["qwen2.5-vl-3b?layers=2&vision=2", "qwen3-vl-4b?layers=2&vision=2"]
GENERATION = Generation(max_new_tokens=4, keep_logits=True)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_cuda_equals_the_cpu(shape: str) -> None:
    here = backbones.load(f"rehearse:{shape}", device="cpu", dtype="float32")
    there = backbones.load(f"rehearse:{shape}", device="cuda", dtype="float32")
    there.model.load_state_dict(here.model.state_dict())
    size = here.frame_size((360, 480), 100_352)
    frames = [ArrayFrame(float(i), f) for i, f in enumerate(noise_frames(21, size))]
    found = []
    for backbone in (here, there):
        method = methods.load("fluxmem", mid_frames=4).attach(backbone)
        method.reset("T001", 42)
        method.begin_session(SessionInfo("S001", 0, None, size))
        for start in range(0, 16, 8):
            method.observe(Clip(0, tuple(frames[start : start + 8])))
        method.observe(Clip(0, tuple(frames[16:])))
        reply = method.branch().respond(Query("Where is it?", 0, 20.0), GENERATION)
        embedded = backbone.encode([f.array for f in frames[:4]]).cpu()
        found.append((embedded, method.tokens(), reply.logits))
    (cpu_tokens, cpu_kept, cpu_logits), (gpu_tokens, gpu_kept, gpu_logits) = found
    torch.testing.assert_close(gpu_tokens, cpu_tokens, atol=1e-3, rtol=1e-3)
    # A threshold may fall the other way for a token or two; the tiers must be the same in size.
    assert abs(gpu_kept[0] - cpu_kept[0]) <= 0.01 * cpu_kept[0]
    assert np.corrcoef(cpu_logits, gpu_logits)[0, 1] > 0.99


@pytest.mark.gpu
def test_half_precision_agrees_with_itself_in_chunks() -> None:
    """bfloat16 on the accelerator: reading at once and in parts differ by rounding alone."""
    backbone = backbones.load("rehearse:qwen2.5-vl-7b?layers=2&vision=1", device="cuda")
    x = torch.randn(3_000, backbone.hidden, device="cuda", dtype=backbone.dtype)
    where = torch.arange(3_000, device="cuda").expand(3, -1)
    decoder = backbone.decoder
    with torch.inference_mode():
        whole, cache = decoder.read(x, where, backbone.empty_cache())
        space = decoder.scratch(3_000)
        for part, at in zip(x.split(700), where.split(700, dim=1), strict=True):
            last = decoder.advance(part, at, space)
    assert cache.kv_bytes == 3_000 * backbone.kv_bytes_per_token
    similar = torch.nn.functional.cosine_similarity(whole[-1].float(), last[-1].float(), dim=0)
    assert similar > 0.999
