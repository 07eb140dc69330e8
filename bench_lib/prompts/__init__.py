"""Prompt sets: folders of text files with `$fields`. A run stores the digest of the set it used.

A set is a folder here (`apm`, ...) or any folder of the user's that holds files of the same names;
a file that it lacks is taken from the built-in set it is based on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from string import Template

from bench_lib.errors import BenchError, nearest
from bench_lib.paths import short
from bench_lib.texts import records

HERE = Path(__file__).parent


@dataclass(frozen=True)
class PromptSet:
    """The texts of a set by file name without `.txt`, and the digest of all of them."""

    name: str
    texts: dict[str, str]

    @property
    def digest(self) -> str:
        """Twelve hex digits over names and texts."""
        joined = "\0".join(f"{k}\0{v}" for k, v in sorted(self.texts.items()))
        return hashlib.sha256(joined.encode()).hexdigest()[:12]

    def render(self, name: str, **fields: str) -> str:
        """The text of that name with its `$fields` filled; BenchError where one is missing."""
        if name not in self.texts:
            raise BenchError(f"prompt set {self.name!r} lacks {name}.txt")
        try:
            return Template(self.texts[name]).substitute(fields)
        except (KeyError, ValueError) as error:
            raise BenchError(f"{name}.txt of prompt set {self.name!r}: bad field {error}") from None


def load(name: str, base: str = "apm") -> PromptSet:
    """A built-in set by name, or a folder of one's own laid over the built-in set `base`.

    A built-in set called `SET_WORD` is a variant of the set `SET` and is laid over it.
    """
    if (HERE / name).is_dir() and "/" not in name:
        of = HERE / name.rpartition("_")[0]
        return PromptSet(name, {**(_read(of) if of != HERE else {}), **_read(HERE / name)})
    folder = Path(name).expanduser()
    if not folder.is_dir():
        known = [p.name for p in HERE.iterdir() if p.is_dir() and not p.name.startswith("_")]
        raise BenchError(f"prompts {name!r} is neither a set nor a folder; {nearest(name, known)}")
    own = _read(folder)
    stray = sorted(set(own) - set(_read(HERE / base)))
    if stray or not own:
        what = f"{stray[0]}.txt is not a text of that set" if stray else "it holds no .txt file"
        raise BenchError(f"prompts folder {folder} does not fit the set {base!r}: {what}")
    return PromptSet(name, {**_read(HERE / base), **own})


def _read(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(p for p in folder.glob("*.txt") if p.name[0] != "."):
        try:
            found[path.stem] = records.text(path).strip()
        except records.Unreadable as error:
            raise BenchError(f"{short(path)} {error}") from None
    return found
