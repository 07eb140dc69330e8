"""The tiny vision-language checkpoints, built on this machine from configuration and seed.

About four million parameters in the architecture of Qwen2.5-VL or Qwen3-VL, with its own tokenizer
and the usual Hugging Face files, so that everything runs offline and other tools can load the
folder. Frames are 112 x 112 pixels (128 x 128): 16 visual tokens a grid of two frames. `bench.json`
says whether weights are random, and the output noise, or trained (`train`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench_lib import paths
from bench_lib.backbones import CLIP_MEAN, CLIP_STD
from bench_lib.dollhouse.world.words import WORDS

CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
JSON_PIECES = (
    '{"', '": "', '", "', '"}', '"answer"', '{"answer": "', '"decision"', '{"decision": "',
    '", "answer": "', '", "reason": "', '", "proactive_response": "', "INTERVENE", "SILENT",
    "...", "\n\n", ". ", ", ", ": ", "A. ", "B. ", "C. ", "D. ", "E. ",
    '{"content": "', '", "content": "', '"content"', '{"decision": "SILENT"', "\nSession ",
    '{"decision": "INTERVENE"', "Session", "Video from", " frames", ", from", " S0",
)  # fmt: skip
SEEN_FIRST = ('{"seen": "', '", "decision": "')
"""Pieces of replies that say first what is seen; last, so that all other tokens keep their ids."""
_CHAT_WORDS = """
    a an about again all already an any are asked asks assistant be because been being best both
    bring but by can choose clearly comes condition consider day decide difference earlier ends
    enough everything evidence exactly far follow given glasses goes going guess has have help holds
    if implied improves in interval into its judge just kind know later longer made make memory met
    missing moment more most need new nothing object once one only open opening option options or
    other otherwise past person place point proactive question real really recordings reminded
    reminder reply response right runs same seconds see seen session sessions settles shown
    silent silently some something speak speaking stage stay still system task tell than that
    them     then they thing things this those time told too under unless until up use useful user
    video wants     was wearer were what whether which while will without work would you your
