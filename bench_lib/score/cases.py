"""What a judge is shown of one reply: annotations and the reply as data, without the video.

The case is one JSON object between two marker lines. The candidate's text is a string value in it,
with `<` and `>` escaped, so that it can neither end its field nor close the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from bench_lib.asks.ask import moment
from bench_lib.content import digest
from bench_lib.errors import BenchError
from bench_lib.messages.case import fenced
from bench_lib.messages.chat import Contract, Message, Text
from bench_lib.prompts import PromptSet
from bench_lib.replies.gate import gate
from bench_lib.schema import Candidate, Key, Probe, Response, Session, Trajectory
from bench_lib.score import verdicts
from bench_lib.tasks import Bench

META = (
    "availability", "source_candidate_id", "pattern", "domain", "subdomain", "language",
)  # fmt: skip
"""Keys of `Candidate.references` that sort candidates and are no text for the judge."""


Variant = Literal["plain", "padded", "reversed"]
PADDING = (
    " To put it in other words and to be as complete as possible about this point, which has been "
    "considered with care from more than one side: what was just said is what is meant here, and "
    "everything that has been stated above should be read in that sense and in no other."
)


@dataclass(frozen=True)
class Case:
    """One reply to be judged, and the ask it answers."""

    key: Key
    contract: Contract
    messages: tuple[Message, ...]

    @cached_property
    def digest(self) -> str:
        """Of the contract and all text that is sent."""
        texts = [p.text for m in self.messages for p in m.parts if isinstance(p, Text)]
        return digest([self.contract.name, *texts], 16)


def apm_cases(
    trajectories: Iterable[Trajectory],
    responses: Iterable[Response],
    bench: Bench,
    prompts: PromptSet,
    variant: Variant = "plain",
) -> list[Case]:
    """A case for each adaptive reply that passes the gate, in the order of the responses.

    The variants are for audits. `padded` makes each reply longer without saying more, `reversed`
    turns the order of the annotations round; neither should change a grade.
    """
    known = _index(trajectories)
    cases = []
    for response in responses:
        found = known.get(response.key)
        if found is None:
            continue
        trajectory, candidate, probe = found
        task = bench.task(candidate.task)
        if not task.adaptive or not gate(task, probe.polarity, response, candidate.answer):
            continue
        about = {"task": f"{task.code}, {task.name}"}
        data = about | _adaptive(trajectory, candidate, probe, response)
        data = VARIANTS[variant](data)
        guidance = prompts.render(task.code.lower())
        text = prompts.render("case", guidance=guidance, case=fenced(data))
        cases.append(_case(response.key, verdicts.APM, prompts.render("rubric"), text))
    return cases


def arena_cases(
    trajectories: Iterable[Trajectory],
    responses: Iterable[Response],
    keys: Iterable[Key],
    prompts: PromptSet,
) -> list[Case]:
    """A case for each of the keys: what `arena_instances` asks a judge for.

    Raises:
        BenchError: a candidate has no reference answer.
    """
    known, wanted = _index(trajectories), set(keys)
    cases = []
    for response in responses:
        if response.key not in wanted or response.key not in known:
            continue
        _, candidate, probe = known[response.key]
        reference = probe.reference.response or candidate.references.get("answer", "")
        reference = reference or candidate.answer or ""
        if not reference:
            raise BenchError(f"candidate {candidate.id} has no reference answer to judge against")
        data = {
            "question": candidate.question,
            "reference_answer": reference,
            "evidence": [m.text for m in candidate.evidence if m.text],
        }
        text = prompts.render("case", case=fenced({**_filled(data), "reply": response.text}))
        cases.append(_case(response.key, verdicts.ARENA, prompts.render("rubric"), text))
    return cases


def _case(key: Key, contract: Contract, rubric: str, text: str) -> Case:
    messages = (Message("system", (Text(rubric),)), Message("user", (Text(text),)))
    return Case(key, contract, messages)


def _index(
    trajectories: Iterable[Trajectory],
) -> dict[Key, tuple[Trajectory, Candidate, Probe]]:
    return {
        (trajectory.id, candidate.id, probe.id): (trajectory, candidate, probe)
        for trajectory in trajectories
        for candidate in trajectory.candidates
        for probe in candidate.probes
    }


def _adaptive(
    trajectory: Trajectory, candidate: Candidate, probe: Probe, response: Response
) -> dict[str, Any]:
    sessions = {session.id: session for session in trajectory.sessions}
    here = sessions[probe.session]
    interval = None
    if probe.interval is not None:
        interval = [moment(here, probe.interval[0]), moment(here, probe.interval[1])]
    said = candidate.registration
    registration = None
    if said is not None:
        registration = {"time": _when(sessions[said.session], said.t_s), "text": said.text}
    extra = {k: v for k, v in candidate.references.items() if k not in META and v}
    reply = {"decision": response.decision, "proactive_response": response.text}
    if candidate.options:
        reply = {"decision": response.decision, "answer": response.option}
    return _filled(
        {
            "right_decision": "INTERVENE" if probe.polarity == "positive" else "SILENT",
            "moment": _when(here, probe.t_s),
            "interval": interval,
            "registration": registration,
            "question": candidate.question,
            "options": {option.id: option.text for option in candidate.options},
            "right_option": candidate.answer,
            "evidence": [
                {"time": _when(sessions[m.session], m.start_s, m.end_s), "content": m.text}
                for m in candidate.evidence
            ],
            "reference_response": probe.reference.response,
            "reference_reason": probe.reference.reason,
            "further_annotations": extra,
        }
    ) | {"reply": {**_filled(reply), "reason": response.reason}}


def _when(session: Session, start_s: float, end_s: float | None = None) -> str:
    text = f"session {session.index + 1}, {moment(session, start_s)}"
    return text if end_s is None else f"{text} to {moment(session, end_s)}"


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without fields that hold nothing."""
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}


def _padded(data: dict[str, Any]) -> dict[str, Any]:
    texts = ("proactive_response", "reason")
    reply = {k: v + PADDING if k in texts and v else v for k, v in data["reply"].items()}
    return {**data, "reply": reply}


def _reversed(data: dict[str, Any]) -> dict[str, Any]:
    turned = {k: v[::-1] if isinstance(v, list) and k != "interval" else v for k, v in data.items()}
    return dict(reversed(turned.items()))


VARIANTS: Mapping[Variant, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "plain": lambda data: data,
    "padded": _padded,
    "reversed": _reversed,
}
