"""Pages made of sections: each is a table, figures or a text, in a notebook and in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from bench_lib.files import write_whole
from bench_lib.report.cards import Card
from bench_lib.report.caveats import Caveat
from bench_lib.report.frames import Picture
from bench_lib.report.header import Tile
from bench_lib.report.kit import template
from bench_lib.report.tables import Table
from bench_lib.report.theme import Figure


@dataclass(frozen=True)
class Listing:
    """A text shown as it is: a prompt, commands."""

    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Folded:
    """A table that a page opens on demand."""

    title: str
    table: Table


@dataclass(frozen=True)
class Cards:
    """Single asks up close."""

    made: tuple[Card, ...]


@dataclass(frozen=True)
class Exchange:
    """One question to a model: what it was shown, what it said; both may be long."""

    title: str
    line: str
    shown: tuple[Picture, ...]
    asked: str
    replied: str
    note: str = ""
    failed: bool = False


Piece = Table | Figure | Listing | Folded | Cards | Exchange | Sequence[Figure]
"""What a section holds; figures in a sequence stand side by side."""


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and pieces; or the reason why there is nothing to show."""

    title: str
    note: str = ""
    pieces: tuple[Piece, ...] = ()
    absent: str = ""

    @property
    def blocks(self) -> list[tuple[str, Any]]:
        """The pieces with the macro that prints each."""
        return [_block(piece) for piece in self.pieces]

    @property
    def anchor(self) -> str:
        """The place of the section in its page."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    @property
    def tables(self) -> list[Table]:
        """The tables among the pieces, without those that have nothing to show."""
        unfolded = (p.table if isinstance(p, Folded) else p for p in self.pieces)
        return [p for p in unfolded if isinstance(p, Table) and not p.absent]

    def _repr_html_(self) -> str:
        return str(template("section.html").render(section=self))

    def __repr__(self) -> str:
        return f"<{self.title}: {self.absent or f'{len(self.pieces)} pieces'}>"


@dataclass(frozen=True)
class Page:
    """A report of sections."""

    kind: str
    title: str
    line: str
    sections: tuple[Section, ...]
    caveats: tuple[Caveat, ...] = ()
    tiles: tuple[Tile, ...] = ()
    facts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def html(self) -> str:
        """The page; it opens with no network and holds no script."""
        return str(template("sections.html").render(page=self))

    def save(self, path: Path) -> Path:
        """Write it at once."""
        return write_whole(path, self.html)


Builder = Callable[[Any], Iterable[Piece]]


def section(title: str, note: str = "") -> Callable[[Builder], Callable[[Any], Section]]:
    """Make a section of what a function yields; a job with `absent` has its reason shown."""

    def wrap(builder: Builder) -> Callable[[Any], Section]:
        @wraps(builder)
        def made(job: Any) -> Section:
            if job.absent:
                return Section(title, note, absent=job.absent)
            return Section(title, note, tuple(builder(job)))

        return made

    return wrap


def _block(piece: Piece) -> tuple[str, Any]:
    if isinstance(piece, Table):
        return "table", piece
    if isinstance(piece, Listing):
        return "listing", piece
    if isinstance(piece, Folded):
        return "folded", piece
    if isinstance(piece, Cards):
        return "cards", piece.made
    if isinstance(piece, Exchange):
        return "exchange", piece
    return "figures", [piece] if isinstance(piece, Figure) else list(piece)
