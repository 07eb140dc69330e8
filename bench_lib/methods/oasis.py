"""oasis: events as a forest of notes and keyframes; a question looks into it only when it must.

OASIS (arXiv 2604.17052, CVPR 2026), training-free, prompts alone (release Solus-sano/OASIS dbd342c;
Qwen3-VL-8B-Instruct with Qwen3-Embedding-0.6B). The newest frames are kept twice, densely (now) and
at one a second (buffer). Each full buffer becomes an event: a note that the model writes, its text
vector, keyframes. Above four roots the two neighbours most alike are merged, their notes by the
model. A question sees both windows and the roots' notes; where its reply is a search, it sees the
keyframes of the best nodes of any level too, and is answered in a second turn.

Deviations: the prompts are our own; the reply has the run's form between the answer tags; decoding
is that of the run, notes are greedy (the release samples at temperature 0.1 with top_p 0.001, which
always leaves one token); frames are never enlarged. Sessions, which the release does not know:
windows end with a session, what is pending becomes an event first, times are wall clocks, a node
over several sessions shows its frames session by session. Answering changes nothing; a turn enters
the memory through `commit`.

Faults of the release that `parity` brings back: frame times of a video are made with its mean gap
in place of its rate; ancestors of a found node are not masked; past turns are looked up by the
question, not by the search; windows hold a frame less than their limit; keyframes of a run that is
no multiple of their limit lose its end. Not brought back: its saved forest lacks pixels and
vectors; stored turns hold the first turn's reasoning; vectors of turns are not normalised (those of
its embedder are).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.event_forest import (
    At,
    Forest,
    Keyframe,
    Node,
    closest,
    evenly,
    merged,
    search,
    with_leaf,
)
from bench_lib.memories.event_memory import prose_of, written
from bench_lib.memories.frame_window import instant, joined, logged
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Contract, Frames, Message, Part, Text
from bench_lib.messages.contract import probe
from bench_lib.messages.turn import as_reply, ask, later
from bench_lib.prompts import PromptSet, load
from bench_lib.replies.clean import without_reasoning
from bench_lib.schema import clock
from bench_lib.state.walk import part
from bench_lib.video.stream import EPSILON_S, Clip, Frame, SessionInfo, Size


@dataclass(frozen=True)
class Turn:
    """A question and its answer, and their text's unit vector `[d]` float32."""

    at: At
    question: str
    answer: str
    vector: NDArray[np.float32] = part("embeddings")


@dataclass(frozen=True)
class State:
    """All of the memory. Windows are those of the current session and empty between sessions."""

    seed: int = 42
    sessions: tuple[SessionInfo, ...] = ()
    forest: Forest = field(default_factory=Forest)
    turns: tuple[Turn, ...] = ()
    history: str = ""
    now: tuple[Frame, ...] = ()
    buffer: tuple[Frame, ...] = ()
    pending: tuple[Frame, ...] = ()


