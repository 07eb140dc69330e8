"""fluxmem: three tiers of visual tokens, pruned against time, then merged in space.

FluxMem (arXiv 2603.02096, CVPR 2026), training-free, on token embeddings before the decoder. The
newest grids are whole (short tier). A grid that leaves it keeps the tokens that differ from its
neighbours in time (TAS: temporal adjacency selection; mid tier). A grid that leaves the mid tier
has its remaining neighbours in space merged into anchors (SDC: spatial domain consolidation; long
tier). Survivors keep the positions they had.

Deviations from the release: cosines are float32 whatever the dtype; a session's first grid has no
predecessor and its last no successor (the release knows one video); a long tier under a ceiling
loses whole grids, evenly over time (the release has no ceiling); on Qwen3-VL, for which there is no
release, DeepStack levels are kept and averaged with their token, and similarity is that of level 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import InputClass
from bench_lib.measure import count
from bench_lib.memories.token_memory import Group, Held, TokenMemory
from bench_lib.video.stream import SessionInfo

BINS = 128
_AROUND = tuple((row, col) for row in (0, 1, 2) for col in (0, 1, 2))
_AFTER = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Half of the eight neighbours: each pair of cells once."""


class Form(NamedTuple):
    """Published settings of a way to run it."""

    input_class: InputClass
    mid_frames: int
    max_frames: int
    max_pixels: int


FORMS = {
    "incremental": Form("incremental", 64, 0, 401_408),
    "window": Form("window", 64, 256, 401_408),
    "thinned": Form("thinned", 512, 1_024, 100_352),
}


@dataclass(frozen=True)
class Fresh:
    """A whole grid; `change` `[n]` is its distance to the grid before it, None where none is."""

    group: Group
    change: Tensor | None


@dataclass(frozen=True)
class Tiers:
    """FluxMem's memory, each tier in time order."""

    short: tuple[Fresh, ...] = ()
    mid: tuple[Group, ...] = ()
    long: tuple[Group, ...] = ()


