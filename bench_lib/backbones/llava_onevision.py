"""LLaVA-OneVision: SigLIP, a projector, Qwen2; a frame of a video is 196 tokens.

The published video path, as in transformers 5.19: each frame at the tower's own square, projected,
its lattice of patches halved (27 to 14 a side, bilinear), frame after frame, and one learned token
(`image_newline`) behind the whole video. Positions count tokens. That token belongs to a finished
stretch: a memory that reads a video in parts (`bare`) leaves it out, as HERMES and ReKV do.

Halving is moved in front of the projector's second layer, with which it commutes: its weights sum
to one, and that layer is affine. So features are those of cells, one vector each. An image is shown
as a video of one frame; the release's crops of large images are not built.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.siglip_qwen2 import Pair, SiglipQwen2
from bench_lib.errors import BenchError
from bench_lib.video.stream import Size


class LlavaOnevision(SiglipQwen2):
    """See the module."""

    library: ClassVar[str] = "LlavaOnevisionForConditionalGeneration"

    @staticmethod
    def opened(model: Any) -> Pair:
        """The library's model under the names that `Backbone` knows.

        Raises BenchError for a tower other than SigLIP, or features of more than one layer.
        """
        config, inner = model.config, model.model
        if config.vision_config.model_type != "siglip_vision_model":
            raise BenchError(
                f"LLaVA-OneVision with a {config.vision_config.model_type} tower is not known"
            )
        if config.vision_feature_select_strategy != "full":
            raise BenchError(
                "LLaVA-OneVision is known with vision_feature_select_strategy: full alone"
            )
        layer, tower = config.vision_feature_layer, inner.vision_tower
        depth = len(tower.encoder.layers)
        if not isinstance(layer, int) or not -depth <= layer < 0:
            raise BenchError(f"LLaVA-OneVision is known with one vision layer below 0, not {layer}")
        tower.encoder.layers = tower.encoder.layers[: depth + 1 + layer]
        language = nn.Module()
        language.model, language.lm_head = inner.language_model, model.lm_head
        language.config = config.text_config
        pair = Pair(tower, inner.multi_modal_projector, language)
        pair.model.image_newline = inner.image_newline
        return pair

    def lattice(self, size: Size) -> tuple[int, int]:
        """See `Backbone.lattice`."""
        rows, cols = super().lattice(size)
        return math.ceil(rows / 2), math.ceil(cols / 2)

    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor:
        x = super()._tower(patches, rows, cols)[:, 0, :, 0]
        x = self.projector.act(self.projector.linear_1(x))
        side = self.config.vision_config.image_size // self.config.vision_config.patch_size
        whole = x.transpose(1, 2).unflatten(2, (side, side))
        halved = F.interpolate(whole, size=(math.ceil(side / 2),) * 2, mode="bilinear")
        return halved.flatten(2).transpose(1, 2)[:, None, :, None]

    def _merge(self, features: Tensor) -> Tensor:
        return self.projector.linear_2(features[:, 0, :, 0])

    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """See `Backbone.place`."""
        super().place(prompt, visual, bare)
        if not bare:
            newline = self.model.model.image_newline.detach()[None]
            prompt.placed(newline, torch.zeros(3, 1, dtype=torch.long), 1, visual.grids[-1:])
