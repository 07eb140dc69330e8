"""offline_mllm: a turn-based model that is shown the whole prefix, thinned, at each question.

The offline baselines of StreamArena (appendix C.2, Eq. 15 and 16): `min(128, ceil(t))` frames,
evenly spread from 0 to the question, none of more pixels than 1280 x 720; what was said until then
as captions, or as the raw sound for models that hear; at most five rounds of searches. The paper
decodes with temperature 0.6, top-p 0.95 and up to 65,536 tokens (`params/`).

Deviations: an instant that is itself a second adds a frame to short prefixes (129 s on, nothing);
frames are those of the 1 fps grid nearest to even spacing; frames go as images, each after its
clock, with captions at their times between them; every question is offered the tools, since a
method does not know its task; prompts and the form of a call are our own. Earlier sessions, which
StreamArena does not have, are part of the prefix.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench_lib.exchange import Generation, Query, Reply
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts import tool_loop
from bench_lib.memories.parts.speech import Speech
from bench_lib.methods.raw_video import RawVideo


@dataclass(kw_only=True)
class OfflineMllm(RawVideo):
    """See the module; the other parameters are those of `RawVideo`.

    Args:
        max_frames: 128: Eq. 15.
        max_pixels: 921,600: 1280 x 720.
        as_video: Send runs of frames as videos; captions then stand after them.
        speech: Eq. 16: `captions`, or `sound` for models that hear; `none` leaves it out.
        search: Where searches go, as in `search_providers`; without it no tool is offered.
        tool_rounds: 5: appendix C.2.
    """

    max_frames: int = 128
    max_pixels: int = 1280 * 720
    as_video: bool = False
    speech: Speech = "captions"  # type: ignore[misc]
    search: str = ""
    tool_rounds: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        speaking.checked("offline_mllm", self.speech)

    @property
    def tools(self) -> bool:  # type: ignore[override]
        """See `Method.tools`: where there is something to search."""
        return bool(self.search)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`; raises BenchError for a search that cannot be."""
        super().reset(trajectory_id, seed)
        tool_loop.provider(self.search)

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; raises ChatError, Refused."""
        shown = [held.frames[i] for held, chosen in self.shown() for i in chosen]
        limits = tool_loop.Limits(rounds=self.tool_rounds)
        messages = self.messages(query)
        return tool_loop.answered(
            self.served, messages, query, generation, shown, self.search, limits
        )
