"""Qwen2-VL: a vision tower that attends to whole grids, times counted in grids.

Published layout of positions: text counts on all three axes alike; grid k of a video that starts at
position p lies at t = p + k, its cell (row, col) at h = p + row, w = p + col; what follows starts
after the largest of all. Memories that drop whole grids leave a gap: a grid's number is its time
over the smallest step between the grids shown.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.attention import rotated
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.qwen2_5_vl import Qwen25VL
from bench_lib.backbones.tower import angles_2d, attend_blocks, cell_places


class Qwen2VL(Qwen25VL):
    """See the module."""

    library: ClassVar[str] = "Qwen2VLForConditionalGeneration"

    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor:
        vision = self.config.vision_config
        merge = self.preparation.merge
        heads, head_dim = vision.num_heads, vision.embed_dim // vision.num_heads
        cos, sin = angles_2d(cell_places(rows, cols, merge).to(self.device), head_dim)
        x = F.linear(patches, self.tower.patch_embed.proj.weight.flatten(1))
        for block in self.tower.blocks:
            qkv = block.attn.qkv(block.norm1(x)).view(*x.shape[:2], 3, heads, head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            q, k = (rotated(t.float(), cos, sin).to(t.dtype) for t in (q, k))
            x = x + block.attn.proj(attend_blocks(q, k, v, [(1, x.shape[1])]))
            x = x + block.mlp(block.norm2(x))
        return x.view(len(x), 1, rows * cols, merge**2, -1)

    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """See `Backbone.place`."""
        origin_s, last_s = visual.extent_s
        starts = [start for start, _ in visual.times_s]
        gaps = [b - a for a, b in pairwise([origin_s, *starts, last_s]) if b > a]
        step_s = min(gaps, default=1.0)
        steps = torch.tensor([round((start - origin_s) / step_s) for start in starts])
        if not bare:
            prompt.control("<|vision_start|>")
        prompt.visual(visual, steps[visual.grids.cpu()], round((last_s - origin_s) / step_s) + 1)
        if not bare:
            prompt.control("<|vision_end|>")
