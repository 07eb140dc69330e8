"""timechat_online: a token like the one before it at its place is not kept.

TimeChat-Online (arXiv 2504.17343, ACM MM 2025), differential token dropping: on token embeddings
before the decoder, each token is compared with the one of the same cell in the grid before, dropped
or not, and goes where their cosine is above a threshold. What stays keeps its position. It is a
filter before a decoder rather than a memory: without a ceiling it grows with the stream.

The release has weights tuned with it (`wyccccc/TimeChatOnline-7B`, a Qwen2.5-VL checkpoint) and
reports gains for the stock model without training, so any model serves. Deviations: a session's
first grid has no predecessor and stays whole (the release knows one video); cosines are float32; a
ceiling lets whole grids go, evenly over time (the release has none); small frames are not scaled up
to the release's fixed 448 x 448 pixels; the frame rate does not depend on the length of the video
(the StreamingBench script lowers it); the variants by pixel difference and by a fixed share, which
no published score uses, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.errors import BenchError, nearest
from bench_lib.measure import count
from bench_lib.memories.token_memory import Group, Thinnable
from bench_lib.methods.fluxmem import thinned_evenly
from bench_lib.state.walk import part

FORMS = ("incremental", "thinned")


@dataclass(frozen=True)
class Kept:
    """What is left of the grids, in time order; those of which nothing is left are not here.

    `newest` `[cells, hidden]` is the newest grid as it was, of session `session`.
    """

    groups: tuple[Group, ...] = ()
    newest: Tensor | None = part("embeddings", default=None)
    session: int = -1


@dataclass(kw_only=True)
class TimechatOnline(Thinnable):
    """TimeChat-Online.

    Attributes:
        form: `incremental` filters as the stream goes. `thinned` filters the whole prefix thinned
            to `max_frames`, at the question (the release's evaluation).
        threshold: Cosine above which a token goes. 0.5: `DROP_THRESHOLD` of all scripts.
        max_tokens: Ceiling of `incremental`; 0 is none, as in the release.
        max_frames: Frames that `thinned` looks at. 1,016: the StreamingBench script (OVO-Bench 720,
            Video-MME 900).
        max_pixels: 200,704 (448 x 448): all scripts.
        fps: 1: the OVO-Bench script.
        clip_frames: Frames handed over at once; the memory does not depend on it.
        session_marker: Write a session's number and clock before its tokens. The release has none.
    """

    persistent: ClassVar[bool] = True

    form: Literal["incremental", "thinned"] = "incremental"
    threshold: float = 0.5
    max_tokens: int = 0
    max_frames: int = 1_016
    max_pixels: int | None = 200_704

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise BenchError(f"timechat_online: form is {self.form!r}; {nearest(self.form, FORMS)}")
        if not -1 <= self.threshold <= 1:
            raise BenchError(
                f"timechat_online: threshold is {self.threshold}; a cosine lies between -1 and 1"
            )
        for name, least in (("max_tokens", 0), ("max_frames", 2)):
            if getattr(self, name) < least:
                raise BenchError(f"timechat_online: {name} is {getattr(self, name)}")

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether there is a ceiling."""
        return self.form == "incremental" and self.max_tokens > 0

    def blank(self) -> Kept:
        """See `TokenMemory.blank`."""
        return Kept()

    def recall(self, memory: Kept) -> Sequence[Group]:
        """See `TokenMemory.recall`."""
        return memory.groups

    @torch.inference_mode()
    def remember(self, memory: Kept, grids: Sequence[Group], lattice: tuple[int, int]) -> Kept:
        """See `TokenMemory.remember`."""
        hidden, session = self.served.hidden, grids[0].session
        before = memory.newest if memory.session == session else None
        groups = list(memory.groups)
        for grid in grids:
            now = grid.tokens[:, :hidden]
            if before is not None:
                stays = differs(before, now, self.threshold)
                count("tokens_dropped", len(stays) - int(stays.sum()))
                grid = replace(grid, tokens=grid.tokens[stays], cells=grid.cells[stays])
            if len(grid.cells):
                groups.append(grid)
            before = now
        assert before is not None
        return Kept(self._under_ceiling(tuple(groups)), before.clone(), session)

    def _under_ceiling(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        over = sum(len(group.cells) for group in groups) - self.max_tokens
        if self.form == "thinned" or not self.max_tokens or over <= 0:
            return groups
        kept = thinned_evenly(groups[:-1], over, groups[-1].number)
        count("grids_dropped", len(groups) - 1 - len(kept))
        return (*kept, groups[-1])


def differs(before: Tensor, now: Tensor, threshold: float) -> Tensor:
    """Which tokens `[n, d]` of a grid stay, `[n]` bool: those not above `threshold` to the last."""
    return F.cosine_similarity(before.float(), now.float(), dim=1) <= threshold
