"""Router Worker: a mission in rounds. Each round gives an answer, or tasks that run at once.

Hyper-parameters (C.5, Router Worker): decoding `router` (T 0.2, 2,048 tokens, thinking),
`router_rounds` 4, `router_frames` 8, `router_turns` 16. Recalled frames take at most half of the
frames. Recall and Search never speak to each other: the router hands a recalled frame's id to
Search as its anchor. The rounds left and the kinds of task that exist are told in each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench_lib.measure import count
from bench_lib.messages.chat import ChatError, ContractBroken, RequestUnfit
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import RouterReply, Task
from bench_lib.streammind.missions import Mission, Return
from bench_lib.streammind.scene import Scene, said
from bench_lib.streammind.threads import together
from bench_lib.video.picture import Picture


def kinds(scene: Scene) -> list[str]:
    """The kinds of task that exist in this run."""
    found = ["recall"] if scene.settings.has("recall") else []
    return [*found, "search"] if scene.provider is not None else found


async def route(scene: Scene, mission: Mission, kind: str) -> str | None:
    """Rounds until an answer; None where there is none within the limit, or none can be asked for.

    Raises:
        ChatError: the model cannot be reached or refuses for good.
    """
    s, can = scene.settings, kinds(scene)
    for left in range(s.router_rounds - 1, -1, -1):
        reply = await _round(scene, mission, kind, can, left)
        if reply is None:
            return None
        if reply.answer:
            return said(reply.answer)
        if not left:
            break
        paths = scene.path.branches(len(reply.tasks))
        works = [
            partial(_task, scene.on(path), mission, task)
            for path, task in zip(paths, reply.tasks, strict=True)
        ]
        found = await together(works)
        scene.path.join(paths)
        mission.returns += found
    count("router_out_of_rounds")
    return None


async def _round(
    scene: Scene, mission: Mission, kind: str, can: Sequence[str], left: int
) -> RouterReply | None:
    known = {f.id for f in scene.recent} | set(mission.frames)

    def check(reply: RouterReply) -> None:
        for task in reply.tasks:
            if task.kind not in can:
                raise ValueError(f"there is no task kind {task.kind!r} here, only {list(can)}")
            if task.anchor != "current" and task.anchor not in known:
                raise ValueError(f"anchor {task.anchor!r} is no frame that was shown or returned")
        if reply.tasks and not left:
            raise ValueError("no round is left for tasks: give the answer")

    s = scene.settings
    goal = f"Goal: {mission.goal}\n{mission.constraints}".strip() if mission.goal else ""
    parts = [
        scene.dialogue(s.router_turns),
        scene.speech(s.writer_window_s),
        *scene.labelled(_frames(scene, mission)),
        *mission.told(),
        goal,
        f"[now {scene.timeline.label(scene.t_s)}] [tasks: {', '.join(can) or 'none'}] "
        f"[rounds left after this one: {left}]",
        mission.request,
    ]
    contract = contracts.contract(f"router_{kind}", RouterReply, check)
    try:
        reply = await scene.ask("router", contract, parts)
    except (ContractBroken, RequestUnfit):
        return None
    return reply.value if reply.stop != "refused" else None


def _frames(scene: Scene, mission: Mission) -> list[Picture]:
    most = scene.settings.router_frames
    recalled = scene.frames(mission.frames)[: most // 2]
    shown = {f.id: f for f in (*recalled, *scene.latest(most - len(recalled)))}
    return sorted(shown.values(), key=lambda f: f.t_s)


async def _task(scene: Scene, mission: Mission, task: Task) -> Return:
    """One task; a worker that fails costs its task, not the mission."""
    from bench_lib.streammind import recall, search

    worker = recall.recall if task.kind == "recall" else search.search
    try:
        return await worker(scene, mission, task)
    except ChatError as error:
        if error.final:
            raise
        count("tasks_failed")
        return Return(task, f"The {task.kind} worker failed: {type(error).__name__}.", failed=True)
