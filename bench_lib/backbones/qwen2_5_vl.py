"""Qwen2.5-VL: a vision tower with windows, times in the positions of visual tokens.

Published layout of positions: that of the model's release and transformers 4.57. Text counts on
all three axes alike; a video that starts at position p has grid i at
t = p + seconds(i) * tokens_per_second, cell (row, col) at h = p + row, w = p + col; what follows
starts after the largest of all. Seconds are real here; the release cuts the length of a grid to
whole seconds first, which differs only above one frame a second.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.attention import rotated
from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.tower import angles_2d, attend_blocks, cell_places, order_by_windows


class Qwen25VL(Backbone):
    """See the module."""

    library: ClassVar[str] = "Qwen2_5_VLForConditionalGeneration"

    default_system: ClassVar[str] = "You are a helpful assistant."

    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor:
        vision = self.config.vision_config
        merge = self.preparation.merge
        side = vision.window_size // merge // vision.patch_size
        order, runs = order_by_windows(rows, cols, side, merge**2)
        order = order.to(self.device)
        places = cell_places(rows, cols, merge).to(self.device)[order]
        heads, head_dim = vision.num_heads, vision.hidden_size // vision.num_heads
        cos, sin = angles_2d(places, head_dim)
        # Patches of a grid, sorted so that each window is one run: order inside does not matter.
        x = F.linear(patches[:, order], self.tower.patch_embed.proj.weight.flatten(1))
        whole = [(1, len(order))]
        for i, block in enumerate(self.tower.blocks):
            blocks = whole if i in vision.fullatt_block_indexes else runs
            qkv = block.attn.qkv(block.norm1(x)).view(*x.shape[:2], 3, heads, head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            q, k = (rotated(t.float(), cos, sin).to(t.dtype) for t in (q, k))
            x = x + block.attn.proj(attend_blocks(q, k, v, blocks))
            x = x + block.mlp(block.norm2(x))
        back = torch.argsort(order)
        return x[:, back].view(len(x), 1, rows * cols, merge**2, -1)

    def _merge(self, features: Tensor) -> Tensor:
        merged = self.tower.merger(features.flatten(0, 3))
        return merged.view(features.shape[0], features.shape[2], -1)

    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """See `Backbone.place`."""
        pace = self.config.vision_config.tokens_per_second if visual.video else 0
        origin_s, last_s = visual.extent_s
        steps = torch.tensor([_steps(start - origin_s, pace) for start, _ in visual.times_s])
        if not bare:
            prompt.control("<|vision_start|>")
        prompt.visual(visual, steps[visual.grids.cpu()], _steps(last_s - origin_s, pace) + 1)
        if not bare:
            prompt.control("<|vision_end|>")


def _steps(seconds: float, pace: int) -> int:
    return int(seconds * pace + 1e-6)
