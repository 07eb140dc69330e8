"""What things are known by, wherever they lie: digests of values and of recorded files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

END_BYTES = 2**20
_digests: dict[tuple[str, int, int], str] = {}


def digest(value: Any, length: int = 8) -> str:
    """Hex digits of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def ends(file: str) -> str:
    """Size in bytes and a digest of the first and the last MiB; OSError where it is unreadable.

    A copy has the same, so has one with another name or date. Read once in a process, and again
    when the file's size or time has changed.
    """
    status = Path(file).stat()
    seen = (file, status.st_size, status.st_mtime_ns)
    if seen not in _digests:
        digest = hashlib.sha256()
        with Path(file).open("rb") as recorded:
            digest.update(recorded.read(END_BYTES))
            recorded.seek(max(0, status.st_size - END_BYTES))
            digest.update(recorded.read(END_BYTES))
        _digests[seen] = f"{status.st_size}.{digest.hexdigest()}"
    return _digests[seen]