"""
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DEFAULT_SYSTEM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}"
)
"""Qwen2.5-VL's template puts this before a dialogue without a system turn; Qwen3-VL's does not."""
NOISE = "the tiny model is untrained: its weights are random and its answers are noise"
LEARNED = (
    "the tiny model is trained on the embedded household alone, with the prompt set `compact`; "
    "its answers mean nothing about other videos"
)
WEIGHTS = Path(__file__).with_name("checkpoint") / "model.safetensors"
"""Trained weights of `tiny` in half precision; see the README beside them."""
_MAX_PIXELS = {"tiny": 112 * 112, "tiny-untrained": 112 * 112, "tiny-qwen3": 128 * 128}
_FORMAT = 1  # raise it when anything below changes what is written


def checkpoint(name: str, seed: int = 42) -> Path:
    """The folder of a tiny model, built at first use, then kept.

    `tiny` (Qwen2.5-VL) has the trained weights that lie beside this file, where there are some;
    `tiny-untrained` and `tiny-qwen3` have random ones, by seed.
    """
    tokens = vocabulary()
    config = _configuration(name, len(tokens))
    learned = WEIGHTS if trained(name) else None
    digest = hashlib.sha256(learned.read_bytes()).hexdigest() if learned else ""
    side_files = _side_files(name, config, bool(learned))
    made_of = json.dumps([_FORMAT, seed, tokens, config, side_files, digest])
    folder = (
        paths.cache() / "models" / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    )
    if not (folder / "config.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".draft-"))
        try:
            write(draft, name, seed, learned)
            draft.chmod(0o755)
            draft.replace(folder)
        except OSError:
            if not (folder / "config.json").exists():  # else another process was first
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def trained(name: str) -> bool:
    """Whether a tiny model has trained weights."""
    return name == "tiny" and WEIGHTS.exists()


def write(folder: Path, name: str, seed: int, learned: Path | None = None) -> None:
    """Write all files of the checkpoint to `folder`, with random or with learned weights."""
    import torch

    from bench_lib.backbones import hf_compat

    tokens = vocabulary()
    config = _configuration(name, len(tokens))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = hf_compat.build(hf_compat.config_of(config["model_type"], config), torch.float32)
    model.save_pretrained(folder)
    if learned:
        shutil.copyfile(learned, folder / "model.safetensors")
    _tokenizer(tokens).save(str(folder / "tokenizer.json"))
    for file, content in _side_files(name, config, bool(learned)).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        (folder / file).write_text(text)


def vocabulary() -> list[str]:
    """Tokens in the order of their ids: bytes, control, JSON, words with and without a space."""
    from tokenizers.pre_tokenizers import ByteLevel

    words = [*WORDS, *(w for w in _CHAT_WORDS.split() if w not in WORDS)]
    spaced = [variant for word in words for variant in (word, f" {word}") if len(variant) > 1]
    pieces = [p for p in JSON_PIECES if p not in spaced]
    return list(
        dict.fromkeys([*sorted(ByteLevel.alphabet()), *CONTROL, *pieces, *spaced, *SEEN_FIRST])
    )


def _tokenizer(tokens: list[str]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = tokens[:256]
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    for token in tokens[256:]:
        tokenizer.add_tokens([AddedToken(token, special=token in CONTROL, normalized=False)])
    return tokenizer


def _configuration(name: str, tokens: int) -> dict[str, Any]:
    numbers = {token: 256 + i for i, token in enumerate(CONTROL)}
    text: dict[str, Any] = {
        "vocab_size": -(-tokens // 64) * 64,
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32_768,
        "rms_norm_eps": 1e-6,
        "initializer_range": 0.06,
        "bos_token_id": None,
        "eos_token_id": numbers["<|im_end|>"],
        "pad_token_id": numbers["<|endoftext|>"],
        "tie_word_embeddings": True,
    }
    vision: dict[str, Any] = {
        "depth": 4 if name == "tiny-qwen3" else 6,
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_heads": 4,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 192,
        "initializer_range": 0.06,
    }
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": 1_000_000.0}
    if name == "tiny-qwen3":
        text |= {
            "head_dim": 32,
            "rope_parameters": rope | {"mrope_section": [6, 5, 5], "mrope_interleaved": True},
        }
        vision |= {
            "patch_size": 16,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1, 2],
        }
    else:
        text |= {
            "rope_parameters": rope | {"mrope_section": [4, 6, 6]},
            "use_sliding_window": False,
        }
        vision |= {
            "patch_size": 14,
            "window_size": 56,
            "fullatt_block_indexes": [1, 3, 5],
            "tokens_per_second": 2,
        }
    return {
        "model_type": "qwen3_vl" if name == "tiny-qwen3" else "qwen2_5_vl",
        "text_config": text,
        "vision_config": vision,
        "image_token_id": numbers["<|image_pad|>"],
        "video_token_id": numbers["<|video_pad|>"],
        "vision_start_token_id": numbers["<|vision_start|>"],
        "vision_end_token_id": numbers["<|vision_end|>"],
        "tie_word_embeddings": True,
    }


def preparation(name: str) -> dict[str, Any]:
    """How frames are prepared for it: the content of `preprocessor_config.json`."""
    return dict(
        _side_files(name, _configuration(name, len(vocabulary())))["preprocessor_config.json"]
    )


def _side_files(name: str, config: dict[str, Any], learned: bool = False) -> dict[str, Any]:
    third = name == "tiny-qwen3"
    pixels = _MAX_PIXELS[name]
    preparation = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "image_mean": [0.5] * 3 if third else CLIP_MEAN,
        "image_std": [0.5] * 3 if third else CLIP_STD,
        "patch_size": config["vision_config"]["patch_size"],
        "merge_size": 2,
        "temporal_patch_size": 2,
        "size": {"shortest_edge": pixels // 4, "longest_edge": pixels},
    }
    video: dict[str, Any] = {"video_processor_type": "Qwen2VLVideoProcessor"}
    if third:  # whose limits are those of a whole video
        video = {
            "video_processor_type": "Qwen3VLVideoProcessor",
            "size": {"shortest_edge": pixels // 4, "longest_edge": pixels * 1_024},
        }
    return {
        "preprocessor_config.json": preparation,
        "video_preprocessor_config.json": {**preparation, **video},
        "processor_config.json": {
            "processor_class": "Qwen3VLProcessor" if third else "Qwen2_5_VLProcessor"
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config["text_config"]["max_position_embeddings"],
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
        },
        "generation_config.json": {
            "eos_token_id": [config["text_config"][k] for k in ("eos_token_id", "pad_token_id")],
            "pad_token_id": config["text_config"]["pad_token_id"],
            "do_sample": False,
        },
        "chat_template.jinja": TEMPLATE if third else DEFAULT_SYSTEM + TEMPLATE,
        "bench.json": {"caveat": LEARNED, "prompts": "compact"} if learned else {"noise": NOISE},
    }
