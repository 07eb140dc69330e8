"""Methods that show a window of the newest seconds, and look once a second while they watch.

A subclass says what a question and a look are (`respond`, `look`); the rest is here: frames and
sound of the window are held, all captions of the session, and the active watches. A look belongs to
the first frame of each whole second after the watch was told; it is shown nothing later than that
frame, however the stream was cut into clips. What it says is an alert, observed and delivered at
that frame: the stream waits for the model, as in StreamArena's runs of these methods. The end of a
watch is never known before `unwatch`.

A model that cannot be asked ends the stream with its error: a second without a look would count as
silence. A branch answers; it does not watch.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from bench_lib.exchange import Alert, Note, Query
from bench_lib.measure import count
from bench_lib.memories.frame_window import FrameWindow, Held, Shown, State, instant, logged
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts.speech import Speech
from bench_lib.prompts import PromptSet, load
from bench_lib.state import walk as states
from bench_lib.state.walk import part
from bench_lib.video.stream import EPSILON_S, Clip, Frame


@dataclass(frozen=True)
class Watch:
    """An active instruction.

    `looked` is the second of the newest look; `memory` what the method keeps from look to look;
    `over` says that the method cannot go on with it.
    """

    key: str
    t_s: float
    text: str = part("text")
    looked: int = 0
    memory: tuple[Any, ...] = ()
    over: bool = False


@dataclass(frozen=True)
class WatchState(State):
    """A frame window's state, active watches, and what was said for them in this session."""

    watches: tuple[Watch, ...] = ()
    alerts: tuple[Alert, ...] = ()


