"""Where transformers is touched: it loads weights, configuration and tokenizer, nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench_lib.backbones import family
from bench_lib.errors import BenchError

_WHOLE_BYTES = 64 << 20
_ENDS_BYTES = 1 << 20


@dataclass(frozen=True)
class Parts:
    """A loaded checkpoint.

    `noise` says why its output means nothing, or is empty; `caveat` what else a reader of its
    scores must know. `prompts` is the prompt set it was trained on, where it knows no other.
    `tuned_for` names the method whose own checkpoint it is, `extra` holds that method's further
    tensors.
    """

    id: str
    noise: str
    model_type: str
    model: Any
    tokenizer: Any
    preprocessor: dict[str, Any]
    stop_ids: frozenset[int]
    tuned_for: str = ""
    extra: Mapping[str, torch.Tensor] = field(default_factory=dict)
    caveat: str = ""
    prompts: str = ""


def build(config: Any, dtype: torch.dtype) -> Any:
    """The library's model of a configuration, with the library's initialisation."""
    cls = model_class(config.model_type)
    return cls._from_config(config, dtype=dtype, attn_implementation="sdpa")


def config_of(model_type: str, values: dict[str, Any]) -> Any:
    """The library's configuration object of a family."""
    import transformers

    config_name = model_class(model_type).config_class.__name__
    return getattr(transformers, config_name)(**values)


def load(folder: Path, name: str, device: str, dtype: torch.dtype) -> Parts:
    """Read a checkpoint folder in the Hugging Face layout.

    Raises BenchError when the folder is no such checkpoint or its family is unknown.
    """
    for needed in ("config.json", "tokenizer.json", "preprocessor_config.json"):
        if not (folder / needed).exists():
            raise BenchError(f"{folder} is no vision-language checkpoint: {needed} is missing")
    config = _json(folder / "config.json")
    cls = model_class(config.get("model_type", "?"))
    model = cls.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    model = family(config["model_type"]).opened(model.to(device).eval().requires_grad_(False))
    return around(folder, name, model, config["model_type"])


def around(
    folder: Path,
    name: str,
    model: Any,
    model_type: str,
    tuned_for: str = "",
    preprocessor: dict[str, Any] | None = None,
    extra: Mapping[str, torch.Tensor] | None = None,
) -> Parts:
    """A model that was read with what lies beside its weights in `folder`.

    `preprocessor` is given where the folder has none.
    """
    words = tokenizer(folder)
    note = folder / "bench.json"
    said = _json(note) if note.exists() else {}
    return Parts(
        id=f"{name}@{revision(folder)}",
        noise=said.get("noise", ""),
        model_type=model_type,
        model=model,
        tokenizer=words,
        preprocessor=preprocessor or _json(folder / "preprocessor_config.json"),
        stop_ids=stop_ids(words, folder / "generation_config.json"),
        tuned_for=tuned_for,
        extra=extra or {},
        caveat=said.get("caveat", ""),
        prompts=said.get("prompts", ""),
    )


def tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint folder."""
    import transformers

    return transformers.AutoTokenizer.from_pretrained(folder)


def download(name: str) -> Path:
    """The local folder of a model id `owner/name` or `owner/name@revision`, fetched if needed."""
    from huggingface_hub import snapshot_download

    repository, _, wanted = name.partition("@")
    try:
        return Path(
            snapshot_download(
                repository,
                revision=wanted or None,
                allow_patterns=["*.json", "*.safetensors", "*.jinja", "*.txt"],
            )
        )
    except Exception as error:  # the hub raises many kinds; all mean that there are no files
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BenchError(
            f"backbone {name!r} is neither a folder here nor a model that can be fetched: {why}"
        ) from error


def revision(folder: Path) -> str:
    """What identifies the weights: the hub's commit, else a digest of the files.

    Files above 64 MiB enter with their size and their first and last MiB.
    """
    if folder.parent.name == "snapshots":
        return folder.name[:12]
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")]):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            if size <= _WHOLE_BYTES:
                digest.update(file.read())
            else:
                digest.update(file.read(_ENDS_BYTES))
                file.seek(-_ENDS_BYTES, 2)
                digest.update(file.read())
    return digest.hexdigest()[:12]


def stop_ids(tokenizer: Any, generation_config: Path | None = None) -> frozenset[int]:
    """Tokens that end a reply: the checkpoint's, and the end of a chat turn."""
    ends: set[int] = set()
    if generation_config is not None and generation_config.exists():
        listed = _json(generation_config).get("eos_token_id", [])
        ends.update(listed if isinstance(listed, list) else [listed])
    for token in ("<|im_end|>", "<|endoftext|>"):
        index = tokenizer.convert_tokens_to_ids(token)
        if index is not None and index != tokenizer.unk_token_id:
            ends.add(index)
    return frozenset(ends)


def model_class(model_type: str) -> Any:
    """The library's class of a family; raises BenchError for one without a family file here."""
    name = family(model_type).library
    if not name:
        raise BenchError(f"a {model_type} checkpoint has a reader of its own, or none is known")
    return getattr(library(), name)


def library() -> Any:
    """The transformers library, which from then on says nothing below an error."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
