"""Front Worker: the gateway. It answers, delegates, starts a monitor or cancels one.

Hyper-parameters (C.5, Front Worker, Eq. 20): decoding `front` (T 0.3, 256 tokens, no thinking),
`front_frames` 12, `front_macros` 2, `front_facts`; the whole dialogue within `log_characters`.
The fallback answer, for a mission without one: decoding `fallback` (T 0.4, 1,536 tokens),
`fallback_frames` 12 at the query, `fallback_current` 2, `fallback_turns` 16, `fallback_recalled` 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench_lib.measure import count
from bench_lib.messages.chat import Contract, ContractBroken, RequestUnfit
from bench_lib.messages.fence import fenced
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import FrontReply
from bench_lib.streammind.missions import Mission
from bench_lib.streammind.router import route
from bench_lib.streammind.scene import Scene, said


@dataclass(frozen=True)
class Request:
    """A user's turn: the whole request, what form its reply has, and what was said before it.

    `kind` is the reply kind of `tasks.ReplyKind`; it is part of the contract's name.
    """

    text: str
    kind: str = "free"
    qid: str = ""
    notes: tuple[str, ...] = ()

    def told(self) -> str:
        """The request as the last thing in a prompt."""
        before = "".join(f"{note}\n" for note in self.notes)
        return f"{before}The user's request:\n{self.text}"


@dataclass(frozen=True)
class Outcome:
    """What a turn led to: words for the user, and what is to be done with monitors."""

    text: str
    action: str
    reply: FrontReply | None = None
    stop: str = "end"


def paths(scene: Scene) -> list[str]:
    """The actions that exist in this run."""
    can = ["answer"]
    if scene.settings.has("recall") or scene.provider is not None:
        can.append("delegate")
    if scene.settings.has("monitor"):
        can += ["monitor", "cancel"]
    return can


async def turn(scene: Scene, request: Request, monitors: Sequence[str] = ()) -> Outcome:
    """Serve a user's turn; `monitors` describes the active ones.

    Raises:
        ChatError: no model could be asked.
    """
    can = paths(scene)

    def check(reply: FrontReply) -> None:
        if reply.action not in can:
            raise ValueError(f"action {reply.action!r} does not exist here; use {', '.join(can)}")

    contract = contracts.contract(f"front_{request.kind}", FrontReply, check)
    try:
        reply = await scene.ask("front", contract, _shown(scene, request, monitors, can))
    except (ContractBroken, RequestUnfit):
        return Outcome(await fallback(scene, request, Mission(request.told())), "fallback")
    if reply.stop == "refused":
        return Outcome(reply.text, "refused", stop="refused")
    chosen: FrontReply = reply.value
    if chosen.action != "delegate":
        return Outcome(said(chosen.answer or ""), chosen.action, chosen, reply.stop)
    assert chosen.brief is not None
    mission = Mission(request.told(), chosen.brief.goal, chosen.brief.constraints)
    answer = await route(scene, mission, request.kind)
    if answer is None:
        answer = await fallback(scene, request, mission)
    return Outcome(answer, "delegate", chosen)


def _shown(scene: Scene, request: Request, monitors: Sequence[str], can: Sequence[str]) -> list:
    s, bank = scene.settings, scene.bank
    macros = list(bank.macros.values())[-s.front_macros :] if s.front_macros else []
    told = [f"{scene.timeline.span(m.start_s, m.end_s)}: {m.text}" for m in macros if m.text]
    facts = [text for _, text in bank.facts[-s.front_facts :]] if s.front_facts else []
    return [
        fenced("memory: what happened lately", "\n".join(told)) if told else "",
        fenced("memory: current facts", "\n".join(facts)) if facts else "",
        "Active monitors:\n" + "\n".join(monitors) if monitors else "",
        scene.dialogue(),
        scene.speech(s.writer_window_s),
        *scene.labelled(scene.latest(s.front_frames)),
        f"[now {scene.timeline.label(scene.t_s)}] [actions: {', '.join(can)}]",
        request.told(),
    ]


async def fallback(scene: Scene, request: Request, mission: Mission) -> str:
    """An answer from the query's frames, the newest ones and what was recalled; ChatError."""
    s = scene.settings
    recent = scene.latest(s.fallback_frames)
    recalled = scene.frames(mission.frames)[: s.fallback_recalled]
    newest = scene.latest(s.fallback_current)
    shown = {f.id: f for f in (*recalled, *recent, *newest)}
    parts = [
        scene.dialogue(s.fallback_turns),
        scene.speech(s.writer_window_s),
        *mission.told(),
        *scene.labelled(sorted(shown.values(), key=lambda f: f.t_s)),
        f"[now {scene.timeline.label(scene.t_s)}]",
        request.told(),
    ]
    # The last word has no parser: as with any other method, a malformed reply is the result.
    contract = Contract(f"fallback_{request.kind}")
    try:
        return (await scene.ask("fallback", contract, parts)).text
    except RequestUnfit:
        # Too much for its model: the request with what is in view at last.
        count("fallbacks_shortened")
        brief = [*scene.labelled(newest), *parts[-2:]]
        return (await scene.ask("fallback", contract, brief)).text
