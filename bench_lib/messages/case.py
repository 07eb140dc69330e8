"""A judge's case between its two marker lines: written, and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bench_lib.messages.chat import Message, Text

OPEN, CLOSE = "<<<CASE\n", "\nCASE>>>"


def fenced(data: Mapping[str, Any]) -> str:
    """A JSON object that holds no `<` and no `>`."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def read_case(messages: Iterable[Message]) -> dict[str, Any]:
    """The case inside a judge's request: what a judge that is a program works on.

    Raises:
        ValueError: the messages hold no case.
    """
    text = "\n".join(p.text for m in messages for p in m.parts if isinstance(p, Text))
    start = text.find(OPEN)
    end = text.find(CLOSE, start)
    if start < 0 or end < 0:
        raise ValueError("the request holds no case")
    return json.loads(text[start + len(OPEN) : end])
