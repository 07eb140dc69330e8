"""One probe on its branch: observe the tail, respond, parse, gate, and record what it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench_lib.asks.ask import Ask, query, registrations
from bench_lib.engine.conditions import Feed
from bench_lib.exchange import Alert, Generation, Note, Query, Refused, Reply
from bench_lib.measure import MEMORY, counting, timing
from bench_lib.memories.method import Method
from bench_lib.prompts import PromptSet
from bench_lib.replies.gate import gate
from bench_lib.replies.parse import parse
from bench_lib.schema import Response, Session
from bench_lib.tasks import MAX_NEW_TOKENS, Bench
from bench_lib.video.stream import Clip


@dataclass(frozen=True)
class Setting:
    """What all asks of a run share.

    `delivery` says how registrations arrive: `stream` (noted in the memory where a method's state
    sees text, else in a log before the probe) or `log`.
    """

    bench: Bench
    prompts: PromptSet
    generation: Generation = field(default_factory=Generation)
    max_new_tokens: Mapping[str, int] = field(default_factory=lambda: MAX_NEW_TOKENS)
    delivery: str = "stream"
    seed: int = 42
    reader: str = "pyav"
    store: Any = None


@dataclass(frozen=True)
class Moment:
    """Where in the stream an ask is put. Times are seconds of this machine, but `prefix_s`.

    `turns` are earlier turns of the dialogue, for methods that do not keep them by themselves.
    `spent_s` is what the memory that answers took by kind (`measure.MEMORY`), `branch_s` what
    taking its branch took.
    """

    fed: tuple[Session, ...]
    feed: Feed
    tail: Clip
    late: tuple[Note, ...] = ()
    turns: tuple[Note, ...] = ()
    streamed: bool = False
    spent_s: Mapping[str, float] = field(default_factory=dict)
    branch_s: float = 0.0
    decode_s: float = 0.0
    frame_decode_s: float = 0.0
    prefix_s: float = 0.0
    missing: tuple[str, ...] = ()


def answer(branch: Method, ask: Ask, at: Moment, trajectory: str, setting: Setting) -> Response:
    """Let a branch answer. Whatever it raises becomes a status and a reason."""
    asked = asked_of(branch, ask, at, setting)
    limit = setting.max_new_tokens[asked.contract]
    generation = replace(setting.generation, max_new_tokens=limit, seed=setting.seed)
    took: dict[str, float] = {}
    with counting(alone=True) as counts:
        try:
            with timing("tail", took):
                if not at.tail.empty:
                    branch.observe(at.tail)
                for note in at.late:
                    branch.note(note)
                branch.settle()
            state_bytes = dict(branch.state_bytes())
            called = time.perf_counter()
            reply = branch.respond(asked, generation)
        except Refused as refusal:
            return failure(ask, trajectory, str(refusal), at.missing, status="refused")
        except Exception as error:
            return failure(ask, trajectory, f"{type(error).__name__}: {error}", at.missing)
    options = {option.id: option.text for option in asked.options}
    parsed = parse(asked.contract, reply.text, "".join(options), reply.stop, options)
    task = setting.bench.task(ask.candidate.task)
    # What a message model is shown lay decoded in the memory: only the tail's decoding is awaited.
    encoded = 0 if branch.model == "chat" else counts.get("frames_encoded", 0)
    return Response(
        **_where(ask, trajectory),
        status=parsed.status,
        raw_text=reply.text,
        option=parsed.option,
        decision=parsed.decision,
        text=parsed.text,
        reason=parsed.reason,
        repairs=parsed.repairs,
        error=parsed.why,
        passed=gate(task, ask.probe.polarity, parsed, ask.candidate.answer),
        stop=reply.stop,
        timings=_timings(reply, at, called, took["tail"], encoded),
        counters=dict(counts),
        state_bytes=state_bytes,
        missing_sessions=at.missing,
    )


def spoken(
    ask: Ask, trajectory: str, alert: Alert | None, state_bytes: Mapping[str, int]
) -> Response:
    """The record of a watch: what was said first and when, or that nothing was said in time.

    `alert_s` is the instant of the newest frame that the method had seen, the stamp that
    StreamArena scores; `delivered_s` is when its words were out.
    """
    if alert is None:
        return Response(**_where(ask, trajectory), status="ok", state_bytes=dict(state_bytes))
    parsed = parse("free", alert.text, "", "end")
    return Response(
        **_where(ask, trajectory),
        status=parsed.status,
        raw_text=alert.text,
        text=parsed.text,
        repairs=parsed.repairs,
        error=parsed.why,
        timings={"alert_s": alert.observed_s, "delivered_s": alert.delivered_s},
        state_bytes=dict(state_bytes),
    )


def failure(
    ask: Ask, trajectory: str, reason: str, missing: tuple[str, ...] = (), status: str = "error"
) -> Response:
    """The record of an ask that could not be answered."""
    where = _where(ask, trajectory)
    return Response(**where, status=status, error=reason, missing_sessions=missing)  # type: ignore[arg-type]


def _where(ask: Ask, trajectory: str) -> dict[str, Any]:
    return {
        "trajectory": trajectory,
        "session": ask.probe.session,
        "candidate": ask.candidate.id,
        "probe": ask.probe.id,
        "task": ask.candidate.task,
        "polarity": ask.probe.polarity,
        "cutoff_s": ask.probe.t_s,
        "closed": ask.probe.closed,
    }


def asked_of(branch: Method, ask: Ask, at: Moment, setting: Setting) -> Query:
    """The request with the notes that precede it, less those the memory has heard or lost."""
    asked = query(setting.bench, setting.prompts, ask, at.feed.session, at.feed.position)
    if at.streamed:
        return asked
    said = registrations(setting.bench, setting.prompts, ask, at.fed, at.feed.session)
    if not branch.persistent:
        said = tuple(note for note in said if note.session == at.feed.position)
    notes = sorted((*said, *at.turns, *asked.notes), key=lambda note: (note.session, note.t_s))
    return replace(asked, notes=tuple(notes))


def _timings(
    reply: Reply, at: Moment, called: float, tail_s: float, encoded: int
) -> dict[str, float]:
    """Seconds. Three boundaries of TTFT end at the first token and begin ever earlier.

    `ttft_query_s`: memory is ready, the question's own prefill begins. `ttft_prep_s`: with the tail
    and all memory preparation that the query set off. `ttft_e2e_s`: with the decoding of the frames
    worked on since, at the session's mean cost of a sampled frame. All work of the method is in the
    kinds of the memory, `preparation_s` (branch, tail and all else until it is ready) and
    `generation_s`, which add up; `total_s` is the last two.
    """
    opened_s = at.branch_s + tail_s
    prep_s = opened_s + reply.first_token_at - called
    frames = max(encoded, len(at.tail.frames))
    return {
        "prefix_s": at.prefix_s,
        "decode_s": at.decode_s,
        **{f"{kind}_s": at.spent_s.get(kind, 0.0) for kind in MEMORY},
        "tail_s": opened_s,
        "preparation_s": opened_s + reply.ready_at - called,
        "generation_s": reply.done_at - reply.ready_at,
        "ttft_query_s": reply.first_token_at - reply.ready_at,
        "ttft_prep_s": prep_s,
        "ttft_e2e_s": prep_s + frames * at.frame_decode_s,
        "total_s": opened_s + reply.done_at - called,
    }
