"""Local vision-language models. `opening.backbones.load` opens one by name.

A family is one file here, named like its `model_type` in `config.json`, that holds one `Backbone`
with the name of the library's class (`library`).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, cast

from bench_lib.errors import BenchError

if TYPE_CHECKING:
    from bench_lib.backbones.base import Backbone

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
TINY = ("tiny", "tiny-untrained", "tiny-qwen3")


def homemade(model_id: str) -> bool:
    """Whether a model's id is that of one made here (tiny, rehearsed), trained for no method."""
    return model_id.startswith("rehearse:") or model_id.partition("@")[0] in TINY


def family(model_type: str) -> type[Backbone]:
    """The class that runs checkpoints of a model type; BenchError for one without a file here."""
    found = _family(model_type) if model_type in _files() else None
    if found is None:
        known = ", ".join(name for name in _files() if _family(name))
        raise BenchError(f"no backbone family for model_type {model_type!r}; known: {known}")
    return found


def _files() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)


def _family(name: str) -> type[Backbone] | None:
    module = importlib.import_module(f"{__name__}.{name}")
    for cls in vars(module).values():
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and hasattr(cls, "library"):
            return cast("type[Backbone]", cls)
    return None
