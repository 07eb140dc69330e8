"""aura: the newest thirty seconds as turns of a dialogue, most of them answered with silence.

AURA (release aurateam2026/AURA fd1c7cc, its OVO-Bench and OmniMMI adapters) as run by StreamArena
(appendix C.2): a one-second clip of two frames is a user turn, answered by a silence token; the
last clip carries captions and question. An instruction to watch is a text-only first turn with a
fixed acknowledgement, since it would else fall out of the window; while it is active the model is
asked once a second. Greedy, 1,024 tokens. Serve the release (`aurateam/AURA`, a Qwen3-VL) by vLLM.

Deviations: the system prompt and the acknowledgement are our own; clips are sent as the endpoint's
`video` setting says, two frames each without the release's patch of the video processor; the
dialogue so far is text in the last turn. No tools: the release has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.memories.watching import Watch, Watching
from bench_lib.messages.chat import Contract, Frames, Message, Part, Text
from bench_lib.messages.contract import probe
from bench_lib.messages.turn import as_reply, ask
from bench_lib.video.stream import Frame

SILENT = "<|silent|>"
LOOK = Contract("aura")


@dataclass(kw_only=True)
class Aura(Watching):
    """See the module; the other parameters are those of `Watching`.

    Args:
        clips: One-second clips that are shown. 30: release and paper.
        look_tokens: Token limit of a look. 1,024: paper.
        fps: 2: two frames a clip; the release sends 1 fps, of which its processor needs a patch.
        max_pixels: 602,112: the release's `longest_edge`.
        as_video: Send a clip as a video, as the release does.
        speech: `captions`: paper.
    """

    # A decoder that reads clip after clip, each with the turn that followed it (Eq. 14).
    causal: ClassVar[bool] = True
    checkpoint: ClassVar[str] = "aurateam/AURA"
    prompt_base: ClassVar[str] = "aura"

    clips: int = 30
    look_tokens: int = 1024
    fps: float = 2.0
    clip_frames: int = 2
    max_pixels: int = 602_112
    as_video: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.clips <= self.window_s:
            raise BenchError(
                f"aura: {self.clips} clips of a second do not fit window_s={self.window_s:g}"
            )

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; silence is an empty reply. Raises ChatError, Refused."""
        turns = [*self._turns(query.cutoff_s), Message("user", self._last(query.cutoff_s, query))]
        messages = [Message("system", (Text(self.system(query)),)), *turns]
        reply = as_reply(ask(self.served, messages, probe(query), generation))
        return replace(reply, text=said(reply.text))

    def look(self, watch: Watch, t_s: float) -> tuple[Watch, str]:
        """See `Watching.look`."""
        told = Message("user", (Text(watch.text),))
        agreed = Message("assistant", (Text(self.texts.render("told")),))
        last = Message("user", self._last(t_s))
        turns = [told, agreed, *self._turns(t_s), last]
        messages = [Message("system", (Text(self.system()),)), *turns]
        generation = Generation(max_new_tokens=self.look_tokens, seed=self.state.seed)
        reply = ask(self.served, messages, LOOK, generation)
        return watch, "" if reply.stop == "refused" else said(reply.text)

    def _turns(self, t_s: float) -> list[Message]:
        """All clips but the last, each with silence."""
        turns: list[Message] = []
        for clip in self.seconds(t_s, self.clips)[:-1]:
            if clip:
                silence = Message("assistant", (Text(SILENT),))
                turns += [Message("user", self._clip(clip)), silence]
        return turns

    def _last(self, t_s: float, query: Query | None = None) -> tuple[Part, ...]:
        """The last clip, with what was said so far and, where one is asked, the question."""
        clips = self.seconds(t_s, self.clips)
        text = self.request(query) if query else "\n".join(self.spoken(t_s))
        parts = self._clip(clips[-1]) if clips else ()
        return (*parts, Text(text)) if text or not parts else parts

    def _clip(self, frames: Sequence[Frame]) -> tuple[Part, ...]:
        if not frames:
            return ()
        size = self.state.current.info.frame_size
        # A video needs two frames; the first instant of a stream is a picture.
        video = self.as_video and len(frames) > 1
        return (Frames(tuple(frames), video=video, size=size),)


def said(reply: str) -> str:
    """What a reply says: nothing where it is empty or holds the marker for silence.

    A server that leaves out special tokens returns an empty text for the marker.
    """
    return "" if SILENT in reply else reply.strip()
