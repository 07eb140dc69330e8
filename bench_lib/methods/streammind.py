"""streammind: a team of workers around one memory of the stream (StreamArena, appendix C.5).

The trunk ingests at 2 fps, writes its memory every four seconds and watches; a question goes to the
Front Worker on a branch, with the clock standing still. See `bench_lib.streammind` for the parts.

Beside the contract of every method:
    hear(listen)              speech recognition for the stream's sound
    on_call                   is given each call of a worker: what it saw, what it said
    tracing(append, name)     keeps calls and memory in a run's folder, see `streammind.trace`
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from bench_lib.exchange import Alert, Generation, Note, Query, Refused, Reply
from bench_lib.measure import count
from bench_lib.memories.frame_window import logged
from bench_lib.memories.method import Method
from bench_lib.messages.turn import later
from bench_lib.prompts import load as load_prompts
from bench_lib.search import providers
from bench_lib.speech.windows import Listen
from bench_lib.state.packs import Shelf
from bench_lib.streammind import conversation, memory_file, models
from bench_lib.streammind.front import Outcome, Request
from bench_lib.streammind.models import Call
from bench_lib.streammind.settings import Settings, settings_of
from bench_lib.streammind.stream import Stream
from bench_lib.streammind.threads import portal
from bench_lib.streammind.trace import Trace
from bench_lib.video.picture import Picture, fitted, picture
from bench_lib.video.stream import Clip, SessionInfo, Size


@dataclass(kw_only=True)
class StreamMind(Settings, Method):
    """See the module; the other parameters are those of `Settings`.

    Args:
        registrations: What becomes of an instruction of the user that arrives in the stream: `log`
            keeps it in the dialogue, `monitor` gives it to the Front, which starts a Monitor.
        search: Where searches go, as in `search_providers`; without it no search is offered.
    """

    model = "chat"
    notes_touch_state = True
    watches = True
    tools = True

    fps: float = 2.0
    clip_frames: int = 8
    registrations: Literal["log", "monitor"] = "log"
    search: str = ""

    on_call: Callable[[Call], None] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    listen: Listen | None = field(default=None, init=False, repr=False, compare=False)
    stream: Stream = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.without = tuple(self.without)  # a list where parameters come from JSON
        self.check()

    def hear(self, listen: Listen) -> Self:
        """Transcribe the stream's sound with this, from the next `reset` on; returns the method."""
        self.listen = listen
        self.wants_audio = True  # type: ignore[misc]
        return self

    @contextmanager
    def tracing(self, append: Callable[[str, Any], None], trajectory: str) -> Iterator[None]:
        """Keep the calls from the next `reset` on, and the memory at the end of the block."""
        trace = Trace(append, trajectory)
        self.on_call = trace.call
        try:
            yield
        finally:
            if "stream" in vars(self):
                trace.end(self.stream.log)

    def frame_size(self, native: Size) -> Size:
        """The longest side is at most `max_side`."""
        return fitted(native, self.max_side)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """An empty memory; raises BenchError for a search or model that cannot be."""
        self._open(seed)

    def _open(self, seed: int) -> None:
        if "stream" in vars(self):
            portal().call(self.stream.stop)
        settings = settings_of(self)
        self.stream = Stream(
            settings,
            models.Models(settings, self.served, seed),
            load_prompts(self.prompts, base="streammind"),
            providers.provider(self.search),
            self.listen,
        )
        self.stream.sink = self.on_call
        if self.clock == "realtime":
            loop = portal()
            loop.start_task(self.stream.live)
            weakref.finalize(self, loop.start_task_soon, self.stream.stop)

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`."""
        portal().call(self.stream.begin, info)

    def observe(self, clip: Clip) -> None:
        """Encode the frames, then let the workers do what is due; raises ChatError.

        Only what no worker can get over ends here: a refused key or a spent budget.
        """
        count("frames_observed", len(clip.frames))
        sound = None if clip.audio is None else (clip.audio, clip.audio_start_s)
        pictures = [self._picture(frame) for frame in clip.frames]
        portal().call(self.stream.observe, pictures, clip.captions, sound)

    def _picture(self, frame: Any) -> Picture:
        t_s = self.stream.offset_s + frame.t_s
        if self.stream.follows and self.stream.trunk is not None:
            known = self.stream.trunk.ring.find(f"f{round(t_s * 1000):07d}")
            if known is not None:
                return known  # the trunk has seen this clip already
        count("frames_compressed")
        return picture(frame, t_s, self.max_side, self.jpeg_quality)

    def end_session(self, recorded_bytes: int) -> None:
        """All events close; the ring is emptied."""
        portal().call(self.stream.end)

    def branch(self) -> Self:
        """See `Method.branch` and `stream.Stream.branch`."""
        other = super().branch()
        other.stream = portal().call(self.stream.branch)
        return other

    def note(self, note: Note) -> None:
        """An instruction arrives: see `registrations`; raises ChatError."""
        self.stream.follows = self.stream.trunk is not None
        if self.registrations == "monitor":
            self.watch(note)
        else:
            t_s = self._t_s(note.t_s)
            portal().call(self.stream.say, "user", note.text, t_s, t_s)

    def watch(self, note: Note, key: str = "") -> str:
        """A proactive turn: the Front starts or cancels a Monitor and says so; raises ChatError."""
        request = Request(note.text, qid=key)
        return portal().call(conversation.tell, self.stream, request, self._t_s(note.t_s)).text

    def unwatch(self, key: str) -> None:
        """The monitors of that watch end, so that others find a place."""
        portal().call(conversation.over, self.stream, key)

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        """What Monitors said by then, with observed and delivered stamps."""
        offset_s = self.stream.offset_s
        return tuple(
            Alert(a.qid, a.text, a.observed_s - offset_s, a.delivered_s - offset_s)
            for a in self.stream.alerts
            if offset_s <= a.delivered_s <= self._t_s(t_s) + 1e-6
        )

    def respond(self, query: Query, generation: Generation) -> Reply:
        """A reactive turn; raises ChatError, Refused. The workers' own limits count, not these."""
        t_s = self._t_s(query.cutoff_s)
        path = models.Path(models.ask_place(t_s, query.text))
        before = (query.system,) if query.system else ()
        request = Request(
            query.text, query.contract, notes=(*before, *(logged(n) for n in query.notes))
        )
        begun = time.perf_counter()
        outcome: Outcome = portal().call(conversation.ask, self.stream, request, t_s, path)
        if outcome.stop == "refused":
            raise Refused(outcome.text or "the model declined without a word")
        # The path says how long the calls took, kept ones included, at their own time.
        reply = Reply(outcome.text, 0.0, path.first_token_s, path.took_s, outcome.stop)
        return later(reply, begun)

    def commit(self, query: Query, reply: Reply) -> None:
        """Question and answer become part of the dialogue."""
        t_s = self._t_s(query.cutoff_s)
        for role, text in (("user", query.text), ("assistant", reply.text)):
            portal().call(self.stream.say, role, text, t_s, t_s)

    def _t_s(self, session_s: float) -> float:
        return self.stream.offset_s + session_s

    def state_bytes(self) -> Mapping[str, int]:
        """Bytes of frames kept (ring and store) and of the log."""
        return self.stream.nbytes()

    def save(self, folder: Path, shelf: Shelf | None = None) -> None:
        """Write `memory.sqlite`; see `memory_file`."""
        identity = {**self._identity(), "seed": self.stream.models.seed}
        memory_file.save(self.stream, folder, identity, shelf)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; raises BenchError."""
        seed = memory_file.seed_of(folder)
        self._open(seed)
        memory_file.load(self.stream, folder, {**self._identity(), "seed": seed})

    def _identity(self) -> dict[str, Any]:
        plain = json.loads(json.dumps(super()._identity()))
        return dict(plain)