@dataclass(kw_only=True)
class Fluxmem(TokenMemory):
    """FluxMem.

    Attributes:
        form: `incremental` remembers as the stream goes, under a ceiling, and reaches earlier
            sessions; until the ceiling drops something it equals the batch algorithm over all that
            was seen. `window` runs the batch algorithm at the question over the newest `window_s`
            (the release's streaming scripts). `thinned` runs it over the whole prefix thinned to
            `max_frames` (the release's offline scripts).
        short_frames: Newest frames kept whole. 8: streaming and offline scripts.
        mid_frames: Frames pruned against time only. 64: streaming scripts; 512: offline scripts.
        window_s: 256: streaming scripts.
        max_frames: Frames a question looks at. 256: streaming scripts; 1,024: offline scripts.
        max_pixels: 401,408: streaming scripts; 100,352: offline scripts.
        direct_drop: A token more alike than this to the next grid goes in any case. 0.8: the
            release's class.
        pair_distance: A fixed distance in place of Otsu's threshold in TAS. None: all scripts.
        max_tokens: Ceiling of `incremental`. 24,576: the 24,475 tokens of the state APM-Bench
            publishes (table 10: 167.31 MiB of 7,168 bytes), rounded to a multiple of 1,024.
        fps: 1: all scripts.
        clip_frames: Frames handed over at once; the memory does not depend on it.
        session_marker: Write a session's number and clock before its tokens. The release has none.

    `mid_frames`, `max_frames` and `max_pixels` are those of the form unless given.
    """

    persistent: ClassVar[bool] = True

    form: Literal["incremental", "window", "thinned"] = "incremental"
    short_frames: int = 8
    mid_frames: int | None = None
    max_frames: int | None = None
    max_pixels: int | None = None
    window_s: float = 256.0
    direct_drop: float = 0.8
    pair_distance: float | None = None
    max_tokens: int = 24_576

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise BenchError(f"fluxmem has no form {self.form!r}; {nearest(self.form, FORMS)}")
        form = FORMS[self.form]
        self.mid_frames = form.mid_frames if self.mid_frames is None else self.mid_frames
        self.max_frames = form.max_frames if self.max_frames is None else self.max_frames
        self.max_pixels = form.max_pixels if self.max_pixels is None else self.max_pixels
        for name, least in (("short_frames", 2), ("mid_frames", 0)):
            if (frames := getattr(self, name)) % 2 or frames < least:
                raise BenchError(f"fluxmem: {name} is {frames}; it counts pairs: give 2, 4, ...")
        if self.window_s * self.fps < 1:
            raise BenchError(f"fluxmem: window_s {self.window_s} holds no frame at {self.fps} fps")

    @property
    def input_class(self) -> InputClass:  # type: ignore[override]
        """See `Method.input_class`; it depends on the form."""
        return FORMS[self.form].input_class

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """See `Method.causal`; a thinned prefix is read as one video (StreamArena, Eq. 13)."""
        return self.input_class != "thinned"

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """All but `thinned`, which may look at any frame of the prefix again."""
        return self.form != "thinned"

    @property
    def defers(self) -> bool:
        """See `TokenMemory.defers`."""
        return self.form != "incremental"

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`; raises BenchError for a ceiling below the short tier."""
        super().begin_session(info)
        rows, cols = self.state.lattice
        least = self.short_frames // self.frames_per_grid * rows * cols
        if self.form == "incremental" and self.max_tokens < least:
            raise BenchError(
                f"fluxmem: max_tokens {self.max_tokens} is below the short tier's {least} tokens"
            )

    def wanted(self, held: tuple[Held, ...]) -> tuple[Held, ...]:
        """The newest `window_s` of footage, or all."""
        return held[-int(self.window_s * self.fps) :] if self.form == "window" else held

    def chosen(self, held: tuple[Held, ...]) -> tuple[Held, ...]:
        """At most `max_frames` of the held frames, evenly spaced, first and last among them."""
        if not self.defers or not self.max_frames or len(held) <= self.max_frames:
            return held
        picked = np.linspace(0, len(held) - 1, self.max_frames).round().astype(int)
        return tuple(held[i] for i in picked)

    def blank(self) -> Tiers:
        """See `TokenMemory.blank`."""
        return Tiers()

    def recall(self, memory: Tiers) -> Sequence[Group]:
        """See `TokenMemory.recall`."""
        groups = (*memory.long, *memory.mid, *(fresh.group for fresh in memory.short))
        return [group for group in groups if len(group.cells)]

    @torch.inference_mode()
    def remember(self, memory: Tiers, grids: Sequence[Group], lattice: tuple[int, int]) -> Tiers:
        """See `TokenMemory.remember`."""
        assert self.mid_frames is not None
        short = (*memory.short, *self._measured(memory.short, grids, lattice))
        leaving = max(0, len(short) - self.short_frames // self.frames_per_grid)
        mid = (*memory.mid, *self._selected(short[: leaving + 1], leaving, lattice))
        full = max(0, len(mid) - self.mid_frames // self.frames_per_grid)
        merged = consolidated([g for g in mid[:full] if len(g.cells)], lattice, self.served.hidden)
        memory = Tiers(short[leaving:], mid[full:], (*memory.long, *merged))
        return self._under_ceiling(memory) if self.form == "incremental" else memory

    def _measured(
        self, short: tuple[Fresh, ...], grids: Sequence[Group], lattice: tuple[int, int]
    ) -> list[Fresh]:
        """New grids with their distance to the one before, where that is of the same session."""
        before = short[-1].group if short and short[-1].group.session == grids[0].session else None
        chain = [before, *grids] if before else list(grids)
        alike = likeness(self._lattices(chain[1:], lattice), self._lattices(chain[:-1], lattice))
        changes: list[Tensor | None] = [distance.clone() for distance in 1 - alike]
        return [
            Fresh(grid, change)
            for grid, change in zip(grids, changes if before else [None, *changes], strict=True)
        ]

    def _selected(
        self, chain: tuple[Fresh, ...], leaving: int, lattice: tuple[int, int]
    ) -> list[Group]:
        """TAS of the first `leaving` grids of a chain; each is followed by its successor."""
        if not leaving:
            return []
        groups = [fresh.group for fresh in chain]
        alike = likeness(self._lattices(groups[:-1], lattice), self._lattices(groups[1:], lattice))
        kept = []
        for i, fresh in enumerate(chain[:leaving]):
            follows = groups[i].session == groups[i + 1].session
            keep = selected(
                fresh.change, alike[i] if follows else None, self.direct_drop, self.pair_distance
            )
            kept.append(groups[i] if keep is None else _only(groups[i], keep))
        count("tokens_pruned", sum(len(g.cells) for g in groups[:leaving]) - _size(kept))
        return kept

    def _lattices(self, groups: Sequence[Group], lattice: tuple[int, int]) -> Tensor:
        """Unit vectors `[groups, rows, cols, hidden]` of whole grids."""
        hidden = self.served.hidden
        if not groups:
            return torch.empty(0, *lattice, hidden, device=self.served.device)
        stacked = torch.stack([group.tokens[:, :hidden].float() for group in groups])
        return F.normalize(stacked, dim=-1, eps=1e-8).view(-1, *lattice, hidden)

    def _under_ceiling(self, memory: Tiers) -> Tiers:
        """Drop whole grids until the ceiling holds: of the long tier evenly, then the oldest."""
        whole = _size([fresh.group for fresh in memory.short])
        over = whole + _size(memory.mid) + _size(memory.long) - self.max_tokens
        if over <= 0:
            return memory
        rest = memory.mid or tuple(fresh.group for fresh in memory.short)
        long = thinned_evenly(memory.long, over, rest[0].number)
        over -= _size(memory.long) - _size(long)
        mid = memory.mid
        while over > 0:
            over -= len(mid[0].cells)
            mid = mid[1:]
        count("tokens_dropped", _size(memory.long) + _size(memory.mid) - _size(long) - _size(mid))
        return replace(memory, mid=mid, long=long)


def likeness(these: Tensor, those: Tensor) -> Tensor:
    """For each cell, the best cosine with the 3 x 3 cells around it in another grid.

    Unit vectors `[grids, rows, cols, d]` each; returns `[grids, rows * cols]`.
    """
    grids, rows, cols, _ = these.shape
    padded = F.pad(those, (0, 0, 1, 1, 1, 1))
    inside = F.pad(torch.ones(rows, cols, device=these.device), (1, 1, 1, 1)).bool()
    best = torch.full((grids, rows, cols), float("-inf"), device=these.device)
    for row, col in _AROUND:
        cosine = (these * padded[:, row : row + rows, col : col + cols]).sum(-1)
        there = inside[row : row + rows, col : col + cols]
        best = torch.maximum(best, cosine.masked_fill(~there, float("-inf")))
    return best.flatten(1)


def selected(
    change: Tensor | None, alike: Tensor | None, direct_drop: float, fixed: float | None = None
) -> Tensor | None:
    """TAS: which tokens of a grid stay, `[n]` bool; None (all) where it has no neighbour in time.

    Args:
        change: Distance to the grid before, `[n]`, or None.
        alike: Best cosine with the grid after, `[n]`, or None.
        direct_drop: Tokens more alike than this to the grid after go.
        fixed: Distance from which a token stays; None for Otsu's threshold of each neighbour.
    """
    keep = None
    for distance in (change, None if alike is None else 1 - alike):
        if distance is not None:
            threshold = fixed if fixed is not None else _otsu_or_median(distance)
            stays = distance >= threshold
            keep = stays if keep is None else keep | stays
    if keep is not None and alike is not None:
        keep = keep & (alike <= direct_drop)
    return keep


def _otsu_or_median(distance: Tensor) -> Tensor:
    within = distance.clamp(0.0, 2.0)
    flat = within.var() <= 1e-12 if len(within) > 1 else torch.tensor(True)
    threshold = otsu(within, torch.zeros_like(within, dtype=torch.long), 1)[0].to(within.dtype)
    return torch.where(flat.to(within.device) | threshold.isnan(), within.median(), threshold)


def otsu(values: Tensor, owner: Tensor, owners: int) -> Tensor:
    """Otsu's threshold of each owner's values in [0, 2]: centre of one of 128 bins.

    Args:
        values: `[m]`, already inside [0, 2].
        owner: Whose each value is, `[m]`.
        owners: How many there are.

    Returns:
        `[owners]` float64; NaN where no split separates anything.
    """
    bins = (values.double() * (BINS / 2)).long().clamp(max=BINS - 1)
    counts = torch.bincount(owner * BINS + bins, minlength=owners * BINS).view(owners, BINS)
    share = counts.double() / counts.sum(1, keepdim=True).clamp(min=1)
    centres = (torch.arange(BINS, device=values.device).double() + 0.5) * (2 / BINS)
    below, mass = share.cumsum(1), (share * centres).cumsum(1)
    spread = (mass[:, -1:] * below - mass) ** 2 / (below * (1 - below)).clamp(min=1e-12)
    one_sided = (below < 1e-6) | (1 - below < 1e-6)
    best, where = spread.masked_fill(one_sided, -1.0).max(1)
    return centres[where].masked_fill(best <= 0, float("nan"))


def consolidated(
    groups: Sequence[Group], lattice: tuple[int, int], hidden: int
) -> tuple[Group, ...]:
    """SDC: in each grid, merge neighbouring tokens that are alike into the one nearest their mean.

    Neighbours (of 8) whose distance is at most the grid's Otsu threshold belong together; a grid
    without a threshold stays as it is.
    """
    if not groups:
        return ()
    tokens = torch.cat([group.tokens for group in groups])
    sizes = torch.tensor([len(group.cells) for group in groups], device=tokens.device)
    owner = torch.arange(len(groups), device=tokens.device).repeat_interleave(sizes)
    cells = torch.cat([group.cells for group in groups]).long()
    start, end = _neighbours(owner, cells, len(groups), lattice)
    unit = F.normalize(tokens[:, :hidden].float(), dim=-1, eps=1e-8)
    apart = (1 - (unit[start] * unit[end]).sum(-1)).clamp(0.0, 2.0)
    threshold = otsu(apart, owner[start], len(groups)).to(apart.dtype)
    joined = apart <= threshold[owner[start]]  # false against NaN
    anchors, means, keep = _merged(tokens.float(), start[joined], end[joined])
    tokens = tokens.index_copy(0, anchors, means.to(tokens.dtype))
    count("tokens_merged", len(keep) - int(keep.sum()))
    kept = keep.split(sizes.tolist())
    parts = tokens.split(sizes.tolist())
    return tuple(
        replace(group, tokens=part[stays], cells=group.cells[stays])
        for group, part, stays in zip(groups, parts, kept, strict=True)
    )


def _neighbours(
    owner: Tensor, cells: Tensor, grids: int, lattice: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Pairs of tokens of one grid in touching cells, each pair once."""
    rows, cols = lattice
    row, col = cells // cols + 1, cells % cols + 1
    numbers = torch.full((grids, rows + 2, cols + 2), -1, device=cells.device)
    numbers[owner, row, col] = torch.arange(len(cells), device=cells.device)
    starts, ends = [], []
    for down, right in _AFTER:
        other = numbers[owner, row + down, col + right]
        there = other >= 0
        starts.append(there.nonzero()[:, 0])
        ends.append(other[there])
    return torch.cat(starts), torch.cat(ends)


def _merged(tokens: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Clusters of more than one token: their anchors, their means, and which tokens stay.

    The anchor is the member nearest to the mean, the first of equally near ones.
    """
    n = len(tokens)
    edges = (np.ones(len(start), np.bool_), (start.cpu().numpy(), end.cpu().numpy()))
    _, labels = connected_components(coo_array(edges, shape=(n, n)), directed=False)
    cluster = torch.from_numpy(labels.astype(np.int64)).to(tokens.device)
    order = torch.argsort(cluster, stable=True)
    sizes = torch.bincount(cluster)
    # Summed in sorted runs, not by scattered adds: the same on every pass, also on a GPU.
    means = torch.segment_reduce(tokens[order], "mean", lengths=sizes, axis=0)
    away = (tokens - means[cluster]).pow(2).sum(-1)
    nearest_away = torch.full_like(means[:, 0], float("inf"))
    nearest_away.scatter_reduce_(0, cluster, away, "amin")
    candidates = (away == nearest_away[cluster]).nonzero()[:, 0]
    anchor = torch.full_like(sizes, n)
    anchor.scatter_reduce_(0, cluster[candidates], candidates, "amin")
    several = sizes > 1
    keep = ~several[cluster]
    keep[anchor[several]] = True
    return anchor[several], means[several], keep


def thinned_evenly(groups: Sequence[Group], excess: int, following: int) -> tuple[Group, ...]:
    """Drop whole grids until `excess` tokens are gone or none is left.

    Always the one whose neighbours lie closest together in the stream, the older of equals, so that
    what stays reaches back to the start at an even pace. `following` numbers the grid after these.
    """
    left = list(groups)
    while excess > 0 and left:
        numbers = np.array([-1, *(group.number for group in left), following])
        excess -= len(left.pop(int(np.argmin(numbers[2:] - numbers[:-2]))).cells)
    return tuple(left)


def _only(group: Group, keep: Tensor) -> Group:
    return replace(group, tokens=group.tokens[keep], cells=group.cells[keep])


def _size(groups: Sequence[Group]) -> int:
    return sum(len(group.cells) for group in groups)
