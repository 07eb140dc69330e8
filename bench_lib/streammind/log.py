"""The append-only log: everything that ever became known, with when it happened and was recorded.

An entry says `kind`, the stretch `[start_s, end_s]` of stream time in which it happened,
`recorded_s`, when it became known, and a JSON `body`. Nothing is ever changed: a correction is a
new entry, so that a version (a number of entries) and an instant together name one past state. All
times are stream seconds: seconds of video since the stream's first frame, sessions one after
another. Kinds and bodies are those that `bank.Bank` reads; `memory_file` documents the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One entry; see the module."""

    kind: str
    start_s: float
    end_s: float
    recorded_s: float
    body: Mapping[str, Any]

    def line(self) -> str:
        """The entry as one line of JSON, the same on every machine."""
        return json.dumps(
            {
                "kind": self.kind,
                "start_s": round(self.start_s, 6),
                "end_s": round(self.end_s, 6),
                "recorded_s": round(self.recorded_s, 6),
                "body": self.body,
            },
            sort_keys=True,
            ensure_ascii=False,
        )

    def known_at(self, t_s: float) -> bool:
        """Whether it had happened and been recorded by an instant."""
        return self.recorded_s <= t_s + 1e-6 and self.end_s <= t_s + 1e-6


class Log:
    """Entries in the order in which they were recorded; `nbytes` is their size as lines."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._sizes: list[int] = [0]
        for entry in entries:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        """Add an entry at the end."""
        self._entries.append(entry)
        self._sizes.append(self._sizes[-1] + len(entry.line().encode()) + 1)

    def __len__(self) -> int:
        return len(self._entries)

    def until(self, version: int | None = None) -> Iterator[Entry]:
        """The entries of a version, all by default; safe while others are appended."""
        for at in range(len(self._entries) if version is None else version):
            yield self._entries[at]

    def nbytes(self, version: int | None = None) -> int:
        """Bytes of the entries of a version."""
        return self._sizes[-1 if version is None else version]

    def lines(self) -> list[str]:
        """All entries as lines of JSON."""
        return [entry.line() for entry in self._entries]
