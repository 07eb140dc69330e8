"""Keys are named, not given: each is read from the environment when it is sent."""

from __future__ import annotations

import os
import re

from bench_lib.errors import BenchError


def named(variable: str) -> None:
    """Refuse what is no name of an environment variable: it may be the key itself."""
    if not re.fullmatch(r"(?:[A-Z_][A-Z0-9_]*)?", variable):
        raise BenchError(
            "setting key_env names the environment variable that holds the key, in capitals "
            "(key_env: OPENAI_API_KEY); it never holds the key itself"
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
