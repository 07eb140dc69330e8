"""Errors a user can act on: one sentence that says what was given, expected, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from bench_lib.redact import redacted


class BenchError(Exception):
    """An error with a message for the user; notebooks show it as one line, without a traceback.

    Messages quote parameters and servers: whatever looks like a secret in one is replaced.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(redacted(str(message)))

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: what a notebook prints instead of the stack."""
        return [f"{type(self).__name__}: {self}"]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known spelling and lists all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names) or 'none'}"
