"""What a worker is handed: an immutable view of the present and the memory at one instant.

The view is cut by the runtime, never by the model: no frame, speech or memory item later than
`t_s`, by when it happened or by when it was recorded, is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bench_lib.measure import count
from bench_lib.memories.frame_window import joined
from bench_lib.messages.chat import ChatReply, Contract, Frames, Message, Part, Text
from bench_lib.messages.fence import fenced
from bench_lib.prompts import PromptSet
from bench_lib.search.tools import Provider
from bench_lib.speech.windows import Heard
from bench_lib.streammind.bank import Bank, Turn, dialogue
from bench_lib.streammind.frame_buffer import FrameGone
from bench_lib.streammind.models import Models, Path
from bench_lib.streammind.settings import Settings
from bench_lib.streammind.timeline import Timeline
from bench_lib.video.picture import Picture


@dataclass(frozen=True)
class Scene:
    """See the module. `recent` are the ring's frames, `kept` the frame store's by id."""

    t_s: float
    settings: Settings
    models: Models
    texts: PromptSet
    bank: Bank
    recent: tuple[Picture, ...]
    kept: Mapping[str, Picture]
    heard: tuple[Heard, ...]
    path: Path
    provider: Provider | None = None

    def on(self, path: Path) -> Scene:
        """The same for work on another path."""
        return replace(self, path=path)

    @cached_property
    def timeline(self) -> Timeline:
        """The clocks of the sessions."""
        return self.bank.timeline

    def latest(self, n: int) -> tuple[Picture, ...]:
        """The newest frames of the ring."""
        return self.recent[-n:] if n > 0 else ()

    def frame(self, frame_id: str) -> Picture:
        """A frame of the ring or the store; FrameGone where neither has it (any more)."""
        for picture in self.recent:
            if picture.id == frame_id:
                return picture
        kept = self.kept.get(frame_id)
        if kept is None or kept.t_s > self.t_s + 1e-6:
            raise FrameGone(
                f"frame {frame_id} left the ring of {self.settings.ring_s:g} s and is not among "
                "the key frames"
            )
        return kept

    def frames(self, ids: Iterable[str]) -> list[Picture]:
        """The frames of those ids that still exist, in order, each once."""
        found = []
        for frame_id in dict.fromkeys(ids):
            try:
                found.append(self.frame(frame_id))
            except FrameGone:
                count("frames_gone")
        return found

    def labelled(self, frames: Iterable[Picture]) -> list[Part]:
        """Frames with id and clock, so that replies can cite them."""
        parts: list[Part] = []
        for picture in frames:
            parts.append(Text(f"[{picture.id} {self.timeline.label(picture.t_s)}]"))
            parts.append(Frames((picture,)))
        return parts

    def speech(self, window_s: float) -> str:
        """What was heard in the last seconds, as data; empty where nothing was."""
        lines = [
            f"{self.timeline.span(h.start_s, h.end_s)}: {h.text}"
            for h in self.heard
            if h.end_s >= self.t_s - window_s - 1e-6
        ]
        return fenced("speech", "\n".join(lines)) if lines else ""

    def dialogue(self, most: int | None = None) -> str:
        """The newest turns; empty where there are none."""
        turns = dialogue(self.bank.turns, self.settings.log_characters, most)
        lines = [_turn(self.timeline, turn) for turn in turns]
        return "The dialogue so far:\n" + "\n".join(lines) if lines else ""

    async def ask(
        self, worker: str, contract: Contract, parts: Sequence[Part | str], **fields: str
    ) -> ChatReply:
        """Ask a worker's model with the prompt of its name; raises ChatError."""
        body = [Text(p) if isinstance(p, str) else p for p in parts if p]
        messages = [
            Message("system", (Text(self.texts.render(worker, **fields)),)),
            Message("user", tuple(joined(body))),
        ]
        return await self.models.ask(worker, messages, contract, self.path, self.t_s)


def _turn(timeline: Timeline, turn: Turn) -> str:
    return f"[{timeline.label(turn.t_s)}] {turn.role}: {turn.text}"


def said(answer: Any) -> str:
    """An answer as the text that goes out: an object as JSON."""
    import json

    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def only_shown(ids: Iterable[str], shown: Iterable[str]) -> list[str]:
    """Ids that were shown, each once; others are invented and counted."""
    known = set(shown)
    wanted = list(dict.fromkeys(ids))
    count("frame_ids_rejected", sum(key not in known for key in wanted))
    return [key for key in wanted if key in known]