@dataclass(kw_only=True)
class Watching(FrameWindow):
    """Base of methods that look once a second.

    Args:
        window_s: Seconds of frames and sound that are held; 0 holds the whole session.
        speech: How what is said is taken, see `Speech`.
        prompts: Prompt set, or a folder of one's own with the same files.
    """

    persistent: ClassVar[bool] = False
    watches: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = True
    checkpoint: ClassVar[str] = ""
    prompt_base: ClassVar[str] = ""

    window_s: float = 30.0
    speech: Speech = "captions"  # type: ignore[misc]
    prompts: str = ""

    def __post_init__(self) -> None:
        speaking.checked(type(self).__module__.rpartition(".")[2], self.speech)

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """See `Method.bounded`: captions of a session are all kept."""
        return self.window_s > 0 and self.speech != "captions"

    @property
    def caveat(self) -> str:
        """See `Method.caveat`. A server names a model by its weights, so theirs say what it is."""
        model = getattr(self.served, "id", "")
        family = self.checkpoint.rpartition("/")[2].partition("-")[0].lower()
        if not model or (family and family in model.lower()):
            return ""
        whose = self.checkpoint or "its weights were not released"
        return (
            f"{self.name} ran on {model}, which was not trained for it: its scores are not those "
            f"of the published system ({whose})"
        )

    @property
    def recent_frames(self) -> int:
        """Most frames of a request."""
        return math.ceil(self.window_s * self.fps)

    @cached_property
    def texts(self) -> PromptSet:
        """The prompts."""
        return load(self.prompts or self.prompt_base, base=self.prompt_base)

    @abstractmethod
    def look(self, watch: Watch, t_s: float) -> tuple[Watch, str]:
        """The watch after a look at an instant, and what is said, empty for nothing."""

    # The stream -----------------------------------------------------------------------------------

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = WatchState(seed)

    def observe(self, clip: Clip) -> None:
        """Hold frames and what is said; look where a second is over. Raises ChatError."""
        count("frames_observed", len(clip.frames))
        self._hear(clip)
        for frame in clip.frames:
            self._hold(self._within((*self.state.current.frames, frame), frame.t_s))
            for watch in self.state.watches:
                if second(frame.t_s) > watch.looked and not watch.over:
                    self._look(replace(watch, looked=second(frame.t_s)), frame.t_s)
        held = self.state.current
        if self.window_s and held.sound:
            first_s = held.sound[-1].end_s - self.window_s
            kept = tuple(piece for piece in held.sound if piece.end_s > first_s)
            self.state = replace(self.state, current=replace(held, sound=kept))

    def _within(self, frames: tuple[Frame, ...], now_s: float) -> tuple[Frame, ...]:
        if not self.window_s:
            return frames
        first_s = now_s - self.window_s + EPSILON_S
        return tuple(frame for frame in frames if frame.t_s >= first_s)

    def _look(self, watch: Watch, t_s: float) -> None:
        count("looks")
        watch, said = self.look(watch, t_s)
        alerts = self.state.alerts
        if said:
            alerts = (*alerts, Alert(watch.key, said, t_s, t_s))
        watches = tuple(watch if w.key == watch.key else w for w in self.state.watches)
        self.state = replace(self.state, watches=watches, alerts=alerts)

    def end_session(self, recorded_bytes: int) -> None:
        """Nothing is kept; watches end with the session."""
        super().end_session(recorded_bytes)
        self.state = replace(self.state, watches=(), alerts=())

    def branch(self) -> Self:
        """See `Method.branch`; a branch does not watch."""
        other = super().branch()
        other.state = replace(self.state, watches=())
        return other

    # Watches --------------------------------------------------------------------------------------

    def watch(self, note: Note, key: str) -> str:
        """See `Method.watch`; the acknowledgement is fixed."""
        watch = Watch(key, note.t_s, note.text, second(note.t_s))
        self.state = replace(self.state, watches=(*self.state.watches, watch))
        return self.texts.render("told")

    def unwatch(self, key: str) -> None:
        """See `Method.unwatch`."""
        left = tuple(watch for watch in self.state.watches if watch.key != key)
        self.state = replace(self.state, watches=left)

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        """See `Method.alerts`."""
        return tuple(a for a in self.state.alerts if a.delivered_s <= t_s + EPSILON_S)

    def state_bytes(self) -> Mapping[str, int]:
        """Bytes of the window, of captions and of watches."""
        state = self.state
        return states.nbytes((state.past, state.current, state.watches, state.alerts))

    # What is shown --------------------------------------------------------------------------------

    def shown(self) -> Sequence[Shown]:
        """The window."""
        held = self.state.current
        return [] if held is None else [(held, range(len(held.frames)))]

    def seconds(self, t_s: float, most: int) -> list[tuple[Frame, ...]]:
        """Frames of the newest seconds `(t - 1, t]`, at most so many, in time order.

        Seconds before the oldest frame that is held are left out; one in between may be empty.
        """
        held = self.state.current
        found: dict[int, list[Frame]] = {}
        for frame in reversed(held.frames if held else ()):  # a session may be hours long
            back = math.floor(t_s - frame.t_s + EPSILON_S)
            if back >= most:
                break
            if back >= 0:
                found.setdefault(back, []).insert(0, frame)
        return [tuple(found.get(back, ())) for back in range(max(found, default=-1), -1, -1)]

    def _frames(self, t_s: float) -> list[Frame]:
        held = self.state.current
        return [f for f in held.frames if f.t_s <= t_s + EPSILON_S] if held else []

    def spoken(self, t_s: float, since_s: float = -math.inf) -> list[str]:
        """Lines of the captions that have ended by an instant, after another one."""
        held: Held | None = self.state.current
        if held is None:
            return []
        notes = speaking.said_in(held.said, held.info, since_s, t_s)
        return [f"[{instant(held.info, note.t_s)}] {note.text}" for note in notes]

    def request(self, query: Query) -> str:
        """Captions, the dialogue so far, the clock and the question, as one text."""
        held = self.state.current
        now = f"[now {instant(held.info, query.cutoff_s)}]" if held else ""
        lines = [*self.spoken(query.cutoff_s), *(logged(n) for n in query.notes), now, query.text]
        return "\n".join(line for line in lines if line)

    def system(self, query: Query | None = None) -> str:
        """The system turn: the method's own, then that of the question."""
        own = self.texts.render("system")
        return f"{own}\n\n{query.system}" if query and query.system else own


def second(t_s: float) -> int:
    """The whole second that an instant lies in."""
    return math.floor(t_s + EPSILON_S)
