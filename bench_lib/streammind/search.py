"""Search Worker: outside knowledge about what is seen.

Hyper-parameters (C.5, Search Worker): decoding `search` (T 0.2, 4,096 tokens, thinking),
`search_rounds` 3, `search_frames` 30. It is shown the newest frames, or the anchor where the router
named one. All calls of a round run at once. Tools that the provider does not have are not offered.
Results are data: a worker that believes them can still only do what its contract has, and that is
to search on or to report.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench_lib.measure import count
from bench_lib.messages.chat import ContractBroken, RequestUnfit
from bench_lib.messages.fence import fenced
from bench_lib.search.tools import CENTRE, Provider, SearchError, crop, listed, relevant
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import SearchCall, SearchReply, Task
from bench_lib.streammind.missions import Mission, Return
from bench_lib.streammind.scene import Scene
from bench_lib.streammind.threads import off_loop, together
from bench_lib.video.picture import Picture


async def search(scene: Scene, mission: Mission, task: Task) -> Return:
    """Serve a task; raises ChatError where the model cannot be asked."""
    provider = scene.provider
    assert provider is not None
    s = scene.settings
    if task.anchor == "current":
        frames: Sequence[Picture] = scene.latest(s.search_frames)
    else:
        frames = scene.frames([task.anchor])
    found: list[tuple[SearchCall, str]] = []
    report, sources = "", ()
    for left in range(s.search_rounds - 1, -1, -1):
        try:
            reply = await scene.ask(
                "search",
                _contract(provider, left),
                _shown(scene, mission, task, frames, found, provider, left),
            )
        except (ContractBroken, RequestUnfit):
            break
        if reply.stop == "refused":
            break
        if reply.value.report:
            report, sources = reply.value.report, tuple(reply.value.sources)
            break
        found += await _act(scene, provider, frames, reply.value.calls)
    else:
        count("search_out_of_rounds")
    if not report:
        report = "\n\n".join(text for _, text in found) or "Nothing was found."
    return Return(task, report, tuple(f.id for f in frames if task.anchor == f.id), sources)


def _contract(provider: Provider, left: int) -> contracts.Contract:
    def check(reply: SearchReply) -> None:
        if reply.calls and not left:
            raise ValueError("no round is left for calls: give the report")
        for call in reply.calls:
            if call.tool not in provider.tools:
                raise ValueError(f"there is no {call.tool} here, only {list(provider.tools)}")

    return contracts.contract("search", SearchReply, check)


def _shown(
    scene: Scene,
    mission: Mission,
    task: Task,
    frames: Sequence[Picture],
    found: Sequence[tuple[SearchCall, str]],
    provider: Provider,
    left: int,
) -> list:
    parts: list = list(scene.labelled(frames))
    for at, (call, text) in enumerate(found, 1):
        parts.append(f"Result {at} of {call.model_dump(exclude_defaults=True)}:")
        parts.append(fenced("search", text))
    return [
        *parts,
        mission.request,
        f"Your task: {task.instruction}",
        f"[now {scene.timeline.label(scene.t_s)}] [tools: {', '.join(provider.tools)}] "
        f"[rounds left after this one: {left}]",
    ]


async def _act(
    scene: Scene, provider: Provider, frames: Sequence[Picture], calls: Sequence[SearchCall]
) -> list[tuple[SearchCall, str]]:
    """All calls of a round at once."""

    async def run(call: SearchCall) -> str:
        try:
            return await _call(scene, provider, frames, call)
        except (SearchError, ValueError) as error:
            count("tool_calls_failed")
            return f"The search failed: {error}"

    texts = await together([partial(run, call) for call in calls])
    return list(zip(calls, texts, strict=True))


async def _call(
    scene: Scene, provider: Provider, frames: Sequence[Picture], call: SearchCall
) -> str:
    s = scene.settings
    count("tool_calls")
    if call.tool == "text_search":
        results = await off_loop(lambda: provider.text(call.query, s.search_results))
        return listed(relevant(call.query, results, s.search_similarity, s.search_results))
    named = [f for f in frames if f.id == call.frame]
    if call.frame not in ("anchor", "current") and not named:
        raise ValueError(f"frame {call.frame!r} was not shown")
    if not frames:
        raise ValueError("there is no frame to search with")
    frame = named[0] if named else frames[-1]
    if call.tool == "image_search":
        return listed(await off_loop(lambda: provider.image(frame.jpeg, s.search_results)))
    if call.box is not None:
        cut = crop(frame, call.box, s.crop_side, s.jpeg_quality)
        return listed(await off_loop(lambda: provider.image(cut, s.search_results)))
    centre = crop(frame, CENTRE, s.crop_side, s.jpeg_quality)

    async def one(jpeg: bytes) -> str:
        return listed(await off_loop(lambda: provider.image(jpeg, s.search_results)))

    whole, middle = await together([partial(one, frame.jpeg), partial(one, centre)])
    return f"Full frame:\n{whole}\n\nCentre:\n{middle}"
