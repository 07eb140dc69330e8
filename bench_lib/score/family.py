"""Kinship of models: a judge tends to prefer what its own family writes (self-preference bias).

Families are told by names, as far as names tell; a model whose language part comes from another
family belongs to both. An unknown name has no family but is akin to itself.
"""

from __future__ import annotations

import re

NAMES: dict[str, str] = {
    "Qwen": r"qwen|qwq|qvq",
    "GPT": r"gpt|\bo[134](?:-|\b)",
    "Gemini": r"gemini|gemma",
    "Claude": r"claude",
    "DeepSeek": r"deepseek",
    "Llama": r"(?<!video)(?<!video-)llama",
    "Mistral": r"mi[sx]tral|pixtral|ministral|magistral",
    "InternLM": r"intern(?:lm|vl|s1)",
    "Seed": r"\bseed[-_ ]?\d|doubao",
    "GLM": r"glm|cogvlm",
    "Kimi": r"kimi|moonshot",
    "Phi": r"\bphi-?\d",
    "MiniCPM": r"minicpm",
    "Grok": r"grok",
    "Nova": r"\bnova-",
    "SmolLM": r"smol(?:lm|vlm)",
}
"""A pattern for the model names of each family, in lower case."""
QWEN_INSIDE = (
    r"internvl-?(?:2_5|2\.5|3)|video-?llama-?3|llava-onevision|minicpm-(?:v-2_6|o)|mimo-vl"
)
"""Vision-language models whose language part is a Qwen (their model cards)."""


def families(model: str) -> frozenset[str]:
    """The families of a model id; its address, after `@`, tells nothing."""
    name = model.partition("@")[0].lower()
    found = {family for family, pattern in NAMES.items() if re.search(pattern, name)}
    if re.search(QWEN_INSIDE, name):
        found.add("Qwen")
    return frozenset(found)


def akin(judge: str, judged: str) -> str:
    """What judge and judged model have in common: a family, or being one model; else empty.

    A judge that is a program has no family; nobody asks this of it.
    """
    if not judged or judged == "none":
        return ""
    both = sorted(families(judge) & families(judged))
    if both:
        return both[0]
    ids = [name.partition("@")[0].partition("#")[0] for name in (judge, judged)]
    return "the same model" if ids[0] == ids[1] else ""
