"""Keys stay in the environment: no text that is raised, stored or shown may hold one."""

from __future__ import annotations

import os
import re

from bench_lib.errors import BenchError

_LOOKS_LIKE_A_KEY = re.compile(
    r"(?i:(?<=bearer )|(?<=api-key: )|(?<=api_key=))[^\s\"',;&]{6,}"
    r"|\b(?:sk|hf|gsk|xai)[-_][\w*.-]{10,}"
    r"|\bAIza[\w-]{20,}"
)


def key_from(variable: str) -> str:
    """The key in an environment variable, or nothing where no variable is named.

    Raises:
        BenchError: the variable is not set, or holds what no HTTP header may hold. The message
            never shows the value.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BenchError(f"no key: the environment variable {variable} is not set")
    if not re.fullmatch(r"[!-~]+", key):
        raise BenchError(
            f"the key in {variable} holds a space or a non-ASCII character; set it anew"
        )
    return key


def redacted(text: str, *variables: str) -> str:
    """`text` without the keys held by these environment variables and what looks like one."""
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key:
            text = text.replace(key, "***")
    return _LOOKS_LIKE_A_KEY.sub("***", text)
