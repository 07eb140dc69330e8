"""Qwen3-VL: times as text between the grids, and DeepStack.

Features of three depths of the vision tower are added to a visual token after the first decoder
layers; they travel with the token as further numbers, so a method that drops, moves or averages
tokens treats them alike. Every grid is its own unit `<12.5 seconds>`, start, tokens, end; a grid of
which no token is left leaves no unit behind, and positions close up over it. Units replace the chat
template's own markers around a video, as in the release; transformers 5.19 writes both.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.attention import rotated
from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.tower import angles_2d, attend_blocks, cell_places


class Qwen3VL(Backbone):
    """See the module."""

    library: ClassVar[str] = "Qwen3VLForConditionalGeneration"

    @property
    def deep(self) -> int:
        """See `Backbone.deep`."""
        return len(self.config.vision_config.deepstack_visual_indexes)

    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor:
        vision = self.config.vision_config
        merge = self.preparation.merge
        places = cell_places(rows, cols, merge).to(self.device)
        heads, head_dim = vision.num_heads, vision.hidden_size // vision.num_heads
        cos, sin = angles_2d(places, head_dim)
        proj = self.tower.patch_embed.proj
        x = F.linear(patches, proj.weight.flatten(1), proj.bias)
        x = x + self._learned_places(places, rows * merge, cols * merge).to(x.dtype)
        levels = []
        for i, block in enumerate(self.tower.blocks):
            qkv = block.attn.qkv(block.norm1(x)).view(*x.shape[:2], 3, heads, head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            q, k = (rotated(t.float(), cos, sin).to(t.dtype) for t in (q, k))
            x = x + block.attn.proj(attend_blocks(q, k, v, [(1, x.shape[1])]))
            x = x + block.mlp(block.norm2(x))
            if i in vision.deepstack_visual_indexes:
                levels.append(x)
        return torch.stack([x, *levels], dim=1).unflatten(2, (rows * cols, merge**2))

    def _learned_places(self, places: Tensor, height: int, width: int) -> Tensor:
        """The learned square of place embeddings, stretched over a grid of `height` x `width`.

        Bilinear, corners on corners; returns `[patches, channels]`.
        """
        table = self.tower.pos_embed.weight
        side = round(len(table) ** 0.5)
        sizes = torch.tensor([height, width], device=self.device)
        at = places.float() * (side - 1) / (sizes - 1).clamp(min=1)
        low = at.floor().long()
        high = (low + 1).clamp(max=side - 1)
        near = at - low
        out = torch.zeros(len(places), table.shape[1], device=self.device)
        for row, row_share in ((low[:, 0], 1 - near[:, 0]), (high[:, 0], near[:, 0])):
            for col, col_share in ((low[:, 1], 1 - near[:, 1]), (high[:, 1], near[:, 1])):
                out += table[row * side + col].float() * (row_share * col_share)[:, None]
        return out

    def _merge(self, features: Tensor) -> Tensor:
        mergers = (self.tower.merger, *self.tower.deepstack_merger_list)
        parts = [
            merger(features[:, level].flatten(0, 2)).view(len(features), features.shape[2], -1)
            for level, merger in enumerate(mergers)
        ]
        return torch.cat(parts, dim=-1)

    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """See `Backbone.place`."""
        sizes = torch.bincount(visual.grids, minlength=len(visual.times_s)).tolist()
        start = 0
        for (start_s, end_s), size in zip(visual.times_s, sizes, strict=True):
            if size or visual.empty_units:
                if visual.video:
                    prompt.text(f"<{(start_s + end_s) / 2:.1f} seconds>")
                prompt.control("<|vision_start|>")
                grid = visual.between(start, start + size)
                prompt.visual(grid, torch.zeros(size), 1)
                prompt.control("<|vision_end|>")
            start += size
