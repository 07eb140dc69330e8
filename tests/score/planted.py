"""Small trajectories and replies whose scores are worked by hand in the tests."""

from __future__ import annotations

import json
from itertools import count

from bench_lib.replies.gate import gate
from bench_lib.replies.parse import parse
from bench_lib.schema import (
    Candidate,
    Moment,
    Option,
    Probe,
    Registration,
    Response,
    Session,
    Span,
    Trajectory,
    Verdict,
)
from bench_lib.tasks import APM_BENCH

HOUR = 3600.0


def sessions(number=3, hours=0.5, gap_h=10.0):
    return tuple(
        Session(
            id=f"S{i + 1}",
            index=i,
            spans=(Span(file="v.mp4", start_s=0, end_s=hours * HOUR),),
            duration_s=hours * HOUR,
            wall_start_s=8 * HOUR + i * (hours + gap_h) * HOUR,
        )
        for i in range(number)
    )


def trajectory(name, candidates, **kwargs):
    return Trajectory(
        id=name, source="toy", sessions=sessions(**kwargs), candidates=tuple(candidates)
    )


_ids = count()


def choice(task="ER", answer="A", evidence=(("S1", 60.0),), session="S3", letters="ABCD", **refs):
    return Candidate(
        id=f"c{next(_ids)}",
        task=task,
        question="Which?",
        options=tuple(Option(id=x, text=f"option {x}") for x in letters),
        answer=answer,
        evidence=tuple(Moment(session=s, start_s=t - 10, end_s=t) for s, t in evidence),
        probes=(Probe(id="q", session=session, t_s=600.0),),
        references=refs,
    )


def adaptive(task="MPA", positive=1, negative=1, answer="B", session="S3", **kwargs):
    probes = [
        Probe(id=f"p{i}", session=session, t_s=300.0 + i, polarity="positive",
              interval=(295.0 + i, 300.0 + i))
        for i in range(positive)
    ] + [
        Probe(id=f"n{i}", session=session, t_s=100.0 + i, polarity="negative",
              interval=(70.0 + i, 100.0 + i))
        for i in range(negative)
    ]  # fmt: skip
    kwargs.setdefault("evidence", (Moment(session="S1", start_s=0, end_s=10),))
    if task in {"RCR", "PRM"}:
        kwargs["registration"] = Registration(session="S1", t_s=5.0, text="Tell me.")
    return Candidate(
        id=f"c{next(_ids)}",
        task=task,
        options=tuple(Option(id=x, text=x) for x in "ABCD") if task == "ERA" else (),
        answer=answer if task == "ERA" else None,
        probes=tuple(probes),
        **kwargs,
    )


SILENT = '{"decision": "SILENT", "reason": "not yet"}'
SPEAK = '{"decision": "INTERVENE", "proactive_response": "Close it.", "reason": "open"}'


def said(letter):
    return json.dumps({"answer": letter})


def spoken(letter):
    return json.dumps({"decision": "INTERVENE", "answer": letter, "reason": "seen"})


def reply(name, candidate, probe, text, status=None, **kwargs):
    """A response as a run would write it: parsed and gated by the package."""
    task = APM_BENCH.task(candidate.task)
    found = next(p for p in candidate.probes if p.id == probe)
    own = {
        "trajectory": name,
        "session": found.session,
        "candidate": candidate.id,
        "probe": probe,
        "task": candidate.task,
        "polarity": found.polarity,
        "cutoff_s": found.t_s,
        "closed": found.closed,
        **kwargs,
    }
    if status is not None:
        return Response(**own, status=status, error="did not answer")
    letters = "".join(option.id for option in candidate.options) or "ABCD"
    parsed = parse(task.reply, text, letters, own.get("stop", ""))
    return Response(
        **own,
        status=parsed.status,
        raw_text=text,
        option=parsed.option,
        decision=parsed.decision,
        text=parsed.text,
        reason=parsed.reason,
        repairs=parsed.repairs,
        error=parsed.why,
        passed=gate(task, found.polarity, parsed, candidate.answer),
    )


def verdict(name, candidate, probe, score, judge="toy", **kwargs):
    return Verdict(
        trajectory=name, candidate=candidate.id, probe=probe, judge=judge, score=score, **kwargs
    )
