"""Full-text search in any script: words by stem, Chinese and Japanese by pairs of characters.

SQLite's own tokenizers miss words of two characters inside unspaced text, and most Chinese words
have two, so texts are cut here and indexed as spaced tokens. Ranking is SQLite's BM25.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_CJK = re.compile(rf"[{_UNSPACED}]")


def tokens(text: str) -> list[str]:
    """Words, and the pairs of neighbouring characters of unspaced scripts (one alone by itself)."""
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.match(run) and len(run) > 1:
            found += [one + two for one, two in pairwise(run)]
        else:
            found.append(run)
    return found


class TextIndex:
    """Documents by key, in memory or in a file.

    Args:
        documents: Key and text of each; added once, in their order.
        path: A file of an index that exists or is made; in memory where empty.
    """

    def __init__(self, documents: Iterable[tuple[str, str]] = (), path: Path | str = "") -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(str(path) or ":memory:", check_same_thread=False)
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING "
            "fts5(key UNINDEXED, tokens, tokenize='porter unicode61')"
        )
        with self._db:
            rows = ((key, " ".join(tokens(text))) for key, text in documents)
            self._db.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def search(self, query: str, most: int) -> list[str]:
        """Keys of the documents that share a token with the query, best first, ties by age."""
        wanted = list(dict.fromkeys(tokens(query)))
        if not wanted or most < 1:
            return []
        match = " OR ".join(f'"{token}"' for token in wanted)
        with self._lock:
            rows = self._db.execute(
                "SELECT key FROM texts WHERE tokens MATCH ? ORDER BY round(bm25(texts), 9), rowid "
                "LIMIT ?",
                (match, most),
            ).fetchall()
        return [key for (key,) in rows]


def containment(query: str, text: str) -> float:
    """Share of the query's tokens that a text holds, 0 for an empty query."""
    wanted, held = set(tokens(query)), set(tokens(text))
    return len(wanted & held) / len(wanted) if wanted else 0.0
