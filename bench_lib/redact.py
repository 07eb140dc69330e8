"""Secrets stay in the environment: no text that is raised, shown or stored may hold one.

What the environment holds is known and is replaced wherever it stands (`scrubbed`: replies and
records). An error's text may come from anywhere, so that what looks like a secret there goes too
(`redacted`).
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

GONE = "***"
LEAST = 8
"""Shorter values of the environment are words that stand in texts by chance."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = {
    "secret", "secrets", "password", "passwd", "pwd", "passphrase", "credential", "credentials",
    "authorization", "bearer", "cookie", "cookies", "apikey", "apikeys",
}  # fmt: skip
_FORM = re.compile(
    r"(?i:(?<=bearer )|(?<=basic ))[^\s\"',;&]{6,}"
    r"|\b(?:sk|hf|gsk|xai|ghp|gho|glpat|npm)[-_][\w*.-]{10,}|\bgithub_pat_\w{10,}"
    r"|\bAIza[\w-]{20,}|\bAKIA[A-Z0-9]{12,}|\bxox[a-z]-[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
)
_COMPOUND = re.compile(r"(?:api|access|private)(?:key|token)s?")
_USER = re.compile(r"(?<=://)(?:(?!://)[^\s\"'<>])*@")
_QUERY = re.compile(r"(://(?:(?!://)[^\s\"'<>?])*\?)[^\s\"'<>)]+")
_NAMED = re.compile(
    r"""(?<![\w.-])(?P<name>-{0,2}[A-Za-z][\w.-]{0,80})(?P<mark>\\?["']?\s*[:=]\s*\\?["']?)"""
    r"""(?P<value>(?:(?:Bearer|Basic|Token)\s+)?[^\s"'\\,;&)}\]]+)"""
)


def names_a_secret(name: str) -> bool:
    """Whether what has this name is one: `api_key`, `X-Token`, `clientSecret`, `cookie`.

    `key_env` names a variable, `max_tokens` counts; neither is.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] == "env":
        return False
    return (
        name.lower().startswith("x-")
        or bool(_ALWAYS.intersection(words))
        or words[-1] in ("key", "token", "auth")
        or _COMPOUND.search("".join(words)) is not None
    )


def secret_at(value: Any, where: str = "") -> str:
    """The place of the first secret in a parameter's value, such as `extra.api_key`; empty if none.

    Looked at are names, the user and query of addresses, forms of known services' keys, and options
    of commands.
    """
    return next(_secrets(value, where, where), "")


def _secrets(value: Any, where: str, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            named = name if names_a_secret(name) else str(key)
            yield from _secrets(inner, f"{where}.{key}".lstrip("."), named)
    elif isinstance(value, list | tuple):
        words = [item if isinstance(item, str) else "" for item in value]
        for at, item in enumerate(value):
            before = words[at - 1] if at else ""
            option = before if before.startswith("-") and words[at][:1] != "-" else name
            yield from _secrets(item, where, option)
    elif isinstance(value, str):
        if value and (names_a_secret(name) or redacted(value) != value):
            yield where
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Numbers are passwords, but ids of tokens and counts of keys too.
        known = names_a_secret(name) and _ALWAYS.intersection(_WORD.findall(name.lower()))
        if value and known:
            yield where


def scrubbed(text: str, *variables: str) -> str:
    """`text` without the secrets of the environment and without keys of a known form.

    Of the environment those count that these variables hold, and whatever is named like a secret.
    """
    for value in sorted(_held(variables), key=len, reverse=True):
        text = text.replace(value, GONE)
    return _FORM.sub(GONE, text)


def redacted(text: str, *variables: str) -> str:
    """`scrubbed`, and without users and queries of addresses and what is named like a secret."""
    text = scrubbed(text, *variables)
    text = _QUERY.sub(rf"\1{GONE}", _USER.sub(f"{GONE}@", text))
    return _NAMED.sub(_without_value, text)


def _without_value(found: re.Match[str]) -> str:
    name, mark, value = found["name"], found["mark"], found["value"]
    words = [word.lower() for word in _WORD.findall(name)]
    known = bool(_ALWAYS.intersection(words)) or _COMPOUND.search("".join(words)) is not None
    if not names_a_secret(name) or value.startswith(GONE) or value in ("None", "null"):
        return found[0]
    # `no key: the variable` and `answer_key = 'B'` are prose and data, `token: 5` is a number.
    prose = (len(words) > 1 and words[-1] == "key") or not re.search(r"[=\"']", mark)
    if not known and (value.isdecimal() or (prose and not name.lower().startswith("x-"))):
        return found[0]
    return f"{name}{mark}{GONE}"


def _held(variables: tuple[str, ...]) -> set[str]:
    """Secrets of the environment, as they are and as JSON, HTML and addresses write them."""
    values = {os.environ.get(name, "").strip() for name in variables if name}
    values |= {
        value.strip()
        for name, value in os.environ.items()
        if len(value.strip()) >= LEAST and names_a_secret(name)
    }
    values.discard("")
    return values | {
        form
        for value in values
        for form in (json.dumps(value)[1:-1], html.escape(value), quote(value, safe=""))
    }
