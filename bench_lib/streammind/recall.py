"""Recall Worker: observe, reason, act over the memory, then a report with key frames.

Hyper-parameters (C.5, Recall Worker): decoding `recall` (T 0.2, 2,048 tokens, thinking),
`recall_rounds` 4, `recall_frames` 4 decision frames; each result is distilled into one to three
sentences (decoding `distil`, 512 tokens); a last visual pass (decoding `verify`) over up to
`verify_frames` 8 recalled frames keeps those that show the target, all of them where that fails or
would keep none. Every read is bounded by the query time: the bank itself is.

Limits of ours, so that hours of memory fit a model: a call shows at most `CHARACTERS` of text; what
a tool returns is distilled in pieces, at most `PIECES` in a round. So a recall that reads a stretch
once makes at most nine calls, however long it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench_lib.measure import count
from bench_lib.messages.chat import ChatError, ContractBroken, RequestUnfit
from bench_lib.messages.fence import fenced
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import DistilReply, RecallCall, RecallReply, Task, VerifyReply
from bench_lib.streammind.missions import Mission, Return
from bench_lib.streammind.recall_tools import Found, Tools, clipped, named
from bench_lib.streammind.scene import Scene, only_shown
from bench_lib.streammind.threads import off_loop, together

CHARACTERS = 24_000
PIECES = 6
FRAME = 600
"""Characters that are kept free for fences, ids and clocks."""
SLACK = 1_000
"""Characters before the end of a piece in which a line may end."""
LEAST = 2_000
"""Characters of memory that are shown however long the request is, and most of a piece's gist."""


@dataclass(frozen=True)
class Read:
    """A call, what it found, and that in a few sentences."""

    call: RecallCall
    found: Found
    text: str