@dataclass(kw_only=True)
class Oasis(Method):
    """OASIS. Defaults are those of the release (`src/configs/default.yaml`) unless said otherwise.

    Args:
        fps: Frames a second of the now-window.
        now_frames: Newest frames shown to every question.
        buffer_frames: Frames of the coarser window; so many make an event.
        buffer_fps: Frames a second of the coarser window.
        frames_per_node: Keyframes of a leaf.
        max_pixels: 262,144: 256 tokens of 32 x 32 pixels a frame.
        roots: Most roots.
        level_penalty: What each level of two roots takes from their likeness.
        retrieve_events: Most nodes that a search brings.
        retrieve_qa: Most past turns that a search brings.
        summary_tokens: Token limit of a note.
        answer_tokens: Least token limit of a reply, which thinks before it answers.
        flush_on_end: Make an event of what is pending at a session's end; the release loses it.
        parity: Bring back the faults of the release.
        prompts: Prompt set, or a folder of one's own with the same files.
    """

    # An event is told once, from its own frames and what came before (StreamArena, Eq. 14).
    causal: ClassVar[bool] = True
    model: ClassVar[Any] = "chat"

    fps: float = 2.0
    now_frames: int = 16
    buffer_frames: int = 32
    buffer_fps: float = 1.0
    frames_per_node: int = 16
    max_pixels: int = 262_144
    roots: int = 4
    level_penalty: float = 0.1
    retrieve_events: int = 2
    retrieve_qa: int = 1
    summary_tokens: int = 1024
    answer_tokens: int = 1024
    flush_on_end: bool = True
    parity: bool = False
    prompts: str = "oasis"

    def __post_init__(self) -> None:
        least = {"now_frames": 1 + self.parity, "buffer_frames": 1 + self.parity, "roots": 1}
        for name in least | {"frames_per_node": 1}:
            value, limit = getattr(self, name), least.get(name, 1)
            if value < limit:
                raise BenchError(f"oasis: {name} is {value}; it must be at least {limit}")
        if self.buffer_fps <= 0:
            raise BenchError(f"oasis: buffer_fps is {self.buffer_fps}; it must be above 0")

    # The stream -----------------------------------------------------------------------------------

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`."""
        return self.served.frame_size(native, self.max_pixels)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = State(seed)

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`."""
        self.state = replace(self.state, sessions=(*self.state.sessions, info))

    def observe(self, clip: Clip) -> None:
        """Take frames in one by one; raises ChatError where a note cannot be written."""
        count("frames_observed", len(clip.frames))
        short = 1 if self.parity else 0
        for frame in clip.frames:
            state = self.state
            now = (*state.now, frame)[-(self.now_frames - short) :]
            self.state = replace(state, now=now)
            gap_s = frame.t_s - state.buffer[-1].t_s if state.buffer else np.inf
            if gap_s < 1 / self.buffer_fps - EPSILON_S:
                continue
            buffer = (*state.buffer, frame)[-(self.buffer_frames - short) :]
            pending = (*state.pending, frame)
            self.state = replace(self.state, buffer=buffer, pending=pending)
            if len(pending) == self.buffer_frames:
                self._close_event(clip.session)

    def end_session(self, recorded_bytes: int) -> None:
        """Make an event of what is pending; the windows end."""
        if self.flush_on_end and self.state.pending:
            self._close_event(self.state.sessions[-1].index)
        self.state = replace(self.state, now=(), buffer=(), pending=())

    def _close_event(self, session: int) -> None:
        """Note the pending frames as a new root and merge while there are too many."""
        frames = self.state.pending
        first, last = (At(session, frames[i].t_s) for i in (0, -1))
        shown = (self._heading(first, last), self._video(session, frames))
        text = self._write(EVENT, "event", system="event_system", shown=shown)
        chosen = evenly(len(frames), self.frames_per_node, self.parity)
        forest = with_leaf(
            self.state.forest,
            Node(first, last, 0, text, self._vector(text)),
            [Keyframe(session, frames[i]) for i in chosen],
        )
        count("events_written")
        while len(forest.roots) > self.roots:
            place = closest(forest, self.level_penalty)
            left, right = (forest.nodes[number] for number in forest.roots[place : place + 2])
            text = self._write(
                MERGE,
                "merge",
                first_time=self._when(left.first, left.last),
                first=left.text or NOTHING,
                second_time=self._when(right.first, right.last),
                second=right.text or NOTHING,
            )
            forest = merged(forest, place, text, self._vector(text), self.parity)
            count("events_merged")
        self.state = replace(self.state, forest=forest, pending=())

    # Questions ------------------------------------------------------------------------------------

    def respond(self, query: Query, generation: Generation) -> Reply:
        """Reply at once, or search and then reply; raises ChatError, Refused.

        The time to the first token spans both turns: it ends with the first token of the last one.
        """
        limit = max(self.answer_tokens, generation.max_new_tokens)
        generation = replace(generation, max_new_tokens=limit)
        messages = self.messages(query)
        contract = Contract(f"lookup_{query.contract}")
        first = ask(self.served, messages, contract, generation)
        wanted = search_of(first.text)
        if wanted is None or first.stop == "refused":
            return _answer(as_reply(first))
        messages += [
            Message("assistant", (Text(first.text),)),
            Message("user", tuple(joined(self._found(wanted, query)))),
        ]
        # A kept first reply took no time now; what it once took comes before the second turn.
        ahead_s = max(0.0, first.done_at - time.perf_counter())
        second = as_reply(ask(self.served, messages, probe(query), generation))
        return replace(_answer(later(second, ahead_s)), ready_at=first.ready_at)

    def messages(self, query: Query) -> list[Message]:
        """The first turn: windows, notes of the roots, history, what was said, the request."""
        state = self.state
        parts: list[Part] = []
        for name, frames in (("In view now", state.now), ("The last stretch", state.buffer)):
            if frames:
                session = state.sessions[-1].index
                first, last = (At(session, frames[i].t_s) for i in (0, -1))
                parts += [self._heading(first, last, name), self._video(session, frames)]
        nodes = [state.forest.nodes[number] for number in state.forest.roots]
        if nodes:
            parts.append(Text("Notes on what came before:"))
        parts += [Text(f"[{self._when(n.first, n.last)}] {n.text or NOTHING}") for n in nodes]
        if state.history:
            parts.append(Text(f"What was asked earlier, in short:\n{state.history}"))
        parts += [Text(logged(note)) for note in query.notes]
        parts.append(Text(f"The request, at {self._when(At(query.session, query.cutoff_s))}:"))
        parts.append(Text(query.text))
        system = "\n\n".join(filter(None, (query.system, self.texts.render("answer"))))
        return [Message("system", (Text(system),)), Message("user", tuple(joined(parts)))]

    def _found(self, wanted: str, query: Query) -> list[Part]:
        """What a search brings: past turns, then the keyframes of nodes."""
        state = self.state
        parts: list[Part] = [Text(self.texts.render("found"))]
        for turn in self._turns(query.text if self.parity else wanted):
            parts.append(Text(f"[{self._when(turn.at)}] {_told(turn.question, turn.answer)}"))
        vector = self._vector(wanted)
        numbers = search(state.forest, vector, self.retrieve_events, not self.parity)
        count("events_retrieved", len(numbers))
        for number in numbers:
            node = state.forest.nodes[number]
            frames = [state.forest.frames[i] for i in node.frames]
            for session, run in groupby(frames, key=lambda keyframe: keyframe.session):
                shown = [keyframe.frame for keyframe in run]
                first, last = (At(session, shown[i].t_s) for i in (0, -1))
                parts += [self._heading(first, last), self._video(session, shown)]
        if len(parts) == 1:
            parts.append(Text(NOTHING))
        return [*parts, Text(self.texts.render("final"))]

    def _turns(self, wanted: str) -> list[Turn]:
        """The past turns most alike a text."""
        vector = self._vector(wanted)
        scores = [-float(turn.vector @ vector) for turn in self.state.turns]
        best = np.argsort(scores, kind="stable")[: self.retrieve_qa]
        count("turns_retrieved", len(best))
        return [self.state.turns[i] for i in best]

    def commit(self, query: Query, reply: Reply) -> None:
        """Add a turn to the memory and to the short account of turns."""
        at, said = At(query.session, query.cutoff_s), _told(query.text, reply.text)
        history = self._write(
            HISTORY,
            "history",
            history=self.state.history or NOTHING,
            time=self._when(at),
            turn=said,
        )
        turn = Turn(at, query.text, reply.text, self._vector(said))
        self.state = replace(
            self.state, turns=(*self.state.turns, turn), history=history or self.state.history
        )

    # Words and pictures ---------------------------------------------------------------------------

    @cached_property
    def texts(self) -> PromptSet:
        """The prompts."""
        return load(self.prompts, base="oasis")

    def _write(
        self,
        contract: Contract,
        name: str,
        system: str = "",
        shown: Sequence[Part] = (),
        **fields: str,
    ) -> str:
        """A text of the model's, empty where it failed twice (counted as `empty_memories`)."""
        turns = [Message("system", (Text(self.texts.render(system)),))] if system else []
        parts = [*shown, Text(self.texts.render(name, **fields))]
        generation = Generation(max_new_tokens=self.summary_tokens, seed=self.state.seed)
        user = Message("user", tuple(joined(parts)))
        return written(self.served, [*turns, user], contract, generation).text

    def _vector(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a text."""
        return np.array(self.served.embed([text or NOTHING])[0], np.float32)

    def _video(self, session: int, frames: Sequence[Frame]) -> Frames:
        """Frames of one session as one video."""
        timed = mistimed(frames) if self.parity else tuple(frames)
        return Frames(timed, video=True, size=self._info(session).frame_size)

    def _info(self, session: int) -> SessionInfo:
        return next(info for info in self.state.sessions if info.index == session)

    def _heading(self, first: At, last: At, name: str = "Video") -> Text:
        return Text(f"{name}, {self._when(first, last)}:")

    def _when(self, first: At, last: At | None = None) -> str:
        """An instant or a stretch: `DAY1 10:00:00 to 10:00:31`; without a clock by session."""
        begins = _moment(self._info(first.session), first.t_s)
        if last is None:
            return begins
        ends = _moment(self._info(last.session), last.t_s)
        place, _, time_ = ends.rpartition(" ")
        return f"{begins} to {time_ if begins.startswith(place) else ends}"


def _moment(info: SessionInfo, t_s: float) -> str:
    wall = clock(None if info.wall_start_s is None else info.wall_start_s + t_s)
    return wall or f"{info.id} {instant(info, t_s)}"


def _told(question: str, answer: str) -> str:
    return f"Question: {question}\nAnswer: {answer}"


def _answer(reply: Reply) -> Reply:
    """The reply less what stands around its answer tags."""
    found = re.findall(r"<answer>(.*?)</answer>", reply.text, re.DOTALL)
    return replace(reply, text=found[-1].strip()) if found else reply


def search_of(reply: str) -> str | None:
    """What a reply asks the memory for; None where it asks nothing.

    A search that cannot be read is none (counted as `unreadable_searches`): the reply then stands
    as the answer, as in the release.
    """
    found = re.search(r"<tool_call>(.*?)</tool_call>", without_reasoning(reply)[0], re.DOTALL)
    if not found:
        return None
    try:
        wanted = json.loads(found[1])["arguments"]["text_input"]
    except (ValueError, KeyError, TypeError):
        wanted = None
    if isinstance(wanted, str) and wanted.strip():
        return wanted.strip()
    count("unreadable_searches")
    return None


def mistimed(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The release's frame times: it gives the mean gap in seconds as frames a second."""
    gap_s = (frames[-1].t_s - frames[0].t_s) / len(frames)
    if not gap_s:
        return tuple(frames)
    return tuple(replace(frame, t_s=i / gap_s) for i, frame in enumerate(frames))  # type: ignore[type-var]


NOTHING = "(nothing)"
EVENT = Contract("caption", prose_of)
MERGE = Contract("merge", prose_of)
HISTORY = Contract("history", prose_of)
