"""flash_vstream: k-means over what was seen, and the sharpest views of the largest clusters.

Flash-VStream (arXiv 2506.23825, ICCV 2025), on vision features before the merger. Every grid is
encoded twice, at full size and from pixels pooled 2 x 2. Context memory: pooled features, clustered
by weighted k-means once there are more than `temporal_length`, centres in time order. Detail
memory: for each of the heaviest centres, the full features of the pooled grid nearest to it. A
question reads detail, then context, with positions that tell each grid's time (AM-RoPE).

`form: incremental` is the release's real-time path: each clip is clustered together with the old
centres and their weights. The release keeps the features of everything (`bank_frames: 0`); here a
full bank lets grids go, evenly over time. `form: thinned` is the release's evaluation: the whole
prefix thinned to `max_frames` and clustered once, at the question.

Deviations from the release: the drawn seeds are part of the state; a cluster that ends without a
member is left out (the release divides by zero); fewer distinct grids than clusters are clusters
with their own weights and times (`parity: true`: padded in front with the first grids, all weights
reset to one); where `time_mode` is `weighted`, a context grid lies at the weighted mean second of
its members (the release computes that mean and then takes the mean index in its buffer, `official`)
and text follows the largest position; a small frame is not scaled up; the clip of 120 frames with
which the release's demonstration begins is not special. On models with DeepStack, levels are
averaged with their grid and similarity is that of the tower's last output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones import frames as preparing
from bench_lib.backbones.prompt import Prompt
from bench_lib.errors import BenchError, nearest
from bench_lib.measure import count, counting
from bench_lib.memories.parts import kmeans, pace
from bench_lib.memories.token_memory import Place, Thinnable, TokenState, marker
from bench_lib.memories.tuned import Tuned
from bench_lib.state.walk import part
from bench_lib.video.stream import Size

FORMS = ("incremental", "thinned")
TIMES = ("official", "weighted")


@dataclass(frozen=True)
class View:
    """A grid in the bank.

    Attributes:
        number: Count of grids in the whole stream before it.
        session: Position of its session in the stream.
        at_s: Seconds of footage seen before it, over all sessions.
        full: Features `[levels, cells, merge**2, channels]`.
        pooled: Features of the pooled pixels, with a quarter of the cells.
    """

    number: int
    session: int
    at_s: float
    full: Tensor = part("features")
    pooled: Tensor = part("features")


@dataclass(frozen=True)
class Context:
    """Centres in time order: features, weights in grids, times.

    `features` `[k, levels, cells, merge**2, channels]`, `weights` `[k]` float32, `at_s` `[k]`
    seconds of footage and `index` `[k]` places in the buffer that was clustered last, float64.
    """

    features: Tensor = part("features")
    weights: Tensor = part("index")
    at_s: Tensor = part("index")
    index: Tensor = part("index")


@dataclass(frozen=True)
class Detail:
    """Full features `[n, levels, cells, merge**2, channels]` of chosen grids, and which they are.

    `numbers` and `at_s` are those of `View`.
    """

    features: Tensor = part("features")
    numbers: tuple[int, ...] = ()
    at_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Flash:
    """Flash-VStream's memory. `merged` `[n, width]` are the embeddings of detail, then context.

    `seed` and `draws` make the seeds of the next clustering; `past_s` is the footage of completed
    sessions.
    """

    seed: int = 0
    draws: int = 0
    past_s: float = 0.0
    bank: tuple[View, ...] = ()
    context: Context | None = None
    detail: Detail | None = None
    merged: Tensor | None = part("embeddings", default=None)


@dataclass(kw_only=True)
class FlashVstream(Tuned, Thinnable):
    """Flash-VStream.

    Attributes:
        form: See the module.
        weights: See `Tuned`.
        temporal_length: Frames of context memory, two a centre. 120: `flash_memory_constants.py`.
        spatial_length: Frames of detail memory. 60: the same.
        iterations: Most steps of k-means. 10: `weighted_kmeans_ordered_feature`.
        tolerance: Sum of the centres' movements that ends it. 1e-4: the same.
        time_mode: See the module. `official`: the release.
        bank_frames: Frames whose features `incremental` keeps; 0 keeps all, as the release's
            real-time path. 240: the release's evaluation limit.
        max_frames: Frames that `thinned` looks at. 240: `scripts/eval.sh`.
        max_pixels: 200,704 (4 x 224 x 224): `scripts/eval.sh`.
        parity: With the release's padding of few distinct grids.
        fps: 1: frames of the evaluation; the real-time demonstration plays 0.5.
        clip_frames: Frames clustered at once by `incremental`. The demonstration takes single
            frames, each a grid of its own.
        session_marker: Write the number and clock of the sessions the bank reaches before the
            memory. The release has none.
    """

    checkpoint: ClassVar[str] = "zhang9302002/Flash-VStream-Qwen-7b"
    persistent: ClassVar[bool] = True

    form: Literal["incremental", "thinned"] = "incremental"
    temporal_length: int = 120
    spatial_length: int = 60
    iterations: int = 10
    tolerance: float = 1e-4
    time_mode: Literal["official", "weighted"] = "official"
    bank_frames: int = 240
    max_frames: int = 240
    max_pixels: int | None = 200_704
    parity: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("form", FORMS), ("time_mode", TIMES)):
            value = getattr(self, name)
            if value not in known:
                raise BenchError(f"flash_vstream: {name} is {value!r}; {nearest(value, known)}")
        for name in ("temporal_length", "spatial_length", "bank_frames", "max_frames"):
            value, least = getattr(self, name), 0 if name == "bank_frames" else 2
            if value % 2 or value < least:
                raise BenchError(
                    f"flash_vstream: {name} is {value}; it counts pairs: give 2, 4, .."
                )

    def attach(self, model: Any) -> Self:
        """See `Tuned.attach`; raises BenchError for a tower that sees one size alone."""
        super().attach(model)
        if model.one_size:
            raise BenchError(
                f"flash_vstream looks at each frame at two sizes, and the tower of {model.id} sees "
                "one: give a model of the Qwen families"
            )
        return self

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """See `Method.causal`; a thinned prefix is clustered as one (StreamArena, Eq. 13)."""
        return self.input_class != "thinned"

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether the bank has a ceiling."""
        return self.form == "incremental" and self.bank_frames > 0

    # The contract ---------------------------------------------------------------------------------

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`; sides divide into an even number of cells."""
        how = self.served.preparation
        limit = min(how.max_pixels, self.max_pixels or how.max_pixels)
        return preparing.fit(native, 2 * how.factor, min(how.min_pixels, limit), limit)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = TokenState(Flash(seed=seed))

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`."""
        merged = self.state.memory.merged
        rows, cols = self.state.lattice
        each = rows * cols + rows // 2 * (cols // 2)  # seen at both sizes
        return 0 if merged is None else len(merged), self.state.grids * each

    # The memory -----------------------------------------------------------------------------------

    def blank(self) -> Flash:
        """See `TokenMemory.blank`."""
        return Flash()

    def recall(self, memory: Flash) -> Sequence[View]:
        """See `TokenMemory.recall`: the grids of the bank."""
        return memory.bank

    def perceive(self, pictures: list[NDArray[np.uint8]], places: Sequence[Place]) -> list[View]:
        """See `TokenMemory.perceive`."""
        full = self.served.vision(pictures)
        # A frame's second, smaller pass is not a second frame.
        with counting(alone=True):
            pooled = self.served.vision([halved(picture) for picture in pictures])
        count("frames_pooled", len(pictures))
        return [
            View(at.number, at.session, at.start_s, full[i].clone(), pooled[i].clone())
            for i, at in enumerate(places)
        ]

    @torch.inference_mode()
    def remember(self, memory: Flash, grids: Sequence[View], lattice: tuple[int, int]) -> Flash:
        """See `TokenMemory.remember`."""
        before = memory.bank[-1] if memory.bank else None
        if before and before.session != grids[0].session:
            # Footage goes on one grid after the newest one, whatever the clock did in between.
            memory = replace(memory, past_s=before.at_s + 2 / self.fps)
        new = [replace(view, at_s=memory.past_s + view.at_s) for view in grids]
        bank = (*memory.bank, *new)
        if self.defers:
            return replace(memory, bank=bank)
        if self.bank_frames:
            keep = pace.evenly([view.number for view in bank], self.bank_frames // 2)
            count("grids_dropped", len(bank) - len(keep))
            bank = tuple(bank[i] for i in keep)
        return self._gathered(replace(memory, bank=bank), new)

    def _gathered(self, memory: Flash, new: Sequence[View]) -> Flash:
        """The memory with new grids in its context, and the detail that belongs to it."""
        context, draws = self._context(memory, new)
        detail = self._detail(memory.bank, context)
        merged = [self.served.project(m.features).flatten(0, 1) for m in (detail, context)]
        return replace(
            memory, draws=draws, context=context, detail=detail, merged=torch.cat(merged)
        )

    def _context(self, memory: Flash, new: Sequence[View]) -> tuple[Context, int]:
        place = new[0].pooled.device
        times = torch.tensor([view.at_s for view in new], dtype=torch.float64, device=place)
        pooled = torch.stack([view.pooled for view in new])
        buffer = Context(pooled, torch.ones(len(new), device=place), times, times)
        if memory.context is not None:
            buffer = joined(memory.context, buffer)
        index = torch.arange(len(buffer.weights), dtype=torch.float64, device=place)
        buffer = replace(buffer, index=index)
        limit = self.temporal_length // 2
        if len(buffer.weights) <= limit:
            return buffer, memory.draws
        random = np.random.default_rng([memory.seed, memory.draws])
        points = buffer.features[:, 0].flatten(1).float()
        labels = kmeans.clustered(
            points, buffer.weights, limit, random, self.iterations, self.tolerance
        )
        found = centred(buffer, labels)
        count("grids_merged", len(buffer.weights) - len(found.weights))
        if self.parity and len(found.weights) < limit:
            found = padded(buffer, found, limit)
        return found, memory.draws + 1

    def _detail(self, bank: Sequence[View], context: Context) -> Detail:
        limit = self.spatial_length // 2
        if len(bank) <= limit:
            picked = list(range(len(bank)))
        else:
            heavy = torch.argsort(context.weights, descending=True, stable=True)[:limit]
            centres = context.features[heavy, 0].flatten(1).float()
            pooled = torch.stack([view.pooled[0].flatten() for view in bank]).float()
            picked = kmeans.nearest(centres, pooled).tolist()
        return Detail(
            torch.stack([bank[i].full for i in picked]),
            tuple(bank[i].number for i in picked),
            tuple(bank[i].at_s for i in picked),
        )

    # The prompt -----------------------------------------------------------------------------------

    def show(self, prompt: Prompt, state: TokenState) -> None:
        """See `TokenMemory.show`."""
        memory: Flash = state.memory
        if not memory.bank:
            return
        if memory.merged is None:
            with torch.inference_mode():
                memory = self._gathered(memory, memory.bank)
        assert memory.context is not None
        assert memory.detail is not None
        assert memory.merged is not None
        for seen in state.sessions:
            if self.session_marker and seen.position in self.reached(memory):
                prompt.text(marker(seen))
        rows, cols = state.lattice
        if self.time_mode == "official":
            detail_t, context_t = memory.detail.numbers, memory.context.index.round().tolist()
        else:
            # The unit of time of these positions is the grid, as the weights were trained.
            per_s = self.fps / 2
            detail_t = tuple(round(at_s * per_s) for at_s in memory.detail.at_s)
            context_t = (memory.context.at_s * per_s).round().tolist()
        where = am_rope(detail_t, context_t, (rows, cols))
        span = int(where.max()) + 1
        if self.time_mode == "official":
            span = len(detail_t) * rows * cols + max(len(context_t), rows // 2, cols // 2)
        prompt.control("<|vision_start|>")
        prompt.placed(memory.merged, where, span)
        prompt.control("<|vision_end|>")


def halved(picture: NDArray[np.uint8]) -> NDArray[Any]:
    """A frame `[height, width, 3]` at half size, each pixel the exact mean of 2 x 2, float32."""
    height, width, _ = picture.shape
    blocks = picture.reshape(height // 2, 2, width // 2, 2, 3)
    return blocks.mean(axis=(1, 3), dtype=np.float32)


def joined(first: Context, second: Context) -> Context:
    """One buffer after another."""
    pairs = zip(vars(first).items(), vars(second).values(), strict=True)
    return Context(**{name: torch.cat((one, other)) for (name, one), other in pairs})


def centred(buffer: Context, labels: Tensor) -> Context:
    """Weighted means of a buffer's clusters, sorted by their members' mean place in the buffer."""
    clusters = int(labels.max()) + 1
    shape = buffer.features.shape
    points = buffer.features.flatten(1).float()
    features, weights = kmeans.means(points, buffer.weights, labels, clusters)
    times, _ = kmeans.means(buffer.at_s[:, None], buffer.weights.double(), labels, clusters)
    index, _ = kmeans.means(buffer.index[:, None], torch.ones_like(buffer.index), labels, clusters)
    order = torch.argsort(index[:, 0], stable=True)
    return Context(
        features[order].to(buffer.features.dtype).view(-1, *shape[1:]),
        weights[order],
        times[order, 0].clone(),
        index[order, 0].clone(),
    )


def padded(buffer: Context, found: Context, length: int) -> Context:
    """The release's answer to few distinct grids: the first ones again in front, weights one."""
    lack = length - len(found.weights)
    front = Context(*(value[:lack] for value in vars(buffer).values()))
    both = joined(front, found)
    return replace(both, weights=torch.ones_like(both.weights))


def am_rope(
    detail_t: Sequence[int], context_t: Sequence[float], lattice: tuple[int, int]
) -> Tensor:
    """AM-RoPE: positions `[3, n]` of detail, then context, counted from the block's start.

    Detail: t, row, column on `lattice`. Context: the same on its half, all three moved on by the
    number of detail tokens.
    """
    rows, cols = lattice
    detail = _laid(torch.tensor(detail_t), rows, cols)
    context = _laid(torch.tensor(context_t), rows // 2, cols // 2)
    return torch.cat((detail, context + detail.shape[1]), dim=1)


def _laid(times: Tensor, rows: int, cols: int) -> Tensor:
    cells = torch.arange(rows * cols).repeat(len(times))
    return torch.stack((times.long().repeat_interleave(rows * cols), cells // cols, cells % cols))
