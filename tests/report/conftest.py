"""A deterministic run of made-up records over all twelve tasks, written the way the engine does."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devtools import Browser

from bench_lib import benches
from bench_lib.asks.ask import Ask
from bench_lib.evaluate import page
from bench_lib.params.evaluate import EvalParams
from bench_lib.readings.material import Material
from bench_lib.replies.gate import gate
from bench_lib.replies.parse import Parsed
from bench_lib.runs.folder import Run
from bench_lib.schema import (
    Candidate,
    Moment,
    Option,
    Probe,
    Reference,
    Registration,
    Response,
    Session,
    Span,
    Trajectory,
)
from bench_lib.tasks import APM_BENCH, Task

SESSION_S = 600.0
OPTIONS = tuple(
    Option(id=letter, text=text)
    for letter, text in zip(
        "ABCD", ("the sink", "the shelf", "the table", "the drawer"), strict=True
    )
)


def dice(*what: Any) -> float:
    """A fixed number in [0, 1) for each thing."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def trajectory(name: str, sessions: int = 4, each: int = 2) -> Trajectory:
    """Sessions of ten minutes without readable video, and `each` candidates of every task."""
    made = tuple(
        Session(
            id=f"S{i + 1:03d}",
            index=i,
            spans=(Span(file=f"/nowhere/{name}-{i}.mp4", start_s=0.0, end_s=SESSION_S),),
            duration_s=SESSION_S,
            wall_start_s=36_000.0 + 7200 * i,
        )
        for i in range(sessions)
    )
    candidates = tuple(
        candidate(task, f"{name}-{task.code}-{k}", made, k)
        for task in APM_BENCH.tasks
        for k in range(each)
    )
    return Trajectory(
        id=name, source="made", title=f"Trajectory {name}", sessions=made, candidates=candidates
    )


def candidate(task: Task, name: str, sessions: tuple[Session, ...], k: int) -> Candidate:
    """One candidate; adaptive ones have a positive probe and two negative ones."""
    at = 1 + k % (len(sessions) - 1)
    here, before = sessions[at].id, sessions[at - 1].id
    evidence = Moment(
        session=before if task.evidence == "earlier" else here,
        start_s=40.0,
        end_s=52.0,
        text="the red mug stands on the shelf",
    )
    times = [(180.0, "negative"), (300.0, "negative"), (420.0, "positive")]
    if not task.adaptive:
        times = [(200.0 + 100 * k, None)]
    probes = tuple(
        Probe(
            id=f"{polarity[0]}{i}" if polarity else "q",
            session=here,
            t_s=t_s,
            closed=not task.interval,
            polarity=polarity,
            interval=(t_s - 20, t_s) if task.interval else None,
            reference=Reference(
                response="The mug is on the shelf." if polarity == "positive" else ""
            ),
        )
        for i, (t_s, polarity) in enumerate(times)
    )
    return Candidate(
        id=name,
        task=task.code,
        question="Where was the red mug last seen?" if "choice" in task.reply else "",
        options=OPTIONS if "choice" in task.reply else (),
        answer="B" if "choice" in task.reply else None,
        evidence=(evidence,),
        registration=Registration(session=before, t_s=100.0, text="Tell me when the kettle boils.")
        if task.registers
        else None,
        probes=probes,
    )


