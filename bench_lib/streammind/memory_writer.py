"""Memory Writer: one call every four seconds of video, whatever anybody asks.

Hyper-parameters (C.5, Memory Writer): `writer_every_s` 4 (class default 5), `writer_frames` 30 and
speech of the last `writer_window_s` 15, decoding `memory_writer` (T 0.2, 2,560 tokens). A micro
event closes at a predicted boundary, after `micro_ticks` 6 or `micro_s` 30; a macro event after
`macro_micros` 5 or `macro_s` 180; a super event after `super_macros` 4 or `super_s` 900. Summaries
of macro and super events are calls of their own over the texts below them (decoding `summary`).

Each tick describes what is new since the last instant that was described. A tick that fails leaves
a gap: a fragment without text that covers its time and keeps three of its frames, and the next
tick looks back as far as its window reaches. So no time is ever without an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_lib.measure import count
from bench_lib.memories.frame_window import thin
from bench_lib.messages.chat import ChatError, ContractBroken
from bench_lib.messages.fence import fenced
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import SummaryReply, WriterReply
from bench_lib.streammind.scene import Scene, only_shown
from bench_lib.video.picture import Picture


@dataclass(frozen=True)
class Writing:
    """Where the writer is. `covered_s` ends what has an event, `described_s` what has a text."""

    covered_s: float = 0.0
    described_s: float = 0.0
    event: str = ""
    event_s: float = 0.0
    ticks: int = 0
    texts: tuple[str, ...] = ()
    micros: tuple[tuple[str, str], ...] = ()
    micros_s: float = 0.0
    macros: tuple[tuple[str, str], ...] = ()
    macros_s: float = 0.0
    numbers: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True)
class Closing:
    """An event that ends: its level, what it consists of, and why."""

    level: str
    id: str
    start_s: float
    end_s: float
    reason: str
    children: tuple[str, ...] = ()
    text: str = ""
    status: str = "ok"


@dataclass(frozen=True)
class Tick:
    """What a tick wants to write: closings, a fragment of `event`, more closings.

    `seen_s` is the start of what its frames could show; `writing` is where the writer is then.
    """

    start_s: float
    end_s: float
    seen_s: float
    event: str
    status: str
    reply: WriterReply
    shown: tuple[Picture, ...]
    before: tuple[Closing, ...]
    after: tuple[Closing, ...]
    writing: Writing


async def tick(scene: Scene, at: Writing, final: bool = False) -> Tick:
    """One tick at the scene's instant; `final` closes everything (a session ends).

    Raises:
        ChatError: the model refuses for good (its key, its budget); other failures leave a gap.
    """
    s, t_s = scene.settings, scene.t_s
    window_s = t_s - s.writer_window_s
    frames = [f for f in scene.recent if f.t_s > window_s + 1e-6]
    shown = tuple(frames[i] for i in thin(len(frames), s.writer_frames))
    reply, status = await _asked(scene, at, shown)
    start_s = at.covered_s
    if status == "ok":
        start_s = min(start_s, max(at.described_s, window_s))
    plan = _Plan(scene, at)
    if reply.boundary:
        await plan.close_micro("boundary", at.covered_s)
    before, event = tuple(plan.closings), plan.add(reply.text.strip(), start_s, t_s, status)
    await plan.close_by_limit(t_s)
    if final:
        await plan.close_all(t_s)
    seen_s = max(start_s, min((f.t_s for f in shown), default=t_s))
    after = tuple(plan.closings[len(before) :])
    return Tick(start_s, t_s, seen_s, event, status, reply, shown, before, after, plan.writing)


async def _asked(scene: Scene, at: Writing, shown: Sequence[Picture]) -> tuple[WriterReply, str]:
    """The reply, its invented frame ids taken out, and its status."""
    s, label = scene.settings, scene.timeline.label
    recent = scene.bank.recent(scene.t_s - s.entity_recent_s)[:40]
    lines = [f"{e.name} ({e.type})" for e in reversed(recent)]
    parts = [
        fenced("memory: recent entities", "\n".join(lines)) if lines else "",
        fenced("memory: the event under way", "\n".join(at.texts)) if any(at.texts) else "",
        scene.speech(s.writer_window_s),
        *scene.labelled(shown),
        f"[now {label(scene.t_s)}] [described until {label(at.described_s)}]",
    ]
    contract = contracts.contract("memory_writer", WriterReply)
    try:
        said = await scene.ask("memory_writer", contract, parts)
    except ChatError as error:
        if error.final:
            raise
        count("writer_gaps")
        kept = [{"id": shown[i].id} for i in thin(len(shown), 3)]
        gap = WriterReply.model_validate({"key_frames": kept})
        return gap, "contract_error" if isinstance(error, ContractBroken) else "error"
    if said.stop == "refused":
        count("writer_gaps")
        return WriterReply(), "refused"
    reply: WriterReply = said.value
    ids = [f.id for f in shown]
    known = set(only_shown([k.id for k in reply.key_frames], ids))
    for entity in reply.entities:
        entity.frames = only_shown(entity.frames, ids)
    return reply.model_copy(
        update={"key_frames": [k for k in reply.key_frames if k.id in known]}
    ), "ok"


class _Plan:
    """The writer's next state and the closings on the way; summaries are asked for as needed."""

    def __init__(self, scene: Scene, at: Writing) -> None:
        self.scene, self.writing = scene, at
        self.closings: list[Closing] = []

    def add(self, text: str, start_s: float, end_s: float, status: str) -> str:
        """A fragment goes to the open event, or opens one; its id."""
        w = self.writing
        if not w.event:
            n = w.numbers[0] + 1
            w = replace(w, event=f"m{n}", event_s=start_s, numbers=(n, *w.numbers[1:]))
        self.writing = replace(
            w,
            covered_s=end_s,
            described_s=end_s if status == "ok" else w.described_s,
            ticks=w.ticks + 1,
            texts=(*w.texts, text),
        )
        return self.writing.event

    async def close_by_limit(self, t_s: float) -> None:
        """Close the open event where it is full."""
        s, w = self.scene.settings, self.writing
        if w.ticks >= s.micro_ticks:
            await self.close_micro("ticks", t_s)
        elif t_s - w.event_s >= s.micro_s - 1e-6:
            await self.close_micro("time", t_s)

    async def close_all(self, t_s: float) -> None:
        """Close what is open on all levels."""
        await self.close_micro("session end", t_s)
        await self._close_macro("session end", t_s)
        await self._close_super("session end", t_s)

    async def close_micro(self, reason: str, t_s: float) -> None:
        """Close the open micro event, if there is one, and what is full then."""
        s, w = self.scene.settings, self.writing
        if not w.event:
            return
        self.closings.append(Closing("micro", w.event, w.event_s, t_s, reason))
        text = "\n".join(text for text in w.texts if text)
        self.writing = w = replace(
            w,
            event="",
            ticks=0,
            texts=(),
            micros=(*w.micros, (w.event, text)),
            micros_s=w.micros_s if w.micros else w.event_s,
        )
        if len(w.micros) >= s.macro_micros:
            await self._close_macro("micros", t_s)
        elif t_s - w.micros_s >= s.macro_s - 1e-6:
            await self._close_macro("time", t_s)

    async def _close_macro(self, reason: str, t_s: float) -> None:
        s, w = self.scene.settings, self.writing
        if not w.micros:
            return
        n = w.numbers[1] + 1
        closing = await self._closing("macro", f"M{n}", w.micros, w.micros_s, t_s, reason)
        self.writing = w = replace(
            w,
            micros=(),
            macros=(*w.macros, (closing.id, closing.text)),
            macros_s=w.macros_s if w.macros else w.micros_s,
            numbers=(w.numbers[0], n, w.numbers[2]),
        )
        if len(w.macros) >= s.super_macros:
            await self._close_super("macros", t_s)
        elif t_s - w.macros_s >= s.super_s - 1e-6:
            await self._close_super("time", t_s)

    async def _close_super(self, reason: str, t_s: float) -> None:
        w = self.writing
        if not w.macros:
            return
        n = w.numbers[2] + 1
        await self._closing("super", f"S{n}", w.macros, w.macros_s, t_s, reason)
        self.writing = replace(w, macros=(), numbers=(*w.numbers[:2], n))

    async def _closing(
        self,
        level: str,
        key: str,
        below: Sequence[tuple[str, str]],
        start_s: float,
        end_s: float,
        reason: str,
    ) -> Closing:
        text, status = await _summary(self.scene, [text for _, text in below if text])
        children = tuple(child for child, _ in below)
        closing = Closing(level, key, start_s, end_s, reason, children, text, status)
        self.closings.append(closing)
        return closing


async def _summary(scene: Scene, texts: Sequence[str]) -> tuple[str, str]:
    """The summary of the events below, and its status; a failure costs the summary alone."""
    if not texts:
        return "", "empty"
    parts = [
        fenced("memory", "\n\n".join(texts)),
        f"[now {scene.timeline.label(scene.t_s)}]",
    ]
    try:
        said = await scene.ask("summary", contracts.contract("summary", SummaryReply), parts)
    except ChatError as error:
        if error.final:
            raise
        count("summaries_failed")
        return "", "error"
    return ("", "refused") if said.stop == "refused" else (str(said.value.summary), "ok")
