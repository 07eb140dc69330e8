"""Text from outside as data: it cannot close the fence that it stands in."""

from __future__ import annotations

import re

_FENCE = re.compile(r"<(?=\s*/?\s*data\b)", re.IGNORECASE)


def fenced(source: str, text: str) -> str:
    """Content from outside as data: it cannot close the fence that it stands in."""
    return f"<data from={source!r}>\n{_FENCE.sub('‹', text)}\n</data>"
