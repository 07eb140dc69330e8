"""Local vision-language models: one file a family. `opening.backbones.load` opens one by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_lib.backbones.base import Backbone

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
TINY = ("tiny", "tiny-untrained", "tiny-qwen3")


def homemade(model_id: str) -> bool:
    """Whether a model's id is that of one made here (tiny, rehearsed), trained for no method."""
    return model_id.startswith("rehearse:") or model_id.partition("@")[0] in TINY


def family(model_type: str) -> type[Backbone]:
    """The class that runs checkpoints of a model type."""
    if model_type == "qwen3_vl":
        from bench_lib.backbones.qwen3_vl import Qwen3VL

        return Qwen3VL
    if model_type == "qwen2_vl":
        from bench_lib.backbones.qwen2_vl import Qwen2VL

        return Qwen2VL
    if model_type == "siglip_qwen2":
        from bench_lib.backbones.siglip_qwen2 import SiglipQwen2

        return SiglipQwen2
    if model_type == "llava_onevision":
        from bench_lib.backbones.llava_onevision import LlavaOnevision

        return LlavaOnevision
    from bench_lib.backbones.qwen2_5_vl import Qwen25VL

    return Qwen25VL
