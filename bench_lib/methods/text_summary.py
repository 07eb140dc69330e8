"""text_summary: at each session's end the model writes a summary; later it has only its summaries.

Memory protocol `text_summary` of APM-Bench (protocol, section 11): the writer sees the complete
session and the wearer's interactions in it and knows no future question; a question sees the
summaries of all completed sessions and the current causal prefix. Summaries are not limited in
length, only in tokens (2,048, open point 18). Registrations reach the writer where they are
delivered in the stream; then only what the summary keeps of them survives (open point 6). Our own
prompt words; `prompts` loads others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_lib.exchange import Note
from bench_lib.memories.event_memory import Event, EventMemory, interval
from bench_lib.memories.frame_window import Held, joined, thin
from bench_lib.messages.chat import Message, Text


@dataclass(kw_only=True)
class TextSummary(EventMemory):
    """One text a session. Parameters are those of `EventMemory`."""

    notes_touch_state = True

    def note(self, note: Note) -> None:
        """Keep what the wearer said, for this session's questions and for the writer."""
        held = self.state.current
        held = replace(held, notes=(*held.notes, note))
        self.state = replace(self.state, current=held)

    def write(self, held: Held) -> Sequence[Event]:
        """The summary of a session: one call, one re-ask."""
        end_s = held.frames[-1].t_s + 1 / self.fps if held.frames else 0.0
        event = Event(held.info, 0.0, end_s, "")
        request = self.texts.render("request", session=held.info.id, interval=interval(event))
        shown = self.stretch(held, thin(len(held.frames), self.max_frames), ())
        messages = [
            Message("system", (Text(self.texts.render("system")),)),
            Message("user", tuple(joined([*shown, Text(request)]))),
        ]
        return [replace(event, text=self.tell(messages))]
