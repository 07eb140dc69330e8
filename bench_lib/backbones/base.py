"""A local vision-language model, opened up for memory methods.

    frames --vision--> features --project--> embeddings --prompt--> decoder --decode--> text

`vision` and `project` are apart because half of the methods work between them. Sizes of one token
are those of the merged cells: see `frames`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones import attention, frames
from bench_lib.backbones.cache import Cache
from bench_lib.backbones.decoder import Attend, Decoder
from bench_lib.backbones.hf_compat import Parts
from bench_lib.errors import BenchError, nearest
from bench_lib.measure import count
from bench_lib.video.stream import Size

if TYPE_CHECKING:
    from bench_lib.backbones.prompt import Prompt, Visual

VISION_PATCHES = {"cpu": 8_192, "cuda": 65_536}
"""Patches per pass of the vision tower: bounds its memory, and large enough to fill the device."""
ENCODE_FRAMES = 64
"""Frames whose features, several times the size of their embeddings, are held at once."""


class Backbone(ABC):
    """One model on one device. Nothing in it changes after construction.

    Attributes:
        id: Name and revision; part of every saved state and cache key.
        noise: Why the output means nothing (untrained, random weights); empty when it does.
        caveat: What else a reader of its scores must know.
        prompts: The prompt set it was trained on, where it knows no other.
        device: Where tensors live.
        dtype: Of weights, embeddings and caches.
        tuned_for: The method whose own checkpoint it is, or nothing.
        extra: That method's further tensors, by name.
        width: Numbers per visual token: the decoder's hidden size times (1 + DeepStack levels).
    """

    library: ClassVar[str]
    """The library's class that holds the weights; a family file names its own."""
    default_system: ClassVar[str] = ""
    frames_per_grid: ClassVar[int] = 2
    """Frames of a video that the tower sees as one grid."""
    one_size: ClassVar[bool] = False
    """Whether frames of all shapes are seen at the tower's own size."""

    @staticmethod
    def opened(model: Any) -> Any:
        """The library's model under the names that this class knows; usually it is as it comes."""
        return model

    def __init__(self, parts: Parts, kind: str, max_pixels: int | None) -> None:
        self.id = parts.id
        self.noise, self.caveat, self.prompts = parts.noise, parts.caveat, parts.prompts
        self.tuned_for = parts.tuned_for
        self.extra = parts.extra
        self.tokenizer = parts.tokenizer
        self.stop_ids = parts.stop_ids
        self.model = parts.model
        self.config = parts.model.config
        self.tower = parts.model.model.visual
        if kind not in attention.KINDS:
            raise BenchError(f"unknown attention {kind!r}; {nearest(kind, attention.KINDS)}")
        self.attention = attention.KINDS[kind]
        self.decoder = Decoder(
            parts.model.model.language_model, parts.model.lm_head, self.attention
        )
        self.preparation = _preparation(parts.preprocessor, self.config.vision_config, max_pixels)
        weight = parts.model.lm_head.weight
        self.device: torch.device = weight.device
        self.dtype: torch.dtype = weight.dtype

    # Shapes ---------------------------------------------------------------------------------------

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return self.decoder.layers

    @property
    def kv_heads(self) -> int:
        """Key and value heads of a layer."""
        return self.decoder.kv_heads

    @property
    def head_dim(self) -> int:
        """Numbers of a key or value of one head."""
        return self.decoder.head_dim

    @property
    def hidden(self) -> int:
        """Numbers of a decoder state."""
        return self.decoder.hidden

    @property
    def deep(self) -> int:
        """DeepStack levels: further features of a visual token, added after the first layers."""
        return 0

    @property
    def width(self) -> int:
        """Numbers of a visual token."""
        return self.hidden * (1 + self.deep)

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token in all layers, in bytes."""
        return self.layers * 2 * self.kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def context(self) -> int:
        """Positions the decoder was made for."""
        return self.config.text_config.max_position_embeddings

    def empty_cache(self) -> Cache:
        """A cache that holds nothing."""
        return Cache.empty(self.layers, self.kv_heads, self.head_dim, self.decoder.head.weight)

    # Vision ---------------------------------------------------------------------------------------

    def frame_size(self, native: Size, max_pixels: int | None = None) -> Size:
        """The size frames of this shape are encoded at, within the checkpoint's and this limit."""
        how = self.preparation
        limit = min(how.max_pixels, max_pixels or how.max_pixels)
        return frames.fit(native, how.factor, min(how.min_pixels, limit), limit)

    def lattice(self, size: Size) -> tuple[int, int]:
        """Rows and columns of cells, one visual token each, of a frame of `size` pixels."""
        return size[0] // self.preparation.factor, size[1] // self.preparation.factor

    def pixels(self, lattice: tuple[int, int]) -> Size:
        """The size of frames that have this lattice."""
        return lattice[0] * self.preparation.factor, lattice[1] * self.preparation.factor

    @torch.inference_mode()
    def vision(self, pictures: Sequence[NDArray[np.uint8]], as_images: bool = False) -> Tensor:
        """Features `[grids, levels, cells, merge**2, channels]` of frames in time order.

        Args:
            pictures: RGB frames `[height, width, 3]`, all of a size that `frame_size` gave. Where
                two make a grid, a lone last one is doubled.
            as_images: Every frame makes a grid of its own.

        Level 0 is the tower's output before its merger, in raster order of cells; further levels
        are DeepStack's. Attention never crosses grids, so any split into calls at even frames gives
        the same features.
        """
        count("frames_encoded", len(pictures))
        stack = torch.from_numpy(frames.pairs(pictures, as_images)).to(self.device)
        rows, cols = self.lattice((stack.shape[2], stack.shape[3]))
        per_grid = rows * cols * self.preparation.merge**2
        step = max(1, VISION_PATCHES.get(self.device.type, 8_192) // per_grid)
        done = [
            self._tower(frames.patches(part, self.preparation).to(self.dtype), rows, cols)
            for part in stack.split(step)
        ]
        return torch.cat(done)

    @torch.inference_mode()
    def project(self, features: Tensor) -> Tensor:
        """Embeddings `[grids, cells, width]` of features, as the decoder reads them."""
        return self._merge(features)

    def encode(self, pictures: Sequence[NDArray[np.uint8]], as_images: bool = False) -> Tensor:
        """Embeddings `[grids, cells, width]` of frames: `project(vision(...))`, part by part."""
        parts = (pictures[i : i + ENCODE_FRAMES] for i in range(0, len(pictures), ENCODE_FRAMES))
        return torch.cat([self.project(self.vision(part, as_images)) for part in parts])

    @abstractmethod
    def _tower(self, patches: Tensor, rows: int, cols: int) -> Tensor: ...

    @abstractmethod
    def _merge(self, features: Tensor) -> Tensor: ...

    @abstractmethod
    def place(self, prompt: Prompt, visual: Visual, bare: bool = False) -> None:
        """Append visual tokens to a prompt with this family's markers and positions.

        `bare` leaves out markers that enclose a whole stretch: a memory reads one stretch in many
        parts. What belongs to each grid (Qwen3-VL's time) stays.
        """

    # Decoder -------------------------------------------------------------------------------------

    @torch.inference_mode()
    def read(
        self,
        x: Tensor,
        positions: Tensor | Sequence[Tensor],
        cache: Cache,
        attend: Attend | None = None,
    ) -> tuple[Tensor, Cache]:
        """Read tokens into a cache, counted as `tokens_prefilled`; see `Decoder.read`."""
        count("tokens_prefilled", len(x))
        return self.decoder.read(x, positions, cache, attend)

    # Text -----------------------------------------------------------------------------------------

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text; control tokens written in it stay text."""
        if not text:
            return []
        return self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    def token(self, name: str) -> int:
        """Id of a control token such as `<|im_start|>`."""
        return self.tokenizer.convert_tokens_to_ids(name)

    @torch.inference_mode()
    def embed(self, ids: Sequence[int]) -> Tensor:
        """Embeddings `[n, hidden]` of token ids."""
        index = torch.tensor(ids, dtype=torch.long, device=self.device)
        return self.decoder.text.embed_tokens(index)


def _preparation(
    preprocessor: dict, vision_config: object, max_pixels: int | None
) -> frames.Preparation:
    size = preprocessor.get("size") or {}
    lowest = preprocessor.get("min_pixels") or size.get("shortest_edge") or 3_136
    highest = preprocessor.get("max_pixels") or size.get("longest_edge") or 12_845_056
    patch, merge = vision_config.patch_size, vision_config.spatial_merge_size  # type: ignore[attr-defined]
    return frames.Preparation(
        patch=patch,
        merge=merge,
        mean=tuple(preprocessor["image_mean"]),
        std=tuple(preprocessor["image_std"]),
        min_pixels=int(lowest),
        max_pixels=int(max_pixels or highest),
    )
