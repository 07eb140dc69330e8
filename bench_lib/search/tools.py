"""Search tools and the interface of what serves them.

Hyper-parameters (C.5, Search Worker): `search_results` 10 after filtering at `search_similarity`
0.6, `crop_side` 720. A crop's box is given on a grid of 1000 x 1000; without a box the full frame
and its centre are searched at once. Whatever a provider returns is data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench_lib.errors import BenchError
from bench_lib.search.text_index import containment
from bench_lib.video.picture import Picture, encoded

Box = tuple[float, float, float, float]
"""x1, y1, x2, y2 on a grid of 1000 x 1000."""
GRID = 1000
LEAST = 10
"""Shortest side of a box on the grid."""


@dataclass(frozen=True)
class Result:
    """One thing that a search found."""

    title: str
    text: str
    url: str = ""


class SearchError(BenchError):
    """The provider could not be asked, or refused."""


class Provider(Protocol):
    """A source of outside knowledge; calls block and may come from several threads."""

    @property
    def id(self) -> str:
        """Names the provider in manifests."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it serves."""

    def text(self, query: str, most: int) -> Sequence[Result]:
        """Results for words, best first; raises SearchError."""

    def image(self, jpeg: bytes, most: int) -> Sequence[Result]:
        """Results of a reverse image search; raises SearchError."""


def relevant(query: str, results: Sequence[Result], least: float, most: int) -> list[Result]:
    """The results that hold enough of the query's words, at most `most`, in their order."""
    kept = [r for r in results if containment(query, f"{r.title} {r.text}") >= least]
    return kept[:most]


def checked_box(box: Box) -> Box:
    """A box inside the grid; ValueError where it is upside down or too small."""
    x1, y1, x2, y2 = (min(max(value, 0.0), float(GRID)) for value in box)
    if x2 - x1 < LEAST or y2 - y1 < LEAST:
        raise ValueError(
            f"box {list(box)} must be [x1, y1, x2, y2] with x1 < x2 and y1 < y2 on a grid of "
            f"{GRID} x {GRID}, each side at least {LEAST}"
        )
    return x1, y1, x2, y2


CENTRE: Box = (250.0, 250.0, 750.0, 750.0)


def crop(frame: Picture, box: Box, longest: int, quality: int) -> bytes:
    """The boxed part of a frame as a JPEG of at most `longest` pixels."""
    pixels = frame.pixels()
    height, width = pixels.shape[:2]
    x1, y1, x2, y2 = checked_box(box)
    left, right = int(x1 * width / GRID), max(int(x1 * width / GRID) + 1, int(x2 * width / GRID))
    top, low = int(y1 * height / GRID), max(int(y1 * height / GRID) + 1, int(y2 * height / GRID))
    return encoded(pixels[top:low, left:right], longest, quality)


def listed(results: Sequence[Result]) -> str:
    """Results as text, one a paragraph."""
    lines = [f"{r.title}\n{r.text}" + (f"\n{r.url}" if r.url else "") for r in results]
    return "\n\n".join(lines) or "(nothing was found)"