def response(owner: Trajectory, ask: Ask, number: int) -> Response:
    """A reply that is right, wrong, repaired, unparsed, refused or failed, by a fixed dice."""
    task, probe = APM_BENCH.task(ask.candidate.task), ask.probe
    luck = dice(ask.key)
    where = {
        "trajectory": owner.id,
        "session": probe.session,
        "candidate": ask.candidate.id,
        "probe": probe.id,
        "task": task.code,
        "polarity": probe.polarity,
        "cutoff_s": probe.t_s,
        "closed": probe.closed,
    }
    if luck > 0.97:
        return Response(**where, status="refused", error="declined to answer")
    if luck > 0.94:
        return Response(**where, status="error", error="RuntimeError: out of memory")
    speaks = (probe.polarity == "positive") == (dice("side", ask.key) < 0.7)
    option = "BABC"[int(dice("letter", ask.key) * 4)]
    if luck > 0.88:
        parsed, raw = Parsed("unparsed", why="no answer found"), "I think that perhaps " * 4
    elif not task.adaptive:
        parsed = Parsed(
            "repaired" if luck > 0.8 else "ok",
            option=option,
            repairs=("lower case",) * (luck > 0.8),
        )
        raw = f'{{"answer": "{option}"}}'
    else:
        decision = "INTERVENE" if speaks else "SILENT"
        said = "The mug is on the shelf." if speaks else ""
        parsed = Parsed(
            "ok",
            option if speaks and task.reply == "adaptive_choice" else None,
            decision,
            said,
            "seen",
        )
        raw = f'{{"decision": "{decision}", "proactive_response": "{said}", "reason": "seen"}}'
    prefix_s = (
        SESSION_S * next(s.index for s in owner.sessions if s.id == probe.session) + probe.t_s
    )
    query_s = 0.2 + 0.1 * dice("query", ask.key)
    prep_s = query_s + 0.15 * dice("prep", ask.key) + prefix_s / 9000
    return Response(
        **where,
        status=parsed.status,
        raw_text=raw,
        option=parsed.option,
        decision=parsed.decision,
        text=parsed.text,
        reason=parsed.reason,
        repairs=parsed.repairs,
        error=parsed.why,
        passed=gate(task, probe.polarity, parsed, ask.candidate.answer),
        stop="length" if parsed.status == "unparsed" else "end",
        timings={
            "prefix_s": prefix_s,
            "observe_s": prefix_s * 0.11,
            "session_start_s": 0.5 + prefix_s // SESSION_S,
            "session_end_s": 3.0 * (prefix_s // SESSION_S),
            "notes_s": 0.25,
            "decode_s": prefix_s * 0.02,
            "tail_s": 0.05,
            "preparation_s": prep_s - query_s,
            "generation_s": query_s + 0.6,
            "ttft_query_s": query_s,
            "ttft_prep_s": prep_s,
            "ttft_e2e_s": prep_s + 0.08,
            "total_s": prep_s + 0.6,
        },
        counters={
            "frames_encoded": 3,
            "tokens_prefilled": 210 + number,
            "decode_steps": 20,
            "model_calls": 1,
        },
        state_bytes={"kv": 400_000},
    )


def session_records(owner: Trajectory, holds: str = "kv") -> list[dict[str, Any]]:
    """What the engine writes per session; `holds` is `kv` (grows to a ceiling) or `nothing`."""
    found = []
    for at, session in enumerate(owner.sessions):
        kv = min(at, 2) * 300_000 if holds == "kv" else 0
        tokens = (int(2400 * (1 - 0.5 ** (at + 1))), 1500 * (at + 1)) if holds == "kv" else (0, 0)
        found.append(
            {
                "trajectory": owner.id,
                "episode": "standard",
                "session": session.id,
                "position": at,
                "duration_s": SESSION_S,
                "prior_s": SESSION_S * at,
                "prior_bytes": {"kv": kv, "index": 64 * at, "weights": 9_999} if kv else {},
                "note_bytes": 30 * at if holds == "kv" else 0,
                "served": "decord",
                "error": "",
                "clip_s": [
                    round(0.6 + 0.5 * dice(owner.id, at, i) + 0.05 * at, 6) for i in range(75)
                ],
                "work_s": {
                    "observe": 66.0,
                    "session_start": 1.0,
                    "session_end": 3.0,
                    "notes": 0.0,
                },
                "told_work_s": {
                    "observe": 11.0,
                    "session_start": 0.5,
                    "session_end": 3.0,
                    "notes": 0.25,
                },
                "counters": {"source_frames_decoded": 18_000, "frames_sampled": 600},
                "tokens_kept": tokens[0],
                "tokens_seen": tokens[1],
            }
        )
    return found


Build = Callable[..., Material]


def made(
    trajectories: int = 3,
    answered: float = 1.0,
    tasks: tuple[str, ...] = (),
    change: Callable[[Response], Response | None] = lambda r: r,
    holds: str = "kv",
    facts: dict[str, Any] | None = None,
    **params: Any,
) -> Material:
    """Write a run of chosen extent and give the material of its report."""
    owners = [trajectory(f"T{i + 1}") for i in range(trajectories)]
    asked = EvalParams(method="null", tasks=list(tasks), **params)
    run = Run.open("03_eval", "null", asked.as_dict())
    usual = {
        "model": "qwen2.5-vl-toy@1a2b3c",
        "model_note": "",
        "source_note": "",
        "input_class": "incremental",
        "device": "cpu",
        "method_args": {"fps": 1.0, "clip_frames": 8},
        "quarantined": [],
    }
    run.note(**{**usual, **(facts or {})})
    asks = {
        Ask(owner.id, c, p).key: (owner, Ask(owner.id, c, p))
        for owner in owners
        for c in owner.candidates
        for p in c.probes
        if not tasks or c.task in tasks
    }
    listed = list(asks.values())
    for number, (owner, ask) in enumerate(listed[: round(answered * len(listed))]):
        record = change(response(owner, ask, number))
        if record is not None:
            run.append("responses", record)
    for owner in owners[: round(answered * len(owners))]:
        for record in session_records(owner, holds):
            run.append("sessions", record)
    run.close()
    known = {owner.id: owner for owner in owners}
    return Material(run, asked, benches.find("apm"), known, asks, generated=True)


@pytest.fixture
def build(outputs: Path) -> Build:
    """`made`, in outputs of the test's own."""
    return made


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """A whole run that tests only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_OUTPUTS", str(tmp_path_factory.mktemp("full")))
        return made()


@pytest.fixture(scope="session")
def full_page(full: Material) -> str:
    """Its page."""
    return page.of(full).html


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser that looks at pages; without it these checks are skipped and say so."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("chromium is not installed: nothing looked at the page in a browser")
    return found


@pytest.fixture(scope="session")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless browser for all tests."""
    opened = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
