"""Whether vLLM has to be tried again: `check` exits 1 if it does, `record` notes that it passed.

What counts is the content of the chat layer, the backbones, the checkpoint and the lock.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NOTE = Path(__file__).parent / "passed.txt"
WATCHED = (
    "bench_lib/chat", "bench_lib/messages", "bench_lib/backbones", "bench_lib/opening",
    "bench_lib/dollhouse/training/checkpoint/model.safetensors",
    "bench_lib/dollhouse/training/tiny.py", "requirements.lock", "bench_lib/install.py",
    "pyproject.toml", "bench_lib/engine", "bench_lib/evaluate", "tests/served",
)  # fmt: skip


def digest() -> str:
    """Over all watched files but the note itself."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *WATCHED],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    total = hashlib.sha256()
    for name in sorted(filter(None, listed.split("\0"))):
        path = ROOT / name
        if path != NOTE and path.is_file():
            total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def main(what: str) -> int:
    """Run a command; returns the exit status."""
    if what == "record":
        revision = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        ).stdout.strip()  # fmt: skip
        NOTE.write_text(f"{digest()} passed after revision {revision}\n")
        return 0
    known = NOTE.read_text().split()[:1] if NOTE.exists() else []
    return 0 if known == [digest()] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
