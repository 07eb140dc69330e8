"""minicpm_o: the newest thirty seconds of pictures and sound; listens or speaks each second.

MiniCPM-o 4.5 as run by StreamArena (appendix C.2, Eq. 17). A question is half duplex: one turn with
a frame and the second of sound that ends with it, over `[t - 30, t]`, with at most five rounds of
searches. A watch is full duplex: from the instruction on each second is a unit, after which the
model listens or speaks, in a sliding context of 30 units. Sound is raw; captions are not given.

This is the policy over any message model that hears, with a listen-or-speak contract of our own.
The official model's own tokens and speech run in its own environment: see the method `worker`.

Deviations: units reach the model as turns of a dialogue and are read anew each second; a unit whose
reply is unreadable twice listens (counted as `unreadable_units`); what is spoken comes as one text,
not in steps of 20 tokens; text of units that have left the context is dropped (the release keeps
500 tokens). The paper's model "remains silent" until the event; here nothing holds it back, since
that would tell it when the event is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts import tool_loop
from bench_lib.memories.parts.speech import Speech
from bench_lib.memories.watching import Watch, Watching
from bench_lib.messages.chat import Contract, ContractBroken, Frames, Message, Part, Sound, Text
from bench_lib.messages.turn import ask
from bench_lib.replies.clean import without_reasoning
from bench_lib.state.walk import part
from bench_lib.video.stream import Frame


@dataclass(frozen=True)
class Spoke:
    """What was said after the unit of an instant."""

    t_s: float
    text: str = part("text")


@dataclass(kw_only=True)
class MinicpmO(Watching):
    """See the module; the other parameters are those of `Watching`.

    Args:
        window_s: 30: Eq. 17.
        units: Units of the sliding context. 30: paper; the release's default is 24.
        unit_tokens: Token limit of a unit; our own, the release speaks 20 tokens a second.
        speech: `sound`: paper. `captions` is for models that take no sound.
        search: Where searches go, as in `search_providers`; without it no tool is offered.
        tool_rounds: 5: paper.
        fps: 1: a frame a second, paper.
        max_pixels: 200,704 (448 x 448): one slice (`max_slice_nums=1`).
    """

    # A decoder that reads unit after unit in the order of time (Eq. 14).
    causal: ClassVar[bool] = True
    checkpoint: ClassVar[str] = "openbmb/MiniCPM-o-4_5"
    prompt_base: ClassVar[str] = "duplex"

    units: int = 30
    unit_tokens: int = 128
    speech: Speech = "sound"  # type: ignore[misc]
    search: str = ""
    tool_rounds: int = 5
    fps: float = 1.0
    clip_frames: int = 1
    max_pixels: int = 448 * 448

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.units <= self.window_s * self.fps:
            raise BenchError(
                f"minicpm_o: {self.units} units do not fit window_s={self.window_s:g} at "
                f"{self.fps:g} a second"
            )

    @property
    def tools(self) -> bool:  # type: ignore[override]
        """See `Method.tools`: where there is something to search."""
        return bool(self.search)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`; raises BenchError for a search that cannot be."""
        super().reset(trajectory_id, seed)
        tool_loop.provider(self.search)

    # Half duplex ----------------------------------------------------------------------------------

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; raises ChatError, Refused."""
        first_s = query.cutoff_s - self.window_s
        frames = [f for f in self._frames(query.cutoff_s) if f.t_s > first_s]
        parts = [item for frame in frames for item in self._unit(frame)]
        messages = [
            Message("system", (Text(self.system(query)),)),
            Message("user", (*parts, Text(self.request(query)))),
        ]
        limits = tool_loop.Limits(rounds=self.tool_rounds)
        return tool_loop.answered(
            self.served, messages, query, generation, frames, self.search, limits
        )

    def _unit(self, frame: Frame) -> list[Part]:
        """A frame and the sound of the second that ends with it."""
        held = self.state.current
        parts: list[Part] = [Frames((frame,), size=held.info.frame_size)]
        if self.speech == "sound" and held.sound:
            heard = speaking.samples(held.sound, frame.t_s - 1 / self.fps, frame.t_s)
            parts.append(Sound(heard))
        return parts

    # Full duplex ----------------------------------------------------------------------------------

    def look(self, watch: Watch, t_s: float) -> tuple[Watch, str]:
        """See `Watching.look`: one unit."""
        frames = [f for f in self._frames(t_s) if f.t_s > watch.t_s][-self.units :]
        instruction = self.texts.render("watch", instruction=watch.text)
        form = self.texts.render("form")
        messages = [Message("system", (Text(f"{instruction}\n{form}"),))]
        spoke = {said.t_s: said.text for said in watch.memory}
        for frame in frames:
            messages.append(Message("user", tuple(self._heard_unit(frame))))
            if frame is not frames[-1]:
                messages.append(Message("assistant", (Text(action(spoke.get(frame.t_s, ""))),)))
        said = self._decided(messages)
        kept = tuple(s for s in watch.memory if frames and s.t_s >= frames[0].t_s)
        if said:
            kept = (*kept, Spoke(t_s, said))
        return replace(watch, memory=kept), said

    def _heard_unit(self, frame: Frame) -> list[Part]:
        """A unit with the captions that end in it, for models that take no sound."""
        lines = self.spoken(frame.t_s, frame.t_s - 1 / self.fps)
        return [*self._unit(frame), *(Text(line) for line in lines)]

    def _decided(self, messages: list[Message]) -> str:
        """What the model speaks after a unit; empty where it listens."""
        generation = Generation(max_new_tokens=self.unit_tokens, seed=self.state.seed)
        try:
            reply = ask(self.served, messages, DUPLEX, generation)
        except ContractBroken:
            count("unreadable_units")
            return ""
        return "" if reply.stop == "refused" else str(reply.value)


def action(text: str) -> str:
    """A unit's reply: to speak where there is something to say, else to listen."""
    return json.dumps({"action": "speak", "text": text} if text else {"action": "listen"})


def spoken_of(reply: str) -> str:
    """What a unit's reply speaks, empty where it listens; ValueError for another form."""
    body = without_reasoning(reply)[0]
    start = body.find("{")
    if start < 0:
        raise ValueError("it holds no JSON object")
    found: Any = json.JSONDecoder(strict=False).raw_decode(body, start)[0]
    kind, text = found.get("action"), found.get("text")
    if kind == "listen":
        return ""
    if kind == "speak" and isinstance(text, str) and text.strip():
        return text.strip()
    raise ValueError('its "action" must be "listen", or "speak" with a "text"')


DUPLEX = Contract(
    "duplex",
    spoken_of,
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["listen", "speak"]},
            "text": {"type": "string"},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
)
"""Listen or speak, after each unit."""
