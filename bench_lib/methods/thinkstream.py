"""thinkstream: thinks a few words after each piece of the stream; the words stay, the frames go.

ThinkStream (release johncaged/ThinkStream f022465, `streaming_video_chat` and its evaluator) as run
by StreamArena (appendix C.2). A question replays the prefix in at most 120 chunks of two frames, of
`max(1, ceil(t / 120))` seconds each; after each chunk the model writes
`<think>...</think>` and then `<silent>` or `<response>...`. The newest 20 chunks are seen, all that
was written is kept. The question comes with the last chunk, and the model may put its answer off
for three seconds; the first text after `<response>` is the answer. A watch goes on in chunks of a
second, from 20 seconds before the instruction. What would pass the context of 24,576 tokens ends it
with `step_limit`. Nothing is ever answered at random, as the release does where it fails.

The weights were not released: any message model follows the grammar by its prompt alone.

Deviations: each chunk is a request of its own that reads the window anew (the release keeps the
cache, whose text still holds what it saw of frames that are gone); the limit of thoughts is asked
for and cut, not decoded for; tokens are counted as four bytes of text each; the stream stands still
while the answer is put off, since no frame after the question may be seen; a reply without the
grammar is silence (`untagged_chunks`), and when the time to wait is over, the answer. The chunks
before a watch are taken as silent without a request; captions come to it with their chunks. No
tools.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, InputClass, Note, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.frame_window import thin
from bench_lib.memories.watching import Watch, Watching
from bench_lib.messages.chat import ChatReply, Contract, Frames, Message, Part, Text
from bench_lib.messages.turn import ahead_s, as_reply, ask, later
from bench_lib.state.walk import part
from bench_lib.video.stream import EPSILON_S, Frame

TOKEN_BYTES = 4
"""UTF-8 bytes a token, in English as in Chinese, about."""
THINK = re.compile(r"<think>(.*?)(?:</think>|(?=<response>|<silent>)|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Chunk:
    """Two frames of the stream, what the user said with them, and what the model wrote then."""

    frames: tuple[Frame, ...] = ()
    asked: str = part("text", default="")
    wrote: str = part("text", default="")


@dataclass(kw_only=True)
class Thinkstream(Watching):
    """See the module; the other parameters are those of `Watching`.

    Args:
        window_s: 0: a question replays the whole session.
        chunks: Most chunks of a question. 120: release and paper.
        seen_chunks: Newest chunks whose frames are seen. 20: release.
        think_tokens: Words of a thought. 20: release and paper.
        answer_tokens: Token limit of an answer. 256: paper; the release has 30.
        slack: Chunks for which an answer may be put off. 3: `slack_time` of 3 s.
        context_tokens: Text and the window's frames together. 24,576: release and paper.
        frame_tokens: Tokens of a frame, for that count. 128: of 100,352 pixels.
        temperature: 1.0: release; 0 is greedy. Its top-k of 50 is the server's to set.
        top_p: 0.95: release.
        fps: 2: two frames of a second.
        max_pixels: 100,352: the release is silent.
    """

    # The cache grows chunk by chunk; no chunk is read again with later ones (Eq. 14).
    causal: ClassVar[bool] = True
    input_class: ClassVar[InputClass] = "thinned"
    prompt_base: ClassVar[str] = "thinkstream"

    window_s: float = 0.0
    chunks: int = 120
    seen_chunks: int = 20
    think_tokens: int = 20
    answer_tokens: int = 256
    slack: int = 3
    context_tokens: int = 24_576
    frame_tokens: int = 128
    temperature: float = 1.0
    top_p: float = 0.95
    fps: float = 2.0
    clip_frames: int = 2
    max_pixels: int = 100_352

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("chunks", "seen_chunks", "think_tokens", "answer_tokens"):
            if getattr(self, name) < 1:
                raise BenchError(f"thinkstream: {name} is {getattr(self, name)}; give 1 or more")

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """See `Method.bounded`: a question needs all frames of the session."""
        return False

    @property
    def recent_frames(self) -> int:
        """See `Watching.recent_frames`."""
        return 2 * self.seen_chunks

    # A question -----------------------------------------------------------------------------------

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; raises ChatError, Refused."""
        frames = self._frames(query.cutoff_s)
        pieces = replayed(frames, self.chunks)
        *before, last = pieces or [Chunk()]
        done: list[Chunk] = []
        waited_s = 0.0
        for chunk in before:
            reply = self._written(done, chunk, "thinkstream", len(done), query)
            if reply is None:
                return _over(waited_s)
            waited_s += ahead_s(reply)
            done.append(replace(chunk, wrote=self._kept(reply.text)))
        chunk = replace(last, asked=self.request(query))
        for put_off in range(self.slack + 1):
            now = put_off == self.slack
            if now:
                chunk = replace(chunk, asked=f"{chunk.asked}\n{self.texts.render('now')}".strip())
            name = f"thinkstream_{'now' if now else 'ask'}_{query.contract}"
            reply = self._written(done, chunk, name, len(done), query)
            if reply is None:
                return _over(waited_s)
            answer = response(reply.text)
            if answer or now or reply.stop == "refused":
                text = answer or (THINK.sub("", reply.text).replace("<silent>", "").strip())
                return later(replace(as_reply(reply), text=text), waited_s)
            count("answers_put_off")
            waited_s += ahead_s(reply)
            done.append(replace(chunk, wrote=self._kept(reply.text)))
            chunk = Chunk()
        raise AssertionError("the last try answers")

    # A watch --------------------------------------------------------------------------------------

    def watch(self, note: Note, key: str) -> str:
        """See `Method.watch`: the window before it is what the watch begins with."""
        told = super().watch(note, key)
        *others, watch = self.state.watches
        seconds = self.seconds(note.t_s, self.seen_chunks) or [()]
        silent = "<think></think><silent>"
        memory = [Chunk(_two(frames), wrote=silent) for frames in seconds]
        memory[-1] = replace(memory[-1], asked=note.text)
        watch = replace(watch, memory=tuple(memory))
        self.state = replace(self.state, watches=(*others, watch))
        return told

    def look(self, watch: Watch, t_s: float) -> tuple[Watch, str]:
        """See `Watching.look`: one chunk of a second."""
        done: tuple[Chunk, ...] = watch.memory
        frames = self.seconds(t_s, 1)
        said = "\n".join(self.spoken(t_s, t_s - 1))
        chunk = Chunk(_two(frames[-1]) if frames else (), asked=said)
        reply = self._written(done, chunk, "thinkstream_watch", watch.looked)
        if reply is None:
            return replace(watch, over=True), ""
        chunk = replace(chunk, wrote=self._kept(reply.text))
        gone = max(0, len(done) - self.seen_chunks + 1)
        kept = (*(replace(c, frames=()) for c in done[:gone]), *done[gone:])
        answer = "" if reply.stop == "refused" else response(reply.text)
        return replace(watch, memory=(*kept, chunk)), answer

    # A chunk --------------------------------------------------------------------------------------

    def _written(
        self,
        done: Sequence[Chunk],
        chunk: Chunk,
        contract: str,
        number: int,
        query: Query | None = None,
    ) -> ChatReply | None:
        """What the model writes after a chunk; None where the context is full (`step_limit`)."""
        chunks = [*done, chunk]
        system = self.texts.render("system", think_tokens=str(self.think_tokens))
        if query and query.system:
            system = f"{system}\n\n{query.system}"
        said = [system, *(c.asked for c in chunks), *(c.wrote for c in chunks)]
        filmed = [at for at, c in enumerate(chunks) if c.frames][-self.seen_chunks :]
        seen = sum(len(chunks[at].frames) for at in filmed)
        held = sum(len(text.encode()) for text in said) // TOKEN_BYTES + seen * self.frame_tokens
        if held + self.think_tokens + self.answer_tokens > self.context_tokens:
            count("step_limits")
            return None
        messages = [Message("system", (Text(system),))]
        for at, one in enumerate(chunks):
            messages.append(Message("user", self._parts(one, at in filmed)))
            if at + 1 < len(chunks):
                messages.append(Message("assistant", (Text(one.wrote),)))
        generation = Generation(
            max_new_tokens=self.think_tokens + self.answer_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.state.seed + number,
        )
        count("chunks_thought")
        return ask(self.served, messages, Contract(contract), generation)

    def _parts(self, chunk: Chunk, seen: bool) -> tuple[Part, ...]:
        parts: list[Part] = []
        if seen:
            video = self.as_video and len(chunk.frames) > 1
            size = self.state.current.info.frame_size
            parts.append(Frames(chunk.frames, video=video, size=size))
        if chunk.asked or not parts:
            parts.append(Text(chunk.asked or "(no frame)"))
        return tuple(parts)

    def _kept(self, reply: str) -> str:
        """What is kept of a reply: a thought of at most so many words, and what was said."""
        found = THINK.search(reply)
        thought = _first_words(found[1].strip(), self.think_tokens) if found else ""
        said = response(reply)
        if not said and "<silent>" not in reply:
            count("untagged_chunks")
        return f"<think>{thought}</think>" + (f"<response>{said}" if said else "<silent>")


