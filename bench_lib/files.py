"""Files written whole or not at all: nobody reads half of one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from bench_lib import paths
from bench_lib.redact import scrubbed


def write_whole(path: Path, text: str) -> Path:
    """Write a text file at once, so that nobody reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(scrubbed(paths.homeless(text)), encoding="utf-8")
    temporary.replace(path)
    return path
