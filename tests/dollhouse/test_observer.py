"""The ideal observer: everything it is shown, nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from house_worlds import answered, composed, history, oracle, shown, texts, told

from bench_lib import prompts
from bench_lib.dollhouse.ideal import replies
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.dollhouse.world import render
from bench_lib.dollhouse.world.grammar import read
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.sentences import CannotTell, Did, Register
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Contract, Frames, Message, RequestRefused, Text
from bench_lib.replies.parse import parse
from bench_lib.tasks import APM_BENCH
from bench_lib.video.stream import ArrayFrame


def _asks(name: str, seeds: range):  # type: ignore[no-untyped-def]
    for seed in seeds:
        world, trajectory = composed(seed, name)
        for candidate in trajectory.candidates:
            for probe in candidate.probes:
                yield world, trajectory, candidate, probe


@pytest.mark.parametrize(("name", "seeds"), [("default", range(12)), ("small", range(24))])
def test_with_the_evidence_it_passes_everything(name: str, seeds: range) -> None:
    tasks: Counter[str] = Counter()
    for world, trajectory, candidate, probe in _asks(name, seeds):
        evidence = oracle(world, trajectory, candidate, probe)
        _, passed = answered(trajectory, candidate, probe, evidence)
        assert passed, (candidate.id, probe.id)
        tasks[candidate.task] += 1
    assert set(tasks) == {task.code for task in APM_BENCH.tasks}


def test_with_the_whole_history_it_passes_everything() -> None:
    for world, trajectory, candidate, probe in _asks("default", range(6)):
        _, passed = answered(trajectory, candidate, probe, history(world, trajectory, probe))
        assert passed, (candidate.id, probe.id)


def test_without_frames_it_abstains_and_names_no_option() -> None:
    for _, trajectory, candidate, probe in _asks("small", range(6)):
        parsed, passed = answered(trajectory, candidate, probe, [])
        if candidate.task in ("ER", "EST", "TR", "ACR", "CT", "OCR", "STU"):
            assert parsed.status == "unparsed"
            assert passed is False
        else:
            assert parsed.decision == "SILENT"


def test_the_last_frames_alone_answer_only_what_they_show() -> None:
    right: Counter[str] = Counter()
    for world, trajectory, candidate, probe in _asks("default", range(6)):
        last = history(world, trajectory, probe)[-4:]
        _, passed = answered(trajectory, candidate, probe, last)
        right[APM_BENCH.task(candidate.task).capability] += bool(passed and not probe.polarity)
    assert right["Cross-session Understanding"] == 0
    assert right["Real-time Perception"] == 6 * 4


def test_old_frames_are_not_the_present() -> None:
    """An earlier session in view and nothing of the current one: no answer about now."""
    asked = 0
    for world, trajectory, candidate, probe in _asks("default", range(8)):
        if candidate.task not in ("ACR", "CT", "OCR", "STU") or probe.session == "S001":
            continue
        old = shown(world, trajectory, "S001", 0, 1e9)
        parsed, _ = answered(trajectory, candidate, probe, old)
        assert parsed.status == "unparsed"
        asked += 1
    assert asked > 10


def test_answers_come_from_the_frames_not_from_knowing_the_world() -> None:
    """Another world's frames under the same question do not give this world's answers."""
    passes: Counter[bool] = Counter()
    other_world, other = composed(21)
    for _, trajectory, candidate, probe in _asks("default", range(4)):
        if candidate.task in ("ER", "EST", "TR"):
            frames = shown(other_world, other, "S001", 0, 1e9)
            passes[bool(answered(trajectory, candidate, probe, frames)[1])] += 1
    assert passes[True] == 0
    assert passes[False] > 20


def test_texts_serve_as_well_as_frames() -> None:
    """Summaries of earlier sessions carry what cross-session questions need."""
    for world, trajectory, candidate, probe in _asks("default", range(5)):
        if candidate.task not in ("ER", "EST", "TR", "MPA", "TPG"):
            continue
        memories = []
        for session in trajectory.sessions:
            if session.id == probe.session:
                break
            pictures = shown(world, trajectory, session.id, 0, 1e9)
            memories.append(json.loads(told((), pictures, "memory", 100_000))["memory"])
        now = shown(world, trajectory, probe.session, 0, probe.t_s + probe.closed)
        task = APM_BENCH.task(candidate.task)
        said = (*memories, *texts(trajectory, candidate, probe))
        parsed = parse(task.reply, told(said, now, task.reply, 512), "ABCD")
        assert (
            (parsed.option == candidate.answer)
            if candidate.answer
            else (parsed.decision == ("INTERVENE" if probe.polarity == "positive" else "SILENT"))
        ), candidate.id


def test_a_short_summary_loses_facts_and_keeps_registrations() -> None:
    world, trajectory = composed(1)
    pictures = shown(world, trajectory, "S001", 0, 1e9)
    said = "When the girl is in the study, please remind me of this: wash the red cup."
    long = read(json.loads(told((said,), pictures, "memory", 4_000))["memory"])
    short = read(json.loads(told((said,), pictures, "memory", 200))["memory"])
    assert len(short) < len(long)
    assert sum(isinstance(x, Register) for x in short) == 1
    assert any(isinstance(x, Did) for x in short)


def test_the_availability_option_is_chosen_where_evidence_is_missing() -> None:
    question = "Where was the red key last seen?"
    lines = "\n".join(
        ["A. the bed in the study", "B. the rug in the study", "C. the box in the garage",
         "D. the sofa in the lounge", "E. The evidence shown does not suffice."]
    )  # fmt: skip
    fact = "DAY1 10:00:00, study: the red key at the rug, far left."
    given = {"clock": "DAY2 10:00:00", "question": question, "options": lines, "letters": "A"}
    asked = prompts.load("apm").render("choice_availability", **given)
    assert json.loads(told((asked,), [], "choice", 64)) == {"answer": "E"}
    untold = prompts.load("apm_untold").render("choice_availability", **given)
    assert told((untold,), [], "choice", 64) == CannotTell().say()
    reply = told((fact, asked), [], "choice", 64)
    assert json.loads(told((fact, untold), [], "choice", 64)) == json.loads(reply)
    assert json.loads(reply) == {"answer": "B"}


def test_a_strip_from_another_frame_is_believed_and_a_grey_one_is_not() -> None:
    world, _ = composed(2, "small")
    film = world.films[0]
    signs = [s for s in film.shots if s.picture.sign]
    here, other = signs[0], next(s for s in signs if s.picture.sign != signs[0].picture.sign)
    frame = render.image(film, here.start_s + 1, Look())
    swapped, grey = frame.copy(), frame.copy()
    swapped[-21:] = render.image(film, other.start_s + 1, Look())[-21:]
    grey[-21:] = 128
    question = (Text("What does the sign here read now?"),)

    def replied(pixels: np.ndarray) -> str:
        parts = (Frames((ArrayFrame(0.0, pixels),)), *question)
        chat = IdealChat()
        return chat.complete([Message("user", parts)], Contract("free"), Generation()).text

    assert replied(frame) == f"{here.picture.sign}."
    assert replied(swapped) == f"{other.picture.sign}."
    assert replied(grey) == CannotTell().say()


def test_an_unknown_contract_is_refused_and_can_be_taught() -> None:
    with pytest.raises(RequestRefused, match="no rule for the contract 'haiku'"):
        told((), [], "haiku", 10)
    replies.rule("haiku")(lambda shown: "five seven five")
    try:
        assert told((), [], "haiku", 10) == "five seven five"
    finally:
        del replies.RULES["haiku"]


def test_errors_come_at_their_rate_and_keep_the_form() -> None:
    wrong = IdealChat(error_rate=0.3)
    colours = ("red", "blue", "green", "black")
    lines = "\n".join(f"{o}. the {c} cup" for o, c in zip("ABCD", colours, strict=True))
    replies_ = []
    for second in range(200):
        fact = f"DAY1 10:{second // 60:02d}:{second % 60:02d}, study: I wash the blue cup."
        text = f"{fact}\nWhat did I wash in the study on DAY1?\n{lines}"
        message = [Message("user", (Text(text),))]
        replies_.append(json.loads(wrong.complete(message, Contract("choice"), Generation()).text))
    slips = sum(reply["answer"] != "B" for reply in replies_)
    assert 35 <= slips <= 85
    assert all(reply["answer"] in "ABCD" for reply in replies_)
    assert IdealChat().id != wrong.id


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The HTTP observer, started in an empty folder with an empty cache."""
    empty = tmp_path_factory.mktemp("empty")
    env = {**os.environ, "BENCH_CACHE": str(empty / "cache"), "HOME": str(empty)}
    command = [sys.executable, "-m", "bench_lib.dollhouse.ideal.serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=empty, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield found[0]
        assert not any(empty.iterdir())
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_over_http_it_answers_as_in_process(address: str) -> None:
    from bench_lib.chat.endpoint import Endpoint
    from bench_lib.messages.settings import EndpointSettings

    here = IdealChat()
    settings = EndpointSettings(send_contract=True, image_format="jpeg", quality=75)
    videos = EndpointSettings(structured="json_schema", video="jpeg", stream=False)
    world, trajectory = composed(39, "small")
    for candidate in trajectory.candidates[3::2]:
        probe = candidate.probes[-1]
        name = APM_BENCH.task(candidate.task).reply
        pictures = _frames(world, trajectory, candidate, probe)
        said = tuple(Text(t) for t in texts(trajectory, candidate, probe))
        size = (224, 224)
        for video, chosen in ((False, settings), (True, videos)):
            there = Endpoint("ideal", address, chosen)
            messages = [
                Message("system", said[:1]),
                Message("user", (Frames(pictures, video, size), *said[1:])),
            ]
            contract = Contract(name, schema={"type": "object"})
            mine = here.complete(messages, contract, Generation(max_new_tokens=512)).text
            assert there.complete(messages, contract, Generation(max_new_tokens=512)).text == mine


def _frames(world, trajectory, candidate, probe) -> tuple[ArrayFrame, ...]:  # type: ignore[no-untyped-def]
    index = [s.id for s in trajectory.sessions].index(probe.session)
    film = world.films[index]
    times = range(max(0, int(probe.t_s) - 3), min(int(probe.t_s) + probe.closed, film.duration_s))
    return tuple(ArrayFrame(float(t), render.image(film, t, Look())) for t in times)


def test_bad_requests_are_told_what_is_wrong(address: str) -> None:
    import httpx

    def post(body: object) -> httpx.Response:
        return httpx.post(f"{address}/chat/completions", json=body)

    assert httpx.get(f"{address}/models").json()["data"][0]["id"] == "ideal"
    assert post({}).status_code == 400
    picture = {"type": "image_url", "image_url": {"url": "file:///etc/hosts"}}
    reply = post({"messages": [{"role": "user", "content": [picture]}]})
    assert reply.status_code == 400
    assert "opens no file" in reply.json()["error"]["message"]