def replayed(frames: Sequence[Frame], most: int) -> list[Chunk]:
    """A prefix in at most so many chunks of equal length, two frames each.

    A chunk has `max(1, ceil(t / most))` seconds, t the length up to the newest frame.
    """
    if not frames:
        return []
    length_s = max(1, math.ceil((frames[-1].t_s + EPSILON_S) / most))
    found: dict[int, list[Frame]] = {}
    for frame in frames:
        # Chunks end at the newest frame, so that the last one is as full as the others.
        back = math.floor((frames[-1].t_s - frame.t_s + EPSILON_S) / length_s)
        found.setdefault(min(back, most - 1), []).append(frame)
    return [Chunk(_two(found[back])) for back in sorted(found, reverse=True)]


def _two(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    return tuple(frames[i] for i in thin(len(frames), 2))


def response(reply: str) -> str:
    """The first text after `<response>`, empty where there is none."""
    parts = reply.split("<response>")[1:]
    said = (p.split("<think>")[0].replace("</response>", "").replace("<silent>", "") for p in parts)
    return next((text.strip() for text in said if text.strip()), "")


def _first_words(text: str, most: int) -> str:
    """The first words of a text; characters count as words where a script has no spaces."""
    ends = [m.end() for m in re.finditer(r"[\u3040-\u9fff]|[^\s\u3040-\u9fff]+", text)]
    return text if len(ends) <= most else text[: ends[most - 1]]


def _over(waited_s: float) -> Reply:
    """The reply of a question whose chunks no longer fit: nothing was said."""
    now = time.perf_counter()
    return later(Reply("", now, now, now, stop="step_limit"), waited_s)
