"""Recall Worker: observe, reason, act over the memory, then a report with key frames.

Hyper-parameters (C.5, Recall Worker): decoding `recall` (T 0.2, 2,048 tokens, thinking),
`recall_rounds` 4, `recall_frames` 4 decision frames; each result is distilled into one to three
sentences (decoding `distil`, 512 tokens); a last visual pass (decoding `verify`) over up to
`verify_frames` 8 recalled frames keeps those that show the target, all of them where that fails or
would keep none. Every read is bounded by the query time: the bank itself is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench_lib.measure import count
from bench_lib.messages.chat import ChatError, ContractBroken
from bench_lib.messages.fence import fenced
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import DistilReply, RecallCall, RecallReply, Task, VerifyReply
from bench_lib.streammind.missions import Mission, Return
from bench_lib.streammind.recall_tools import Found, Tools, named
from bench_lib.streammind.scene import Scene, only_shown
from bench_lib.streammind.threads import together


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
        except ContractBroken:
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
        report = "\n".join(r.text for r in reads) or "Nothing was recalled."
    frames = chosen or list(dict.fromkeys(f for r in reads for f in r.found.frames))
    return Return(task, report, tuple(await _verified(scene, mission, task, frames)))


def _contract(left: int) -> contracts.Contract:
    def check(reply: RecallReply) -> None:
        if reply.calls and not left:
            raise ValueError("no round is left for calls: give the report")

    return contracts.contract("recall", RecallReply, check)


def _shown(scene: Scene, mission: Mission, task: Task, reads: Sequence[Read], left: int) -> list:
    parts: list = list(scene.labelled(scene.latest(scene.settings.recall_frames)))
    for at, read in enumerate(reads, 1):
        call = read.call.model_dump(exclude_defaults=True)
        parts.append(f"Result {at} of {call}:")
        parts.append(fenced("memory", read.text))
        known = named(scene.bank, read.found.entities)
        parts.append(f"entities: {known}" if known else "")
        some = ", ".join(read.found.frames[-scene.settings.verify_frames :])
        parts.append(f"frames: {some}" if some else "")
    return [
        *parts,
        mission.request,
        f"Your task: {task.instruction}",
        f"[now {scene.timeline.label(scene.t_s)}] [rounds left after this one: {left}]",
    ]


async def _act(
    scene: Scene, mission: Mission, task: Task, tools: Tools, calls: Sequence[RecallCall]
) -> list[Read]:
    """All calls of a round at once, each with its distillation."""
    paths = scene.path.branches(len(calls))

    async def run(own: Scene, call: RecallCall) -> Read:
        try:
            found = tools.call(call)
        except ValueError as error:
            return Read(call, Found(), f"The call failed: {error}")
        count("memory_reads")
        return Read(call, found, await _distilled(own, mission, task, found))

    pairs = zip(paths, calls, strict=True)
    reads = await together([partial(run, scene.on(path), call) for path, call in pairs])
    scene.path.join(paths)
    return reads


async def _distilled(scene: Scene, mission: Mission, task: Task, found: Found) -> str:
    if not found.lines:
        return found.text
    parts = [
        fenced("memory", found.text),
        mission.request,
        f"The task: {task.instruction}",
        f"[now {scene.timeline.label(scene.t_s)}]",
    ]
    try:
        reply = await scene.ask("distil", contracts.contract("distil", DistilReply), parts)
    except ContractBroken:
        return found.text  # unread is better than lost
    return found.text if reply.stop == "refused" else str(reply.value.text)


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
    except ChatError:
        count("verify_failed")
        return ids
    return (only_shown(reply.value.frames, ids) if reply.stop != "refused" else ()) or ids
