"""SigLIP and Qwen2 with a projector between them: the LLaVA layout, one frame at a time.

Every frame is a square of fixed size and a grid of its own. Positions count tokens, visual ones
like text, and nothing marks where an image begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.measure import count
from bench_lib.video.stream import Size

BATCH = {"cpu": 8, "cuda": 128}
"""Frames per pass of the vision tower."""


class OneAxis(nn.Module):
    """A rotary embedding of one axis, called with positions of three alike ones."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines `[1, n, head_dim]` of positions `[3, 1, n]`."""
        return self.inner(x, positions[0])


class Pair(nn.Module):
    """A SigLIP vision model, a projector and a Qwen2 language model under the names of one model.

    The tower ends before its last norm, as the LLaVA family reads it.
    """

    def __init__(self, vision: Any, projector: nn.Module, language: Any) -> None:
        super().__init__()
        language.model.rotary_emb = OneAxis(language.model.rotary_emb)
        self.model = nn.Module()
        self.model.visual = vision
        self.model.projector = projector
        self.model.language_model = language.model
        self.lm_head = language.lm_head
        vision.config.spatial_merge_size = 1
        self.config = SimpleNamespace(vision_config=vision.config, text_config=language.config)


class SiglipQwen2(Backbone):
    """See the module."""

    library: ClassVar[str] = ""
    """None: the checkpoint's own reader puts it together."""

    default_system: ClassVar[str] = "You are a helpful assistant."
    frames_per_grid: ClassVar[int] = 1
    one_size: ClassVar[bool] = True

    def frame_size(self, native: Size, max_pixels: int | None = None) -> Size:
        """See `Backbone.frame_size`: the tower's own square, whatever the frame's shape."""
        side = self.config.vision_config.image_size
        return side, side

    def pixels(self, lattice: tuple[int, int]) -> Size:
        """See `Backbone.pixels`."""
        return self.frame_size((0, 0))

    @torch.inference_mode()
    def vision(self, pictures: Sequence[NDArray[np.uint8]], as_images: bool = False) -> Tensor:
        """Features `[frames, 1, cells, 1, channels]` of frames, each a grid of its own."""
        count("frames_encoded", len(pictures))
        stack = torch.from_numpy(np.stack(list(pictures))).to(self.device)
        step = BATCH.get(self.device.type, 8)
        return torch.cat([self._tower(self._pixels(part), 0, 0) for part in stack.split(step)])

    def _pixels(self, frames: Tensor) -> Tensor:
        """Normalised `[n, 3, height, width]` of uint8 frames `[n, height, width, 3]`."""
        mean, std = (
            torch.tensor(v, device=self.device)
            for v in (self.preparation.mean, self.preparation.std)
        )
        return ((frames.float() / 255 - mean) / std).permute(0, 3, 1, 2).to(self.dtype)

    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor:
        heads = self.config.vision_config.num_attention_heads
        x = self.tower.embeddings(patches)
        for layer in self.tower.encoder.layers:
            y = layer.layer_norm1(x)
            q, k, v = (
                project(y).unflatten(-1, (heads, -1)).transpose(1, 2)
                for project in (
                    layer.self_attn.q_proj,
                    layer.self_attn.k_proj,
                    layer.self_attn.v_proj,
                )
            )
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = x + layer.self_attn.out_proj(y)
            x = x + layer.mlp(layer.layer_norm2(x))
        return x[:, None, :, None]

    def _merge(self, features: Tensor) -> Tensor:
        return self.projector(features[:, 0, :, 0])

    @property
    def projector(self) -> Any:
        """From vision features to embeddings, token by token."""
        return self.model.model.projector

    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """See `Backbone.place`."""
        n = len(visual.tokens)
        prompt.placed(visual.tokens, torch.arange(n).expand(3, -1), n, visual.grids)
