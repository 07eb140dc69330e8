"""Text vectors without a model: hashed words and letter groups. Offline, deterministic, any script.

They measure shared wording, not meaning: paraphrases with other words are far apart. A stand-in for
a text embedder, and named as such in reports.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 512
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        """a an and are as at be been by did do does for from had has have he her his how i in into
        is it its me my of on or our she so that the their then there these they this to was we were
        what when where which who will with you your 的 了 在 是 和 吗 呢 着 把 被"""
    )
)


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors `[n, 512]`; cosine 1 for texts equal but for case, width and punctuation.

    Features: words (weight 1), their letter trigrams (0.4), and for Chinese and Japanese single
    characters (0.6) and pairs (1). Repeats count by the square root. The first dimension is that of
    texts without any word, so every vector has length 1.
    """
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        weights: defaultdict[str, float] = defaultdict(float)
        for feature, weight in _features(text):
            weights[feature] += weight
        for feature, weight in weights.items():
            code = crc32(feature.encode())
            sign = 1.0 if code >> 31 else -1.0
            row[1 + code % (DIMENSIONS - 1)] += sign * math.sqrt(weight)
        length = float(np.linalg.norm(row))
        if length:
            row /= length
        else:
            row[0] = 1.0
    return vectors


def _features(text: str) -> Iterator[tuple[str, float]]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    for word in _WORD.findall(plain):
        if _UNSPACED.search(word):
            characters = [c for c in word if c not in _FUNCTION_WORDS]
            for character in characters:
                yield character, 0.6
            for pair in pairwise(characters):
                yield "".join(pair), 1.0
        elif word not in _FUNCTION_WORDS:
            yield word, 1.0
            framed = f"^{word}$"
            for at in range(len(framed) - 2):
                yield f"~{framed[at : at + 3]}", 0.4
