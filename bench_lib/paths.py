"""Places, from any working directory; `BENCH_OUTPUTS` and `BENCH_CACHE` move the written ones."""

from __future__ import annotations

import os
import re
from pathlib import Path, PosixPath


def root() -> Path:
    """The project's root: the folder above this package."""
    return Path(__file__).resolve().parent.parent


def outputs() -> Path:
    """Where runs and reports are written."""
    return Path(os.environ.get("BENCH_OUTPUTS") or root() / "outputs")


def cache() -> Path:
    """Where generated media, stored frames and kept replies lie; safe to delete."""
    return Path(os.environ.get("BENCH_CACHE") or root() / "outputs" / "cache")


def there(path: Path) -> Path:
    """The path, or the nearest one above it that exists."""
    return path if path.exists() else there(path.parent)


def short(path: Path | str) -> str:
    """A path for people: the home folder written `~`, the project's own paths relative to it."""
    text = str(path)
    if text.startswith(f"{root()}{os.sep}"):
        return text[len(str(root())) + 1 :]
    return homeless(text)


def homeless(text: str) -> str:
    """A text with `~` for the home folder, wherever a path begins with it."""
    home = str(Path.home())
    if home == "/" or home not in text:
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(home)}(?=/|\W|$)", "~", text)


class ShownPath(PosixPath):
    """A path that a notebook shows without the home folder."""

    def __repr__(self) -> str:
        return short(self)