async def recall(scene: Scene, mission: Mission, task: Task) -> Return:
    """Serve a task; raises ChatError where the model cannot be asked."""
    s = scene.settings
    tools = Tools(scene.bank, s.recall_results)
    reads: list[Read] = []
    report, chosen = "", list[str]()
    for left in range(s.recall_rounds - 1, -1, -1):
        try:
            reply = await scene.ask(
                "recall", _contract(left), _shown(scene, mission, task, reads, left)
            )
        except (ContractBroken, RequestUnfit):
            break
        if reply.stop == "refused":
            break
        if reply.value.report:
            report = reply.value.report
            chosen = only_shown(reply.value.frames, [f for r in reads for f in r.found.frames])
            break
        reads += await _act(scene, mission, task, tools, reply.value.calls)
    else:
        count("recall_out_of_rounds")
    if not report:
        report = clipped("\n".join(r.text for r in reads), CHARACTERS // 2)
        report = report or "Nothing was recalled."
    frames = chosen or list(dict.fromkeys(f for r in reads for f in r.found.frames))
    return Return(task, report, tuple(await _verified(scene, mission, task, frames)))


def _contract(left: int) -> contracts.Contract:
    def check(reply: RecallReply) -> None:
        if reply.calls and not left:
            raise ValueError("no round is left for calls: give the report")

    return contracts.contract("recall", RecallReply, check)


def _room(scene: Scene, worker: str, mission: Mission, task: Task) -> int:
    """Characters of memory that a call can show beside its prompt and its request."""
    taken = len(scene.texts.render(worker)) + len(mission.request) + len(task.instruction)
    return max(LEAST, CHARACTERS - FRAME - taken)


def _shown(scene: Scene, mission: Mission, task: Task, reads: Sequence[Read], left: int) -> list:
    parts: list = list(scene.labelled(scene.latest(scene.settings.recall_frames)))
    room = _room(scene, "recall", mission, task)
    told: list[str] = []
    for at in range(len(reads), 0, -1):  # the newest are sure of their room
        own = _told(scene, at, reads[at - 1])
        room -= sum(map(len, own))
        if room < 0 and told:
            told.insert(0, f"({at} earlier results are left out: there is no room for them)")
            break
        told[:0] = own
    return [
        *parts,
        *told,
        mission.request,
        f"Your task: {task.instruction}",
        f"[now {scene.timeline.label(scene.t_s)}] [rounds left after this one: {left}]",
    ]


def _told(scene: Scene, at: int, read: Read) -> list[str]:
    call = read.call.model_dump(exclude_defaults=True)
    parts = [clipped(f"Result {at} of {call}:", LEAST), fenced("memory", read.text)]
    known = clipped(named(scene.bank, read.found.entities), LEAST)
    parts.append(f"entities: {known}" if known else "")
    some = ", ".join(read.found.frames[-scene.settings.verify_frames :])
    return [*parts, f"frames: {some}" if some else ""]


async def _act(
    scene: Scene, mission: Mission, task: Task, tools: Tools, calls: Sequence[RecallCall]
) -> list[Read]:
    """All calls of a round at once, each with its distillation."""
    calls, more = calls[:PIECES], calls[PIECES:]
    paths = scene.path.branches(len(calls))
    room, pieces = _room(scene, "distil", mission, task), PIECES // len(calls)

    async def run(own: Scene, call: RecallCall) -> Read:
        try:
            # Hours of memory take a while to search, and other streams are on this loop.
            found = await off_loop(partial(tools.call, call, (room - SLACK) * pieces))
        except ValueError as error:
            return Read(call, Found(), f"The call failed: {error}")
        count("memory_reads")
        return Read(call, found, await _distilled(own, mission, task, found, room, pieces))

    pairs = zip(paths, calls, strict=True)
    reads = await together([partial(run, scene.on(path), call) for path, call in pairs])
    scene.path.join(paths)
    late = f"It was not made: at most {PIECES} calls can be given together."
    return [*reads, *(Read(call, Found(), late) for call in more)]


async def _distilled(
    scene: Scene, mission: Mission, task: Task, found: Found, room: int, most: int
) -> str:
    """The gist of what a tool returned, piece by piece where it is long."""
    if not found.lines:
        return found.text
    pieces = cut(found.text, room)[:most]
    paths = scene.path.branches(len(pieces)) if len(pieces) > 1 else [scene.path]
    works = [
        partial(_distil, scene.on(path), mission, task, piece)
        for path, piece in zip(paths, pieces, strict=True)
    ]
    gists = await together(works)
    if len(pieces) > 1:
        scene.path.join(paths)
    return "\n".join(gists)


def cut(text: str, most: int) -> list[str]:
    """Pieces of at most so many characters, cut at the ends of lines that are not far away."""
    pieces = []
    while len(text) > most:
        end = text.rfind("\n", most - SLACK, most) + 1
        pieces.append(text[: end or most])
        text = text[end or most :]
    return [*pieces, text]


async def _distil(scene: Scene, mission: Mission, task: Task, text: str) -> str:
    parts = [
        fenced("memory", text),
        mission.request,
        f"The task: {task.instruction}",
        f"[now {scene.timeline.label(scene.t_s)}]",
    ]
    try:
        reply = await scene.ask("distil", contracts.contract("distil", DistilReply), parts)
    except (ContractBroken, RequestUnfit):
        count("distillations_failed")
        return clipped(text, LEAST)  # unread is better than lost
    return clipped(text if reply.stop == "refused" else str(reply.value.text), LEAST)


async def _verified(
    scene: Scene, mission: Mission, task: Task, frames: Sequence[str]
) -> Sequence[str]:
    """The last visual pass."""
    shown = scene.frames(frames)[-scene.settings.verify_frames :]
    ids = [f.id for f in shown]
    if not ids:
        return ids
    parts = [
        *scene.labelled(shown),
        mission.request,
        f"The task: {task.instruction}",
    ]
    try:
        reply = await scene.ask("verify", contracts.contract("verify", VerifyReply), parts)
    except ChatError as error:
        if error.final:
            raise
        count("verify_failed")
        return ids
    return (only_shown(reply.value.frames, ids) if reply.stop != "refused" else ()) or ids
