"""Full-text search in any script: words by stem, Chinese and Japanese by pairs of characters.

SQLite's own tokenizers miss words of two characters inside unspaced text, and most Chinese words
have two, so texts are cut here and indexed as spaced words. Ranking is SQLite's BM25. Whatever else
compares words takes the stems that the index would: what the one finds the other knows too.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_CJK = re.compile(rf"[{_UNSPACED}]")


def unspaced(text: str) -> bool:
    """Whether a sign of an unspaced script is in a text."""
    return bool(_CJK.search(text))


def tokens(text: str) -> list[str]:
    """Stems of words, and pairs of neighbouring characters of unspaced scripts (one by itself)."""
    return [stem for word in words(text) for stem in _stems(word)]


def words(text: str) -> list[str]:
    """Words as they are written but for case and width; pairs of characters as in `tokens`."""
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.match(run) and len(run) > 1:
            found += [one + two for one, two in pairwise(run)]
        else:
            found.append(run)
    return found


TOKENIZER = "porter unicode61"
_lock = threading.Lock()
_stemmer: sqlite3.Connection | None = None


@lru_cache(100_000)
def _stems(word: str) -> tuple[str, ...]:
    """What SQLite makes of a word: its stem without accents; several or none where it cuts it."""
    global _stemmer
    with _lock:
        if _stemmer is None:
            _stemmer = sqlite3.connect(":memory:", check_same_thread=False)
            _stemmer.executescript(
                f"CREATE VIRTUAL TABLE texts USING fts5(word, tokenize='{TOKENIZER}');"
                "CREATE VIRTUAL TABLE stems USING fts5vocab(texts, 'instance');"
            )
        _stemmer.execute("INSERT INTO texts VALUES (?)", (word,))
        found = _stemmer.execute("SELECT term FROM stems ORDER BY offset").fetchall()
        _stemmer.execute("DELETE FROM texts")
    return tuple(term for (term,) in found)


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
            f"fts5(key UNINDEXED, tokens, tokenize='{TOKENIZER}')"
        )
        with self._db:
            rows = ((key, " ".join(words(text))) for key, text in documents)
            self._db.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def search(self, query: str, most: int) -> list[str]:
        """Keys of the documents that share a token with the query, best first, ties by age."""
        wanted = list(dict.fromkeys(words(query)))
        if not wanted or most < 1:
            return []
        match = " OR ".join(f'"{word}"' for word in wanted)
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
